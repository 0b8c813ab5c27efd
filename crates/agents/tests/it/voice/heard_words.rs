//! Long conversations with a pipeline, with interruptions at any time: what the model is shown, and what the journal has, is what
//! came out of the client's loudspeaker, word for word.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::ChatMessage;
use quarterdeck_testkit::ScriptedTurns;
use quarterdeck_testkit::sound::{Noise, speech};
use serde_json::{Value, json};

use super::harness::{ClientAction, FakeClient, ScriptedEngines, VoiceHarness};

const TURNS: usize = 20;
const SEEDS: u64 = 8;

/// A word that no other place of the conversation has.
fn word(turn: usize, place: usize) -> String {
    const CONSONANTS: &[u8] = b"bdfghklmnprstvwz";
    let syllable = |number: usize, vowel: char| format!("{}{vowel}", CONSONANTS[number % 16] as char);
    let rest = "n".repeat(place % 5);
    [syllable(turn / 16, 'a'), syllable(turn, 'o'), syllable(place / 16, 'i'), syllable(place, 'u'), rest]
        .concat()
}

/// A few sentences of different lengths, some longer than what is made ahead.
fn answer(turn: usize) -> String {
    let mut text = String::new();
    let mut place = 0;
    for words in [3 + turn % 4, 14 - turn % 7, 6] {
        let sentence: Vec<String> = (place..place + words).map(|place| word(turn, place)).collect();
        place += words;
        text.push_str(&format!("{}. ", sentence.join(" ")));
    }
    text.trim_end().to_owned()
}

/// Every third question is looked up, with words before and after.
fn turns() -> Value {
    let turn = |number: usize| {
        let say = json!({ "say": answer(number) });
        let look = json!({ "call": { "name": "look", "args": { "what": "x" } } });
        let steps = if number % 3 == 2 {
            json!([{ "say": format!("{} {}.", word(number, 90), word(number, 91)) }, look, say])
        } else {
            json!([say])
        };
        json!({ "begins": "speech", "heard": format!("Question {number}."), "steps": steps })
    };
    (0..TURNS)
        .map(turn)
        .chain([json!({ "begins": "text", "containing": "bye", "steps": [{ "say": "Bye." }] })])
        .collect()
}

/// Time passes for a client that plays what it gets, with a microphone that hears this.
async fn listen(client: &FakeClient, sound: &[i16]) {
    for frame in sound.chunks(320) {
        let next = tokio::time::Instant::now() + Duration::from_millis(20);
        let bytes = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        client.send(ClientAction::Audio(bytes)).await;
        client.play().await;
        tokio::time::sleep_until(next).await;
    }
}

fn silence(millis: u64) -> Vec<i16> {
    vec![0; 16 * millis as usize]
}

/// The words of the model's messages.
fn shown_words(messages: &[ChatMessage]) -> Vec<String> {
    let texts = messages.iter().filter_map(|message| match message {
        ChatMessage::Model(message) => Some(message.text()),
        _ => None,
    });
    texts.flat_map(|text| words_of(&text)).collect()
}

fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().filter(|word| *word != "…").map(str::to_owned).collect()
}

/// Returns how many answers were cut off.
async fn converse(seed: u64) -> usize {
    let engines = ScriptedEngines::new(ScriptedTurns::new(&turns()));
    let harness = VoiceHarness::with_model(engines.pipeline());
    let client = harness.call(CallRequest::default()).await;
    let mut noise = Noise(seed);
    let question = speech(Duration::from_millis(600), 0.4, 16_000);
    for _ in 0..TURNS {
        listen(&client, &[&question[..], &silence(900)].concat()).await;
        // From before the first word to after the last.
        let wait = (noise.sample() + 1.0) * 3_500.0;
        listen(&client, &silence(wait as u64)).await;
    }
    listen(&client, &silence(15_000)).await;
    client.send_text("Good bye").await;
    listen(&client, &silence(100)).await;

    let heard = engines.words_in(&client.heard_samples());
    let requests = engines.requests();
    let shown = shown_words(&requests.last().unwrap().messages);
    assert_eq!(shown, heard, "seed {seed}: the model is shown what was heard");
    let journal = harness.journal_answers().await;
    let journal: Vec<String> = journal.iter().flat_map(|text| words_of(text)).collect();
    assert_eq!(journal, heard, "seed {seed}: the journal has what was heard");
    let received = client.received();
    received.lines().filter(|line| *line == "interrupted").count()
}

#[tokio::test(start_paused = true)]
async fn after_twenty_interrupted_turns_the_history_is_what_was_heard_word_for_word() {
    let mut interruptions = 0;
    for seed in 1..=SEEDS {
        interruptions += converse(seed).await;
    }
    assert!(interruptions > 60, "only {interruptions} interruptions");
}
