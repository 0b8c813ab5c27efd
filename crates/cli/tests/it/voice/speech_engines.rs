//! Engines that hear and speak over HTTP, for the tests: what was asked of them, and answers that are always the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A second of speech at 24 kHz, for every sentence.
const SPOKEN_BYTES: usize = 48_000;

#[derive(Clone)]
pub(super) struct SpeechEngines {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    /// The length of each utterance, in bytes of its file.
    utterances: Vec<usize>,
    sentences: Vec<String>,
}

impl SpeechEngines {
    /// Engines that understand these words, whatever is said.
    pub(super) fn start(understood: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let engines = Self { address: listener.local_addr().unwrap(), log: Arc::default() };
        let running = engines.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let running = running.clone();
                thread::spawn(move || running.answer(stream, understood));
            }
        });
        engines
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn utterances(&self) -> Vec<usize> {
        self.log.lock().unwrap().utterances.clone()
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        self.log.lock().unwrap().sentences.clone()
    }

    fn answer(&self, mut stream: TcpStream, understood: &str) {
        let (path, body) = read_request(&stream);
        let answer = match path.as_str() {
            "/v1/audio/transcriptions" => {
                self.log.lock().unwrap().utterances.push(body.len());
                let words = serde_json::json!({ "text": understood }).to_string();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{words}"
                )
                .into()
            }
            "/v1/audio/speech" => {
                let request: Value = serde_json::from_slice(&body).unwrap();
                let sentence = request["input"].as_str().unwrap().to_owned();
                self.log.lock().unwrap().sentences.push(sentence);
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\nconnection: close\r\n\r\n";
                [head.as_slice(), &[1; SPOKEN_BYTES]].concat()
            }
            _ => b"HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n".to_vec(),
        };
        // A call that is over has closed it.
        let _ = stream.write_all(&answer);
    }
}

/// The path and the body of a request.
fn read_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end();
        match line.to_ascii_lowercase().strip_prefix("content-length: ") {
            Some(number) => length = number.parse().unwrap(),
            None if line.is_empty() => break,
            None if path.is_empty() => path = line.split(' ').nth(1).unwrap().to_owned(),
            None => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (path, body)
}
