//! What servers of OpenAI's protocol take of JSON Schema, one row for each, and what all of them take.

/// What one server takes. What is not named it takes, or passes over.
struct Server {
    /// The most repetitions that its grammar counts; more of them are refused, or switch the grammar off.
    repetitions: u64,
    /// The formats that it knows; `None` when it passes over those that it does not know.
    formats: Option<&'static [&'static str]>,
    /// Keywords that make it refuse the request.
    refused: &'static [&'static str],
}

/// Also the engine of LM Studio. Patterns are written into a grammar of the JSON text, see `pattern.rs`.
const LLAMA_CPP: Server = Server { repetitions: 1_999, formats: None, refused: &["not"] };

/// Reads declarations into types of its own, in which a schema is never true or false, and hands them to llama.cpp.
const OLLAMA: Server = Server { repetitions: 1_999, formats: None, refused: &["not"] };

/// With xgrammar, its usual engine. It takes no length beside a pattern or a format.
const VLLM: Server = Server {
    repetitions: u64::MAX,
    formats: Some(&[
        "email",
        "date",
        "time",
        "date-time",
        "duration",
        "ipv4",
        "ipv6",
        "hostname",
        "uuid",
        "uri",
        "uri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
    ]),
    refused: &[
        "multipleOf",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "patternProperties",
        "propertyNames",
    ],
};

const SERVERS: [Server; 3] = [LLAMA_CPP, OLLAMA, VLLM];

/// What every server takes.
pub(super) struct Common {
    pub(super) repetitions: u64,
}

impl Default for Common {
    fn default() -> Self {
        let repetitions = SERVERS.iter().map(|server| server.repetitions).min();
        Self { repetitions: repetitions.unwrap_or(u64::MAX) }
    }
}

impl Common {
    pub(super) fn takes(&self, keyword: &str) -> bool {
        !SERVERS.iter().any(|server| server.refused.contains(&keyword))
    }

    pub(super) fn takes_format(&self, name: &str) -> bool {
        SERVERS.iter().all(|server| server.formats.is_none_or(|known| known.contains(&name)))
    }
}

/// Every keyword that some server refuses.
pub(super) fn refused() -> impl Iterator<Item = &'static &'static str> {
    SERVERS.iter().flat_map(|server| server.refused)
}
