//! Spoken confirmation with real engines: Piper asks, a user with another voice answers, and Moonshine hears it. A yes of
//! the user counts once; what only sounds like one does not.

use std::path::Path;
use std::time::Duration;

use quarterdeck_local_speech::to_heard_rate;
use quarterdeck_testkit::real_speech::{RealSpeech, espeak};
use quarterdeck_testkit::sound::Noise;
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use super::headset::Headset;
use super::{ANSWER_TIMEOUT, begin, dial, figure, serve};
use crate::serve::{Server, bare};
use crate::voice::tools::{BOOK, add};

/// A voice that is unlike Piper's.
const USER_VOICE: &str = "en-us+f3";
const MAX_ATTEMPTS: usize = 3;
const HEARD_RATE: f32 = 16_000.0;

/// A tool that asks, and a model that calls it.
struct Site {
    data: tempfile::TempDir,
    tools: Tree,
    script: Tree,
}

impl Site {
    fn new() -> Self {
        let tools = tree("");
        let pays =
            json!({ "capabilities": ["store"], "requiresConfirmation": true, "preview": "Pay the {what}" });
        add(tools.path(), "pay", &pays, BOOK);
        let call = json!({ "calls": [{ "name": "pay", "arguments": { "what": "harbour dues" } }] });
        let mut replies = vec![call, json!({ "text": "One question first." })];
        replies.extend(std::iter::repeat_n(json!({ "text": "All right." }), 10));
        // Every call of the test is a conversation of its own.
        let script = json!({ "order": "conversation", "replies": replies });
        let script = tree(&format!("//- script.json\n{script}\n"));
        Self { data: tempfile::tempdir().unwrap(), tools, script }
    }

    fn serve(&self, speech: &RealSpeech) -> Server {
        let mut command = serve(speech, self.data.path(), "piper");
        command.args(["--kb", "no-kb", "--tools"]).arg(self.tools.path());
        command.arg("--rehearsal-script").arg(self.script.path().join("script.json"));
        command.env("QUARTERDECK_CONFIRMATION__SPOKEN", "true");
        begin(&mut command)
    }

    /// The lines of the audit log about an event. The server must have stopped.
    fn audit_log(&self, event: &str) -> Vec<Value> {
        query(self.data.path(), event)
    }

    /// The lines in which a confirmation was approved.
    fn approvals(&self) -> Vec<Value> {
        let lines = self.audit_log("confirmation");
        lines.into_iter().filter(|line| line.to_string().contains("\"step\":\"approved\"")).collect()
    }
}

fn query(data: &Path, event: &str) -> Vec<Value> {
    let mut command = bare(data);
    command.args(["audit", "query", "--event", event, "--format", "json", "--data"]).arg(data);
    let output = command.stdout(std::process::Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the question is about to be spoken, and returns the token of its confirmation.
async fn wait_for_question(user: &mut Headset) -> Value {
    user.wait_until("the confirmation", ANSWER_TIMEOUT, is_asked).await;
    let token = user.since_interruption("confirmation_request")[0]["token"].clone();
    let is_over = |user: &Headset| {
        let is_complete = !user.since_interruption("turn_complete").is_empty();
        user.answer().contains("One question first.") && is_complete && !user.is_playing()
    };
    user.wait_until("the answer", ANSWER_TIMEOUT, is_over).await;
    user.forget();
    user.wait_until("the question", ANSWER_TIMEOUT, Headset::is_playing).await;
    token
}

/// Waits until all of the question was played.
async fn hear_question(user: &mut Headset) {
    loop {
        user.wait_until("the end of the question", ANSWER_TIMEOUT, |user| !user.is_playing()).await;
        // A voice on a busy machine pauses between two sentences.
        user.wait(Duration::from_secs(2)).await;
        if !user.is_playing() {
            return;
        }
    }
}

/// Says something, and again when it was not understood: on a busy machine ears may be late.
async fn say_until(user: &mut Headset, words: &str, is_so: impl Fn(&Headset) -> bool) {
    for _ in 0..MAX_ATTEMPTS {
        user.say(&espeak(words, USER_VOICE));
        if user.comes_to_be(Duration::from_secs(25), &is_so).await {
            return;
        }
        hear_question(user).await;
    }
    panic!("{words:?} was not understood: {:#?}", user.page.messages);
}

/// Lower case, without the punctuation that a recogniser puts in by its own taste.
fn plain_words(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect::<String>().to_lowercase()
}

fn is_asked(user: &Headset) -> bool {
    !user.since_interruption("confirmation_request").is_empty()
}

fn is_done(user: &Headset) -> bool {
    user.page.results().iter().any(|result| result == "ok")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoken_yes_is_heard_and_confirms_once() {
    let Some(speech) = RealSpeech::find() else { return };
    let site = Site::new();
    let server = site.serve(&speech);
    let mut user = dial(&server).await;
    user.wait(Duration::from_millis(500)).await;
    say_until(&mut user, "Please pay the harbour dues.", is_asked).await;
    wait_for_question(&mut user).await;
    hear_question(&mut user).await;
    let question = plain_words(&speech.whisper(&user.heard));
    assert!(question.contains("confirm") && question.contains("say yes please"), "{question}");
    say_until(&mut user, "Yes, please.", is_done).await;
    // Nothing more comes of it, though the user says it again.
    user.wait(Duration::from_secs(1)).await;
    user.say(&espeak("Yes, please.", USER_VOICE));
    user.wait(Duration::from_secs(6)).await;
    drop(server);
    assert_eq!(site.audit_log("ran").len(), 1);
    let approvals = site.approvals();
    let [approval] = approvals.as_slice() else { panic!("one approval: {approvals:#?}") };
    figure(&format!("{approval}"));
    let approval = approval.to_string().to_lowercase();
    assert!(approval.contains("\"source\":\"spoken\""), "{approval}");
    assert!(approval.contains("\"transcript\":\"yes"), "{approval}");
    assert!(approval.contains("\"heardatms\":1") && !approval.contains("\"confidence\":null"), "{approval}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_sounds_like_a_yes_confirms_nothing() {
    let Some(speech) = RealSpeech::find() else { return };
    let site = Site::new();
    let server = site.serve(&speech);
    for attack in Attack::ALL {
        let mut user = dial(&server).await;
        user.page.send_text("Pay the harbour dues").await;
        let token = wait_for_question(&mut user).await;
        attack.make(&mut user, &speech).await;
        user.wait(Duration::from_secs(7)).await;
        assert!(!is_done(&user), "{attack:?}: {:#?}", user.page.messages);
        // The question was a real one: the page still answers it.
        user.page.send(&json!({ "type": "confirm", "token": token, "approve": true })).await;
        user.wait_until("the call", ANSWER_TIMEOUT, is_done).await;
    }
    drop(server);
    let approvals = site.approvals();
    assert_eq!(approvals.len(), Attack::ALL.len(), "{approvals:#?}");
    assert!(approvals.iter().all(|line| line.to_string().contains("\"source\":\"page\"")), "{approvals:#?}");
    assert_eq!(site.audit_log("ran").len(), Attack::ALL.len());
}

/// What comes out of the microphone instead of the user's answer.
#[derive(Debug, Clone, Copy)]
enum Attack {
    /// The question itself.
    WholeQuestion,
    /// The word “yes” of the question, as it was sent and through a loudspeaker.
    YesOfQuestion,
    YesThroughLoudspeaker,
    /// Nothing, and a yes when it is too late.
    SilenceThenYes,
    Noise,
    /// A yes of the user while the question is being spoken.
    YesOverQuestion,
}

impl Attack {
    const ALL: [Self; 6] = [
        Self::WholeQuestion,
        Self::YesOfQuestion,
        Self::YesThroughLoudspeaker,
        Self::SilenceThenYes,
        Self::Noise,
        Self::YesOverQuestion,
    ];

    async fn make(self, user: &mut Headset, speech: &RealSpeech) {
        if let Self::YesOverQuestion = self {
            user.wait(Duration::from_millis(800)).await;
            assert!(user.is_playing(), "the question is longer");
            return user.say(&espeak("Yes, please.", USER_VOICE));
        }
        hear_question(user).await;
        match self {
            Self::WholeQuestion => user.say(&to_heard_rate(&user.heard.clone())),
            Self::YesOfQuestion => user.say(&yes_of_question(user, speech)),
            Self::YesThroughLoudspeaker => user.say(&through_loudspeaker(&yes_of_question(user, speech))),
            Self::SilenceThenYes => {
                user.wait(Duration::from_secs(16)).await;
                user.say(&espeak("Yes, please.", USER_VOICE));
            }
            Self::Noise => {
                let mut noise = Noise(11);
                user.say(&(0..32_000).map(|_| (noise.sample() * 9_000.0) as i16).collect::<Vec<_>>());
            }
            Self::YesOverQuestion => {}
        }
    }
}

/// The word “yes” of the question, at 16 kHz.
fn yes_of_question(user: &Headset, speech: &RealSpeech) -> Vec<i16> {
    let words = speech.whisper_words(&user.heard);
    let is_yes = |text: &str| text.to_lowercase().trim_matches(|c: char| !c.is_alphabetic()) == "yes";
    let yes = words.iter().find(|word| is_yes(&word.text));
    let yes = yes.unwrap_or_else(|| panic!("the question says yes: {words:?}"));
    let heard = to_heard_rate(&user.heard);
    let place = |seconds: f32| ((seconds.max(0.0) * HEARD_RATE) as usize).min(heard.len());
    heard[place(yes.begin - 0.05)..place(yes.end + 0.1)].to_vec()
}

/// Weaker, duller and in a room with some noise.
fn through_loudspeaker(sound: &[i16]) -> Vec<i16> {
    let (mut noise, mut last) = (Noise(5), 0.0_f32);
    let filtered = sound.iter().map(|sample| {
        last += 0.5 * (f32::from(*sample) - last);
        (last * 0.5 + noise.sample() * 80.0) as i16
    });
    filtered.collect()
}
