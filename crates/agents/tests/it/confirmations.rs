//! Calls that need a user's word.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_agents::text::{
    Address, ConfirmationReply, Part, Refusal, StreamEvent, Transcript, User, confirmation_code,
    format_confirmation,
};
use quarterdeck_agents::turn::text_message;
use quarterdeck_contracts::{ChatMessage, ConfirmBy, ConfirmationRequest, ConfirmationToken, ErrorType};
use quarterdeck_runtime::Client;
use serde_json::json;

use crate::world::{ModelStep, World, ann, call, event_lines, events, lines, token};

fn decision(token: &str, is_approved: bool) -> Vec<ConfirmationReply> {
    vec![ConfirmationReply { token: token.into(), is_approved }]
}

/// Requests a confirmation for a payment. Returns the token.
async fn asked(world: &World) -> String {
    world.model.call_tools(vec![call("1", "pay", json!({ "what": "a cake" }))]);
    let events = events(world.send("Buy a cake").await.unwrap()).await;
    expect![[r#"
        started
        round
        call pay {"what":"a cake"}
        asked: pay (what: a cake)
        finished None
    "#]]
    .assert_eq(&lines(&events));
    token(&events)
}

#[tokio::test]
async fn an_approved_call_runs_once_and_the_turn_goes_on() {
    let world = World::new();
    let token = asked(&world).await;
    assert_eq!(world.runs("pay"), 0);
    world.model.reply("Paid.");
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    expect![[r#"
        started
        answer {"did":"a cake"}
        round
        text "Paid."
        finished Some(Answered)
    "#]]
    .assert_eq(&event_lines(reader).await);
    let again =
        world.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true)).await;
    assert!(
        matches!(again, Err(Refusal::Confirmation(error)) if error.kind == ErrorType::ConfirmationInvalid)
    );
    assert_eq!(world.runs("pay"), 1);
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_is_told() {
    let world = World::new();
    let token = asked(&world).await;
    world.model.reply("Then not.");
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, false))
        .await
        .unwrap();
    expect![[r#"
        started
        answer CONFIRMATION_DENIED: The user did not approve pay.
        round
        text "Then not."
        finished Some(Answered)
    "#]]
    .assert_eq(&event_lines(reader).await);
    assert_eq!(world.runs("pay"), 0);
}

#[tokio::test]
async fn a_confirmation_that_was_not_requested_counts_for_nothing() {
    let world = World::new();
    let token = asked(&world).await;
    let forged =
        world.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision("qdc_made_up", true)).await;
    assert!(matches!(forged, Err(Refusal::Confirmation(_))));
    let ben = User { client: Client::anonymous("ben"), ..ann() };
    let stolen = world.agent.resolve_confirmations(&ben, Address::Chat("chat"), decision(&token, true)).await;
    assert!(matches!(stolen, Err(Refusal::Confirmation(_))));
    let apart = world.agent.resolve_confirmation(&ben, &decision(&token, true)[0]).await;
    assert!(matches!(apart, Err(Refusal::Confirmation(_))));
    assert_eq!(world.runs("pay"), 0);
    world.model.reply("Paid.");
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    assert!(event_lines(reader).await.contains("Paid."), "the confirmation is still open for its client");
}

#[tokio::test]
async fn a_confirmation_outside_the_conversation_is_known_to_the_model_in_the_next_turn() {
    let world = World::new();
    let token = asked(&world).await;
    let response = world.agent.resolve_confirmation(&ann(), &decision(&token, true)[0]).await.unwrap();
    assert!(response.is_ok());
    assert_eq!(world.model.requests.lock().unwrap().len(), 1, "the model is not asked by it");
    world.model.reply("You have bought a cake.");
    world.send_and_collect("What did you do?").await;
    let messages = world.model.last_request().messages;
    let results = messages.iter().find_map(|message| match message {
        ChatMessage::Tools { results } => Some(results),
        _ => None,
    });
    assert!(results.unwrap()[0].response.is_ok(), "{messages:?}");
    assert_eq!(world.runs("pay"), 1);
}

/// The user approves, writes on while the call runs, and the connection of the approval is lost.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_being_carried_out_is_not_said_to_be_unapproved() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "pay", json!({ "what": "slowly" }))]);
    let token = token(&events(world.send("Pay").await.unwrap()).await);
    let (user, approval) = (ann(), decision(&token, true).remove(0));
    let approving = world.agent.resolve_confirmation(&user, &approval);
    assert!(tokio::time::timeout(Duration::from_millis(100), approving).await.is_err(), "it is not slow");
    world.model.reply("A moment.");
    world.send_and_collect("And?").await;
    let told = format!("{:?}", world.model.last_request().messages);
    assert!(told.contains("is being carried out") && !told.contains("not approved"), "{told}");

    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(shown_call(&world).await, (None, Some(true)), "it has come to its end without its client");
    world.model.reply("Paid.");
    world.send_and_collect("And now?").await;
    let told = last_user_message(&world);
    assert!(told.contains("approved by the user and was done"), "{told}");
    assert_eq!(world.runs("pay"), 1);
}

#[tokio::test]
async fn a_confirmation_is_shown_while_it_is_open_and_its_outcome_for_good() {
    let world = World::new();
    let token = asked(&world).await;
    world.model.reply("The weather is fine.");
    world.send_and_collect("How is the weather?").await;
    let (question, _) = shown_call(&world).await;
    assert_eq!(question.as_deref(), Some(&*token), "a user who wrote something else is still asked");
    world.model.reply("Your cake is paid for.");
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    event_lines(reader).await;
    assert_eq!(
        shown_call(&world).await,
        (None, Some(true)),
        "what was done after all is not shown as refused"
    );
    assert_eq!(shown_call(&world.restarted()).await, (None, Some(true)));
}

#[tokio::test]
async fn an_expired_confirmation_is_not_shown() {
    let world = World::new();
    asked(&world).await;
    assert!(shown_call(&world).await.0.is_some());
    world.clock.advance(Duration::from_secs(400));
    assert_eq!(shown_call(&world).await.0, None);
}

/// The first call as a client sees it that is loaded again: the token of its question, and whether it worked.
async fn shown_call(world: &World) -> (Option<String>, Option<bool>) {
    let view = world.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap();
    let Part::Call { answer, question, .. } = &view.turns[0].parts[0] else { panic!("{view:?}") };
    let token = question.as_deref().and_then(|request| request.token.as_ref());
    (token.map(|token| token.expose().to_owned()), answer.as_deref().map(|response| response.is_ok()))
}

#[tokio::test]
async fn a_user_who_writes_something_else_is_answered_and_can_still_confirm() {
    let world = World::new();
    let token = asked(&world).await;
    world.model.reply("The weather is fine.");
    world.send_and_collect("How is the weather?").await;
    let messages = world.model.last_request().messages;
    let ChatMessage::Tools { results } = &messages[2] else { panic!("{messages:?}") };
    let text = serde_json::to_string(&results[0].response).unwrap();
    assert!(text.contains("CONFIRMATION_REQUIRED") && !text.contains(&token), "{text}");
    world.model.reply("Your cake is paid for.");
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    let lines = event_lines(reader).await;
    assert!(lines.contains("answer {\"did\":\"a cake\"}") && lines.contains("paid for"), "{lines}");
    let last = world.model.last_request().messages;
    let Some(ChatMessage::User { text }) = last.last() else { panic!("{last:?}") };
    assert!(text.starts_with("[Note: pay (") && text.contains("and was done"), "{text}");
    assert_eq!(world.runs("pay"), 1);
}

#[tokio::test]
async fn a_turn_that_waits_outlives_the_process() {
    let world = World::new();
    let token = asked(&world).await;
    let restarted = world.restarted();
    restarted.model.reply("Paid.");
    let reader = restarted
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    let lines = event_lines(reader).await;
    assert!(lines.contains("answer {\"did\":\"a cake\"}") && lines.contains("Paid."), "{lines}");
    assert_eq!(world.runs("pay"), 1);
}

#[tokio::test]
async fn a_confirmation_during_its_turn_is_not_lost() {
    let world = World::new();
    let calls = vec![
        call("1", "pay", json!({ "what": "a cake" })),
        call("2", "slow_book", json!({ "what": "a table" })),
    ];
    world.model.call_tools(calls).reply("Both are done.");
    let mut reader = world.send("Buy a cake and book a table").await.unwrap();
    let mut seen = Vec::new();
    while !lines(&seen).contains("asked") {
        seen.extend(reader.next().await.unwrap());
    }
    let token = token(&seen);
    assert!(world.agent.resolve_confirmation(&ann(), &decision(&token, true)[0]).await.unwrap().is_ok());
    event_lines(reader).await;
    event_lines(world.send("And?").await.unwrap()).await;
    let asked = serde_json::to_string(&world.model.last_request().messages).unwrap();
    assert!(asked.contains("{\"did\":\"a cake\"}") && !asked.contains("Nothing was done"), "{asked}");
    assert_eq!(world.runs("pay"), 1);
}

#[tokio::test]
async fn of_two_concurrent_confirmations_one_counts() {
    let world = World::new();
    let token = asked(&world).await;
    world.model.reply("Paid.");
    let ann = ann();
    let decide = || world.agent.resolve_confirmations(&ann, Address::Chat("chat"), decision(&token, true));
    let (first, second) = tokio::join!(decide(), decide());
    let mut answers = Vec::new();
    for reader in [first, second].into_iter().flatten() {
        answers.push(event_lines(reader).await);
    }
    assert_eq!(answers.iter().filter(|lines| lines.contains("Paid.")).count(), 1, "{answers:?}");
    assert_eq!(world.runs("pay"), 1);
    assert_eq!(world.model.requests.lock().unwrap().len(), 2, "the model is asked once for it");
}

#[tokio::test]
async fn no_model_ever_sees_a_token() {
    let world = World::new();
    let token = asked(&world).await;
    world.model.reply("Fine.").reply("Done.");
    world.send_and_collect("Something else").await;
    let reader = world
        .agent
        .resolve_confirmations(&ann(), Address::Chat("chat"), decision(&token, true))
        .await
        .unwrap();
    event_lines(reader).await;
    for request in world.model.requests.lock().unwrap().iter() {
        let messages = serde_json::to_string(&request.messages).unwrap();
        assert!(!messages.contains(&token) && !request.system.contains(&token));
    }
}

/// A conversation as a chat program tells it.
#[derive(Clone, Default)]
struct ClientTranscript(Vec<ChatMessage>);

impl ClientTranscript {
    fn user(mut self, text: &str) -> Self {
        self.0.push(ChatMessage::User { text: text.into() });
        self
    }

    fn agent(mut self, text: &str) -> Self {
        self.0.push(ChatMessage::Model(text_message("", text)));
        self
    }

    /// The user sends another message.
    async fn send(&self, world: &World, user: User, chat: &str, text: &str) -> Vec<StreamEvent> {
        let (before, text, fingerprint) = (self.0.clone(), text.to_owned(), text.to_owned());
        let transcript = Transcript { before, text, fingerprint, is_retry: false };
        events(world.agent.complete(&user, Address::Chat(chat), transcript).await.unwrap()).await
    }
}

/// A conversation with an open confirmation: its transcript, the text of the request, and its code.
async fn with_open_confirmation(world: &World, chat: &str, what: &str) -> (ClientTranscript, String, String) {
    world.model.call_tools(vec![call(what, "pay", json!({ "what": what }))]).reply("Please approve it.");
    let events = ClientTranscript::default().send(world, ann(), chat, "Buy it").await;
    let request = events.iter().find_map(|event| match event {
        StreamEvent::ConfirmationRequest { request, .. } => Some(request.clone()),
        _ => None,
    });
    let request = request.unwrap_or_else(|| panic!("no question: {}", lines(&events)));
    let request_text = format_confirmation(&request);
    let transcript =
        ClientTranscript::default().user("Buy it").agent(&format!("{request_text}Please approve it."));
    (transcript, request_text, confirmation_code(request.token.as_ref().unwrap().expose()))
}

/// The last message that the model got.
fn last_user_message(world: &World) -> String {
    let last = world.model.last_request().messages;
    let Some(ChatMessage::User { text }) = last.last() else { panic!("{last:?}") };
    text.clone()
}

#[tokio::test]
async fn where_a_protocol_cannot_ask_the_user_replies_with_a_confirmation_code() {
    let world = World::new();
    let (transcript, _, code) = with_open_confirmation(&world, "v1", "a cake").await;
    world.model.reply("Which one?").reply("Done.").reply("Once is enough.");
    transcript.send(&world, ann(), "v1", "approve 000000").await;
    assert_eq!(world.runs("pay"), 0, "a code of no question");
    assert!(last_user_message(&world).contains("answers no open question of this conversation"));
    transcript.send(&world, ann(), "v1", &format!("approve {}", code.to_lowercase())).await;
    assert_eq!(world.runs("pay"), 1);
    assert!(last_user_message(&world).contains("and was done"), "{}", last_user_message(&world));
    transcript.send(&world, ann(), "v1", &format!("approve {code}")).await;
    assert_eq!(world.runs("pay"), 1, "a code counts once");
}

#[tokio::test]
async fn a_confirmation_code_finds_its_request_however_the_conversation_begins() {
    let world = World::new();
    let ben = User { client: Client::anonymous("ben"), ..ann() };
    let (transcript, question, code) = with_open_confirmation(&world, "begins so", "a cake").await;
    let approval = format!("approve {code}");
    world.model.reply("What do you mean?").reply("Done.").reply("Which one?");
    transcript.send(&world, ben, "begins so", &approval).await;
    assert_eq!(world.runs("pay"), 0, "the code is of another client");
    // A program that has forgotten the beginning, and trims what it keeps.
    let shorter = ClientTranscript::default().agent(question.trim());
    shorter.send(&world, ann(), "begins otherwise", &approval).await;
    assert_eq!(world.runs("pay"), 1);
    assert!(
        last_user_message(&world).contains(r#"was done: {"did":"a cake"}"#),
        "{}",
        last_user_message(&world)
    );
}

#[tokio::test]
async fn a_confirmation_code_counts_only_in_the_conversation_of_its_request() {
    // Two conversations of one client, which begin differently, or in the same words and therefore in one session.
    for (cake_chat, boat_chat) in [("one", "two"), ("same", "same")] {
        let world = World::new();
        let (cake, cake_question, cake_code) = with_open_confirmation(&world, cake_chat, "a cake").await;
        let (boat, _, boat_code) = with_open_confirmation(&world, boat_chat, "a boat").await;
        assert_ne!(cake_code, boat_code);
        let empty = ClientTranscript::default();
        for (name, other) in [
            ("the other question stands there", boat.clone()),
            ("nothing stands there", empty.clone()),
            ("the user quotes it", boat.clone().user(&cake_question)),
            ("only the code was mentioned", boat.clone().agent(&format!("Reply `approve {cake_code}`."))),
            (
                "the model asks for it in other words",
                empty.agent(&format!("Buy? To approve, reply `approve {cake_code}`")),
            ),
        ] {
            for word in ["approve", "deny"] {
                world.model.reply("What do you mean?");
                other.send(&world, ann(), boat_chat, &format!("{word} {cake_code}")).await;
                assert_eq!((world.runs("pay"), name), (0, name));
                assert!(
                    last_user_message(&world).contains("answers no open question of this conversation"),
                    "{name}"
                );
            }
        }
        world.model.reply("Done.").reply("Done.");
        cake.send(&world, ann(), cake_chat, &format!("approve {cake_code}")).await;
        assert!(last_user_message(&world).contains(r#"{"did":"a cake"}"#), "{}", last_user_message(&world));
        assert_eq!(world.runs("pay"), 1, "the other one is still open");
        boat.send(&world, ann(), boat_chat, &format!("approve {boat_code}")).await;
        assert!(last_user_message(&world).contains(r#"{"did":"a boat"}"#), "{}", last_user_message(&world));
        assert_eq!(world.runs("pay"), 2);
    }
}

#[tokio::test]
async fn a_code_of_an_expired_confirmation_is_refused_and_the_model_is_told() {
    let world = World::new();
    let (transcript, _, code) = with_open_confirmation(&world, "v1", "a cake").await;
    world.clock.advance(Duration::from_secs(301));
    world.clock.set_back(Duration::from_secs(3_600));
    world.model.reply("Shall I ask again?");
    transcript.send(&world, ann(), "v1", &format!("approve {code}")).await;
    assert_eq!(world.runs("pay"), 0);
    assert!(
        last_user_message(&world).contains("has expired. Nothing was done."),
        "{}",
        last_user_message(&world)
    );
}

#[tokio::test]
async fn conversations_that_the_client_keeps_do_not_wait_for_each_other() {
    let world = World::new();
    let ann = ann();
    let complete = |is_retry| {
        let transcript =
            Transcript { before: Vec::new(), text: "Hello".into(), fingerprint: "f".into(), is_retry };
        world.agent.complete(&ann, Address::Chat("v1"), transcript)
    };
    world.model.then(ModelStep::Hang("Well")).reply("Hello yourself");
    let slow = complete(false).await.unwrap();
    let quick = event_lines(complete(false).await.unwrap()).await;
    assert!(quick.contains("Hello yourself"), "{quick}");
    let mut again = complete(true).await.unwrap();
    assert!(lines(&again.next().await.unwrap()).contains("started"), "a request sent again joins the first");
    assert_eq!(world.model.requests.lock().unwrap().len(), 2);
    drop(slow);
}

#[tokio::test]
async fn a_confirmation_code_of_a_blocked_client_is_refused() {
    let world = World::new();
    let ann = ann();
    let (transcript, _, code) = with_open_confirmation(&world, "v1", "a cake").await;
    world.model.call_tools(vec![call("2", "block", json!({ "what": "them" }))]);
    transcript.send(&world, ann.clone(), "v1", "…").await;
    let transcript = Transcript {
        before: transcript.0.clone(),
        text: format!("approve {code}"),
        fingerprint: "f".into(),
        is_retry: false,
    };
    let refused = world.agent.complete(&ann, Address::Chat("v1"), transcript).await.unwrap_err();
    assert!(refused.block().is_some(), "{refused}");
    assert_eq!(world.runs("pay"), 0);
}

#[test]
fn a_code_comes_with_the_reason_for_asking_where_there_is_one() {
    let mut request = ConfirmationRequest {
        token: Some(ConfirmationToken::new("qdc_1")),
        expires: 1,
        tool: "draw".into(),
        args: json!({ "what": "a fox" }),
        preview: "Draw a fox".into(),
        reason: None,
        confirm_by: ConfirmBy::Any,
        code: None,
    };
    assert!(format_confirmation(&request).contains("> ```text\n> Draw a fox\n>\n> {\n"));
    request.reason = Some("It touches on “```”.".into());
    let text = format_confirmation(&request);
    assert!(text.contains("> ````text\n> Draw a fox\n>\n> It touches on “```”.\n>\n> {\n"), "{text}");
}
