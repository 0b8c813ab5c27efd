//! Frames of the client, in camelCase or in snake_case.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClientFrame {
    Setup(Value),
    Realtime(Vec<Realtime>),
    Content { turns: Vec<ContentTurn>, is_complete: bool },
    ToolResponse(Vec<FunctionResponse>),
    Context { system: Option<Value>, tools: Option<Value> },
}

/// A part of `realtimeInput`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Realtime {
    /// Samples and their rate.
    Audio(Vec<i16>, u32),
    Video,
    Text(String),
    AudioEnded,
    ActivityStart,
    ActivityEnd,
}

/// A turn of `clientContent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentTurn {
    pub(super) is_model: bool,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FunctionResponse {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) response: Option<Value>,
    pub(super) scheduling: Scheduling,
    pub(super) will_continue: bool,
}

/// When the model speaks about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduling {
    WhenIdle,
    Interrupt,
    Silent,
}

const FRAMES: [&str; 5] = ["setup", "realtimeInput", "clientContent", "toolResponse", "contextUpdate"];

impl ClientFrame {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("a frame is no JSON: {error}"))?;
        let Value::Object(fields) = &value else { return Err("a frame is no object".into()) };
        let mut names = fields.keys();
        let (Some(name), None) = (names.next(), names.next()) else {
            let names: Vec<_> = fields.keys().take(8).map(|name| quote(name)).collect();
            return Err(format!(
                "a frame has {} top-level keys instead of one ({})",
                fields.len(),
                names.join(", ")
            ));
        };
        let known = FRAMES.into_iter().find(|known| is_named(name, known));
        let Some(known) = known else { return Err(format!("a frame has the unknown key {}", quote(name))) };
        let inside = &fields[name];
        if !inside.is_object() {
            return Err(format!("{known} is no object"));
        }
        match known {
            "setup" => Ok(Self::Setup(inside.clone())),
            "realtimeInput" => realtime(inside).map(Self::Realtime),
            "clientContent" => content(inside),
            "toolResponse" => answers(inside).map(Self::ToolResponse),
            _ => Ok(Self::Context {
                system: find(inside, "systemInstruction").cloned(),
                tools: find(inside, "tools").and_then(|tools| find(tools, "tools")).cloned(),
            }),
        }
    }
}

/// A field by its name in camelCase, in either spelling.
pub(super) fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = value.as_object()?;
    fields.get(name).or_else(|| fields.get(&snake(name))).filter(|value| !value.is_null())
}

/// The text of a content.
pub(super) fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = find(content, "parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| find(part, "text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn realtime(inside: &Value) -> Result<Vec<Realtime>, String> {
    let mut all = Vec::new();
    for (name, value) in inside.as_object().into_iter().flatten() {
        let is = |known: &str| is_named(name, known);
        if is("audio") {
            all.push(media(value)?);
        } else if is("mediaChunks") {
            for blob in value.as_array().into_iter().flatten() {
                all.push(media(blob)?);
            }
        } else if is("video") {
            all.push(Realtime::Video);
        } else if is("text") {
            let text = value.as_str().ok_or("realtimeInput.text is no text")?;
            all.push(Realtime::Text(text.to_owned()));
        } else if is("audioStreamEnd") {
            all.extend((value == &Value::Bool(true)).then_some(Realtime::AudioEnded));
        } else if is("activityStart") {
            all.push(Realtime::ActivityStart);
        } else if is("activityEnd") {
            all.push(Realtime::ActivityEnd);
        } else {
            return Err(format!("realtimeInput has the unknown key {}", quote(name)));
        }
    }
    Ok(all)
}

fn media(blob: &Value) -> Result<Realtime, String> {
    let kind = find(blob, "mimeType").and_then(Value::as_str).unwrap_or_default();
    if !kind.starts_with("audio/") {
        return Ok(Realtime::Video);
    }
    let data = find(blob, "data").and_then(Value::as_str).ok_or("a piece of audio has no data")?;
    let bytes = base64_simd::forgiving_decode_to_vec(data.as_bytes()).map_err(|_| "audio is no base64")?;
    let (samples, half) = bytes.as_chunks::<2>();
    if !half.is_empty() {
        return Err("a piece of audio ends in the middle of a sample".into());
    }
    let rate = kind.split(';').find_map(|part| part.trim().strip_prefix("rate=")?.parse().ok());
    let rate = rate.unwrap_or(16_000);
    if !(8_000..=96_000).contains(&rate) {
        return Err(format!("audio has a rate of {rate}"));
    }
    Ok(Realtime::Audio(samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect(), rate))
}

fn content(inside: &Value) -> Result<ClientFrame, String> {
    let turns = match find(inside, "turns") {
        None => &[],
        Some(Value::Array(turns)) => turns.as_slice(),
        Some(_) => return Err("clientContent.turns is no list".into()),
    };
    let said = |turn: &Value| match find(turn, "role").and_then(Value::as_str) {
        None | Some("user") => Ok(ContentTurn { is_model: false, text: text_of(turn) }),
        Some("model") => Ok(ContentTurn { is_model: true, text: text_of(turn) }),
        Some(other) => Err(format!("clientContent has the role {}", quote(other))),
    };
    let turns = turns.iter().map(said).collect::<Result<_, _>>()?;
    let is_complete = find(inside, "turnComplete") == Some(&Value::Bool(true));
    Ok(ClientFrame::Content { turns, is_complete })
}

fn answers(inside: &Value) -> Result<Vec<FunctionResponse>, String> {
    let list = find(inside, "functionResponses").and_then(Value::as_array);
    let list = list.filter(|list| !list.is_empty()).ok_or("toolResponse has no functionResponses")?;
    let text = |value: &Value, name: &str| find(value, name).and_then(Value::as_str).map(str::to_owned);
    let answer = |value: &Value| {
        let scheduling = match text(value, "scheduling").as_deref() {
            None | Some("WHEN_IDLE" | "SCHEDULING_UNSPECIFIED") => Scheduling::WhenIdle,
            Some("INTERRUPT") => Scheduling::Interrupt,
            Some("SILENT") => Scheduling::Silent,
            Some(other) => return Err(format!("an answer has the scheduling {}", quote(other))),
        };
        Ok(FunctionResponse {
            id: text(value, "id"),
            name: text(value, "name"),
            response: find(value, "response").cloned(),
            scheduling,
            will_continue: find(value, "willContinue") == Some(&Value::Bool(true)),
        })
    };
    list.iter().map(answer).collect()
}

fn is_named(name: &str, camel: &str) -> bool {
    name == camel || name == snake(camel)
}

fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// A client's text in quotes, shortened.
pub(super) fn quote(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    format!("“{short}”")
}
