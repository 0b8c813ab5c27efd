//! A handler's look at a call before the user is asked to approve it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{
    CapabilityCall, CapabilityErrorCode, Context, NATIVE_KIND, NativeHandler, Precheck,
};
use quarterdeck_contracts::{
    Capability, ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, ToolError, native_source_hash,
};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, ConfirmationMode, Connection, Hosts, NativeHost, Orchestrator, Registry,
    Reply, RuntimeParts, Session, Snapshot,
};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Value, json};

const HANDLER: &str = "pub async fn execute() {}";

/// What the arguments tell it to do.
async fn precheck(args: Value, context: Arc<dyn Context>) -> Result<Precheck, ToolError> {
    match args["what"].as_str().unwrap() {
        "taken" => Err(ToolError::new(ErrorType::Conflict, "It is taken.")),
        "panics" => panic!("of the test"),
        "never ends" => std::future::pending().await,
        "writes" => {
            let args = vec![json!("key"), json!(1)];
            let put = CapabilityCall { capability: Capability::STORE, method: "put".into(), args };
            let refused = context.request(put).await.unwrap_err();
            assert_eq!(refused.code, CapabilityErrorCode::InvalidArgument);
            Ok(Precheck { preview: Some("It could not write.".into()), seen: Value::Null })
        }
        _ => {
            Ok(Precheck { preview: Some("Do it\nto “A\u{202e}”".into()), seen: json!({ "version": 7 }) })
        }
    }
}

async fn execute(_: Value, context: Arc<dyn Context>) -> Result<Value, ToolError> {
    Ok(context.facts().seen.clone())
}

fn snapshot() -> Arc<Snapshot> {
    let files = tree("");
    let definition = json!({
        "toolId": "change", "version": "1.0.0", "description": "Changes it.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text"],
        "latencyBudgetMs": 500, "timeoutMs": 1000, "capabilities": ["store"], "preview": "Do {what}",
        "parameters": { "type": "object", "additionalProperties": false, "required": ["what"], "properties": {
            "what": { "type": "string", "description": "What." } } },
    });
    files.write("change/schema.json", definition.to_string());
    files.write("change/guide.md", "# Change\n\nChanges it.\n");
    files.write("change/handler.rs", HANDLER);
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let inspector = NativeInspector::new([("change".to_owned(), hash.clone())]);
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let handler =
        NativeHandler::new("change", Box::leak(hash.into_boxed_str()), execute).with_precheck(precheck);
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new([handler])));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap().snapshot()
}

async fn open(mode: ConfirmationMode) -> (Session, Connection) {
    let orchestrator = Orchestrator::new(RuntimeParts::new(new_store()));
    let session = orchestrator.open(Client::anonymous("ann"), Mode::Text, snapshot()).await.unwrap();
    session.begin_turn(None);
    let connection = session.connect_with(mode);
    (session, connection)
}

async fn ask(connection: &Connection, what: &str) -> (Reply, Option<ConfirmationRequest>) {
    let call = Call::new("change", json!({ "what": what }));
    let reply = connection.submit(vec![call]).all().await.remove(0);
    let mut asked = None;
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            asked = Some(request);
        }
    }
    (reply, asked)
}

#[tokio::test]
async fn what_the_handler_refuses_is_answered_and_the_user_is_not_asked() {
    for mode in [ConfirmationMode::Suspend, ConfirmationMode::AnswerFirst] {
        let (_session, connection) = open(mode).await;
        let (reply, asked) = ask(&connection, "taken").await;
        let Reply::Answer(answer) = reply else { panic!("the call waits for approval") };
        assert!(asked.is_none());
        let response = json!(answer.response);
        assert_eq!(response["error"]["type"], "CONFLICT");
        assert_eq!(response["error"]["partialSideEffects"], false);
    }
}

#[tokio::test]
async fn the_user_sees_the_handlers_sentence_and_the_approved_call_what_it_saw() {
    let (session, connection) = open(ConfirmationMode::AnswerFirst).await;
    let (_, asked) = ask(&connection, "anything").await;
    let request = asked.expect("the user is asked");
    assert_eq!(request.preview, "Do it⏎to “A⟨U+202E⟩”", "on one line, with nothing hidden");
    let token = request.token.as_ref().unwrap().expose();
    let answer = session.resolve_confirmation(token, ConfirmationAnswer::Approve).await;
    assert_eq!(json!(answer.response)["data"], json!({ "version": 7 }));
}

#[tokio::test]
async fn a_look_cannot_write() {
    let (_session, connection) = open(ConfirmationMode::AnswerFirst).await;
    let (_, asked) = ask(&connection, "writes").await;
    assert_eq!(asked.expect("the user is asked").preview, "It could not write.");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_or_does_not_end_is_answered_and_did_nothing() {
    for what in ["panics", "never ends"] {
        let (_session, connection) = open(ConfirmationMode::Suspend).await;
        let asking = tokio::time::timeout(Duration::from_secs(600), ask(&connection, what));
        let (reply, asked) = asking.await.expect("it has a deadline");
        let Reply::Answer(answer) = reply else { panic!("the call waits for approval") };
        let response = json!(answer.response);
        assert!(asked.is_none());
        assert_eq!(
            (&response["error"]["type"], &response["error"]["retryable"]),
            (&json!("TRANSIENT"), &json!(true))
        );
        assert_eq!(response["error"]["partialSideEffects"], false);
    }
}
