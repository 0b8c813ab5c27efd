//! A small HTTP server whose answers are a function of the requests, and which can cut connections.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn form(&self, name: &str) -> Option<String> {
        let pairs = url::form_urlencoded::parse(self.body.as_bytes());
        pairs.into_owned().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

pub(crate) enum Answer {
    Reply {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Close the connection without an answer.
    Cut,
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::Reply {
            status,
            headers: vec![("content-type", "application/json".into())],
            body: body.to_string(),
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::Reply { status, headers: Vec::new(), body: String::new() }
    }
}

/// Serves until the runtime ends, and returns the address.
pub(crate) async fn serve(answer: impl Fn(Request) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move { connection(socket, &*answer).await });
        }
    });
    url
}

async fn connection(mut socket: TcpStream, answer: &(impl Fn(Request) -> Answer + ?Sized)) {
    while let Some(request) = read_request(&mut socket).await {
        match answer(request) {
            Answer::Cut => return,
            Answer::Reply { status, headers, body } => {
                let mut head = format!("HTTP/1.1 {status} Answer\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                let answer = if status == 204 {
                    "HTTP/1.1 204 None\r\n\r\n".into()
                } else {
                    format!("{head}\r\n{body}")
                };
                if socket.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let mut chunk = [0; 4096];
        match socket.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head_end + length {
        let mut chunk = [0; 4096];
        match socket.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    let url = url::Url::parse("http://server").unwrap().join(&target).unwrap();
    Some(Request {
        method,
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        headers,
        body: String::from_utf8_lossy(&bytes[head_end..]).into_owned(),
    })
}
