//! `image_generate` from a user's words to the file, with servers that speak the providers' documented formats.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use quarterdeck_contracts::find_phrase;
use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command, say};

/// A picture of 12 by 8 pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAwAAAAICAIAAABChommAAAAEUlEQVR42mMQsakgiBhGFQEAOi1LAYe7qoMAAAAASUVORK5CYII=";

/// A provider of images that answers by a script, one entry for each request. An empty entry closes the connection.
struct ImageServer {
    address: SocketAddr,
    /// Heads and bodies of what it was sent.
    requests: mpsc::Receiver<String>,
}

impl ImageServer {
    fn start(script: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for (answer, mut stream) in script.iter().zip(listener.incoming().map(Result::unwrap)) {
                sender.send(read_request(&stream)).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { address, requests }
    }

    /// What it was sent since the last look.
    fn seen(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(number) = line.trim_end().to_ascii_lowercase().strip_prefix("content-length: ") {
            length = number.parse().unwrap();
        }
        head.push_str(&line);
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn answer(status: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn openai_image(base64: &str) -> Value {
    json!({ "created": 1, "data": [{ "b64_json": base64 }], "output_format": "png" })
}

fn gemini_image() -> Value {
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": PICTURE } });
    json!({ "candidates": [{ "content": { "parts": [image] }, "finishReason": "STOP" }] })
}

/// The model asks for an image.
fn asks(prompt: &str) -> Value {
    let arguments = json!({ "prompt": prompt, "aspect": "landscape" });
    json!({ "calls": [{ "name": "image_generate", "arguments": arguments }] })
}

/// The model asks for an image, and says a word about what it hears.
fn asks_and_speaks(prompt: &str) -> [Value; 2] {
    [asks(prompt), json!({ "text": "So be it." })]
}

/// A server whose model gives these replies.
fn start(data: &Path, provider: &str, images: SocketAddr, replies: &[Value]) -> Server {
    let script = data.join("script.json");
    std::fs::write(&script, json!(replies).to_string()).unwrap();
    let (base, key) = match provider {
        "openai" => (format!("http://{images}/v1"), "OPENAI_API_KEY"),
        _ => (format!("http://{images}"), "GEMINI_API_KEY"),
    };
    let mut command = command(&data.join("data"), ANYWHERE);
    command
        .args(["--rehearsal-script", script.to_str().unwrap()])
        .env("QUARTERDECK_IMAGES__PROVIDER", provider)
        .env("QUARTERDECK_IMAGES__BASE_URL", base)
        .env("QUARTERDECK_TEXT__PROVIDER", "rehearsal")
        .env("QUARTERDECK_VOICE__PROVIDER", "simulator")
        .env(key, "sk-a-key-for-images");
    Server::begin(&mut command)
}

fn part<'a>(parts: &'a [Value], kind: &str) -> Option<&'a Value> {
    parts.iter().find(|part| part["type"] == kind)
}

/// The lines of the audit trail about calls that ran.
fn executions(data: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(data.join("data/audit.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "tool_execution").collect()
}

#[test]
fn an_image_that_was_asked_for_is_generated_by_either_provider_kept_and_served() {
    for (provider, reply, path) in [
        ("openai", openai_image(PICTURE), "POST /v1/images/generations "),
        ("gemini", gemini_image(), "POST /v1beta/models/gemini-nano-banana-2.1:generateContent "),
    ] {
        let data = tempfile::tempdir().unwrap();
        let images = ImageServer::start(vec![answer("200 OK", "", &reply)]);
        let server = start(data.path(), provider, images.address, &asks_and_speaks("A red fox in snow"));
        let (cookie, parts) = say(&server, "", json!({ "id": "c", "message": "Please draw a red fox." }));
        assert!(part(&parts, "data-confirmation").is_none(), "the user asked for it");
        let output = &part(&parts, "tool-output-available").unwrap()["output"]["data"];
        let file = &output["files"][0];
        assert_eq!(
            (&file["width"], &file["media_type"], &file["alt"]),
            (&json!(12), &json!("image/png"), &json!("A red fox in snow"))
        );
        let shown = &part(&parts, "data-file").unwrap()["data"];
        assert_eq!((&shown["alt"], &shown["id"]), (&json!("A red fox in snow"), &file["id"]));
        let requests = images.seen();
        assert!(requests.len() == 1 && requests[0].starts_with(path), "{requests:?}");
        // The bytes are not text, so only the head is looked at.
        let url = shown["url"].as_str().unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {url} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address)
            .unwrap();
        let mut served = Vec::new();
        stream.read_to_end(&mut served).unwrap();
        let head = String::from_utf8_lossy(&served).into_owned();
        assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("content-type: image/png"), "{head}");
        assert!(served.ends_with(b"IEND\xae\x42\x60\x82"), "the whole picture");
        let (status, _, stored) = server.ask("GET", "/api/sessions/c", &cookie, "");
        assert!(status == 200 && stored.contains("data-file") && stored.contains("signature="), "{stored}");
        let log = std::fs::read_to_string(data.path().join("data/audit.jsonl")).unwrap();
        assert!(
            !log.contains("sk-a-key") && !log.contains("signature="),
            "no key and no link is on the record"
        );
    }
}

#[test]
fn failures_of_a_provider_have_their_types_and_only_what_was_turned_away_is_tried_again() {
    let blocked = json!({ "error": { "message": "no", "type": "image_generation_user_error", "code": "moderation_blocked" } });
    let oops = json!({ "error": { "message": "oops", "type": "server_error" } });
    let busy = answer("429 Too Many Requests", "retry-after-ms: 20\r\n", &json!({}));
    let cases = [
        (vec![answer("400 Bad Request", "", &blocked)], Some("PERMANENT")),
        (vec![answer("401 Unauthorized", "", &json!({}))], Some("AUTH")),
        (
            vec![
                busy.clone(),
                answer("503 Service Unavailable", "", &json!({})),
                answer("200 OK", "", &openai_image(PICTURE)),
            ],
            None,
        ),
        (vec![busy.clone(), busy.clone(), busy.clone(), busy], Some("RATE_LIMIT")),
        (vec![answer("500 Internal Server Error", "", &oops)], Some("TRANSIENT")),
        (vec![String::new()], Some("TRANSIENT")),
        (vec![answer("200 OK", "", &openai_image("PHN2Zz4="))], Some("TRANSIENT")),
    ];
    let replies: Vec<Value> =
        (0..cases.len()).flat_map(|index| asks_and_speaks(&format!("A fox, number {index}"))).collect();
    let data = tempfile::tempdir().unwrap();
    let images = ImageServer::start(cases.iter().flat_map(|(script, _)| script.clone()).collect());
    let server = start(data.path(), "openai", images.address, &replies);
    let mut cookie = String::new();
    for (index, (script, expected)) in cases.iter().enumerate() {
        let (known, parts) =
            say(&server, &cookie, json!({ "id": "c", "message": format!("Draw a fox, number {index}") }));
        cookie = known;
        assert_eq!(images.seen().len(), script.len(), "case {index}: {parts:?}");
        assert_eq!(part(&parts, "data-file").is_some(), expected.is_none(), "case {index}: {parts:?}");
        assert_eq!(
            part(&parts, "tool-output-error").is_some(),
            expected.is_some(),
            "case {index}: {parts:?}"
        );
    }
    server.signal("-TERM");
    server.ended();
    let types: Vec<Option<String>> =
        executions(data.path()).iter().map(|line| line["errorType"].as_str().map(str::to_owned)).collect();
    let expected: Vec<Option<String>> = cases.iter().map(|(_, kind)| kind.map(str::to_owned)).collect();
    assert_eq!(types, expected);
}

#[test]
fn an_image_that_was_not_asked_for_or_is_on_a_sensitive_topic_waits_for_approval() {
    let data = tempfile::tempdir().unwrap();
    let images = ImageServer::start(vec![answer("200 OK", "", &openai_image(PICTURE))]);
    let replies = ["A harbour", "A duel with guns", "A harbour at night"].map(asks);
    let server = start(data.path(), "openai", images.address, &replies);
    let message = |text: &str| json!({ "id": "c", "message": text });
    let (cookie, parts) = say(&server, "", message("Tell me about harbours."));
    assert!(part(&parts, "data-confirmation").is_some(), "{parts:?}");
    let (cookie, parts) = say(&server, &cookie, message("Draw a duel."));
    assert!(part(&parts, "data-confirmation").is_some(), "{parts:?}");
    assert!(images.seen().is_empty(), "nothing is paid for before the user has said so");
    let (_, parts) = say(&server, &cookie, message("Never draw it. What is a harbour at night like?"));
    assert!(part(&parts, "data-confirmation").is_some(), "{parts:?}");
}

#[test]
fn words_that_ask_for_an_image_are_known_in_six_languages_and_others_are_not_taken_for_them() {
    let schema = include_str!("../../../../tools/image-generate/schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let languages = schema["requestedBy"].as_object().unwrap();
    let phrases: Vec<&str> = languages
        .values()
        .flat_map(|phrases| phrases.as_array().unwrap())
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(languages.len(), 6);
    for asking in [
        "Draw a red fox",
        "Please draw me a map of the harbour!",
        "Could you generate an image of a paper boat?",
        "Nice. Can you make a picture of it at night?",
        "I would like an image of two engineers.",
        "Zeichne mir einen Fuchs.",
        "Kannst du mir ein Bild von einem Hafen erstellen?",
        "Dessine-moi un mouton.",
        "Crée une image de bateau.",
        "Dibújame un faro.",
        "Crea una imagen de un barco",
        "Disegnami una volpe.",
        "Tegn en båt.",
        "Kan du lage et bilde av en båt?",
    ] {
        assert!(find_phrase(phrases.iter().copied(), asking).is_some(), "{asking}");
    }
    for not_asking in [
        "Never draw a fox.",
        "Do not make a picture of me.",
        "How do I draw a fox?",
        "Who painted the picture in the hall?",
        "Describe the image.",
        "Mal sehen.",
        "Kannst du das Bild beschreiben?",
        "What does “draw me a fox” mean?",
        "",
    ] {
        assert_eq!(find_phrase(phrases.iter().copied(), not_asking), None, "{not_asking}");
    }
}

#[test]
fn without_a_provider_it_is_not_offered_and_says_so_when_it_is_called() {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    let call = json!({ "name": "image_generate", "arguments": { "prompt": "A red fox" } });
    std::fs::write(&script, json!([{ "calls": [call] }, { "text": "I cannot." }]).to_string()).unwrap();
    let server = Server::start(&data.path().join("data"), &["--rehearsal-script", script.to_str().unwrap()]);
    let (_, parts) = say(&server, "", json!({ "message": "Draw a red fox." }));
    let error = part(&parts, "tool-output-error").unwrap()["errorText"].as_str().unwrap();
    assert_eq!(error, "image_generate is not available: `images` is not configured.");
}
