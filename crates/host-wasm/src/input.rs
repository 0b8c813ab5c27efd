//! The JSON that `execute` is given: `{ "args": …, "context": … }`, with the facts that handlers in JavaScript find in theirs.

use std::collections::BTreeMap;

use quarterdeck_contracts::handler::{CallFacts, SessionFacts, ToolFacts};
use quarterdeck_contracts::{CapabilitySpec, Mode};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct CallInput<'a> {
    args: &'a Value,
    context: ContextInput<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextInput<'a> {
    client_id: &'a str,
    mode: Mode,
    call_id: &'a str,
    tool: &'a ToolFacts,
    call: CallFactsInput<'a>,
    session: &'a SessionFacts,
    capabilities: CapabilitiesInput<'a>,
    voice: VoiceInput,
}

#[derive(Serialize)]
struct CallFactsInput<'a> {
    id: &'a str,
    clamped: &'a BTreeMap<String, Value>,
}

/// What may be used. Those that need not be declared are there, but for those that every context has without a name.
type CapabilitiesInput<'a> = BTreeMap<&'a str, bool>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VoiceInput {
    is_active: bool,
}

/// Writes the input of a call.
pub(crate) fn call_json(args: &Value, facts: &CallFacts, capabilities: &[CapabilitySpec]) -> String {
    let context = ContextInput {
        client_id: &facts.client_id,
        mode: facts.mode,
        call_id: &facts.call_id,
        tool: &facts.tool,
        call: call_facts(facts),
        session: &facts.session,
        capabilities: capabilities_of(facts, capabilities),
        voice: voice_of(facts),
    };
    written(&CallInput { args, context })
}

/// Writes the arguments alone.
pub(crate) fn args_json(args: &Value) -> String {
    written(args)
}

/// Writes one fact of a call, by its name in the context of the input.
pub(crate) fn fact_json(name: &str, facts: &CallFacts, capabilities: &[CapabilitySpec]) -> Option<String> {
    Some(match name {
        "clientId" => written(&facts.client_id),
        "mode" => written(&facts.mode),
        "callId" => written(&facts.call_id),
        "tool" => written(&facts.tool),
        "call" => written(&call_facts(facts)),
        "session" => written(&facts.session),
        "capabilities" => written(&capabilities_of(facts, capabilities)),
        "voice" => written(&voice_of(facts)),
        _ => return None,
    })
}

fn written(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("the input has string keys and no failing parts")
}

fn call_facts(facts: &CallFacts) -> CallFactsInput<'_> {
    CallFactsInput { id: &facts.call_id, clamped: &facts.clamped }
}

fn capabilities_of<'a>(facts: &CallFacts, capabilities: &'a [CapabilitySpec]) -> CapabilitiesInput<'a> {
    let declarable = capabilities.iter().filter(|spec| !spec.is_always_granted);
    let declared = declarable.map(|spec| (spec.name, facts.capabilities.contains(&spec.capability())));
    let always = ["messaging", "audit", "progress"].map(|name| (name, true));
    let voice = ("voice", facts.mode == Mode::Voice);
    always.into_iter().chain([voice]).chain(declared).collect()
}

fn voice_of(facts: &CallFacts) -> VoiceInput {
    VoiceInput { is_active: is_speaking(facts) }
}

/// Whether a voice conversation goes on, as `context.voice.isActive()` says it in JavaScript.
fn is_speaking(facts: &CallFacts) -> bool {
    let state = |name: &str| facts.session.state.get(name).filter(|value| !value.is_null());
    if let Some(active) = state("voiceActive") {
        return active.as_bool().unwrap_or(false);
    }
    let is_voice = match state("mode") {
        Some(mode) => mode == "voice",
        None => facts.mode == Mode::Voice,
    };
    let is_active = state("isActive").map_or(facts.session.is_active, |active| active == true);
    is_voice && is_active
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::BUILT_IN_CAPABILITIES;
    use quarterdeck_contracts::handler::Context;
    use quarterdeck_testkit::FakeContext;
    use serde_json::json;

    use super::*;

    #[test]
    fn input_has_the_facts_of_the_call() {
        let context = FakeContext::in_voice();
        let text = call_json(&json!({ "n": 1 }), context.facts(), BUILT_IN_CAPABILITIES);
        let input: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            input,
            json!({
                "args": { "n": 1 },
                "context": {
                    "clientId": "client_1",
                    "mode": "voice",
                    "callId": "call_1",
                    "tool": { "id": "tool", "version": "1.0.0", "idempotent": true },
                    "call": { "id": "call_1", "clamped": {} },
                    "session": {
                        "id": "session_1", "isActive": true, "turn": 1, "toolsVersion": "1.0.00000000",
                        "state": { "isActive": true, "mode": "voice" },
                    },
                    "capabilities": {
                        "audit": true, "calendar": true, "images": true, "kb": true, "messaging": true,
                        "moderation": true, "progress": true, "store": true, "tools": true, "voice": true,
                    },
                    "voice": { "isActive": true },
                },
            })
        );
    }
    #[test]
    fn facts_are_those_of_the_whole_input() {
        let context = FakeContext::in_voice();
        let facts = context.facts();
        let text = call_json(&json!({}), facts, BUILT_IN_CAPABILITIES);
        let input: Value = serde_json::from_str(&text).unwrap();
        for (name, value) in input["context"].as_object().unwrap() {
            let fact = fact_json(name, facts, BUILT_IN_CAPABILITIES).unwrap();
            assert_eq!(&serde_json::from_str::<Value>(&fact).unwrap(), value, "{name}");
        }
        assert_eq!(fact_json("secrets", facts, BUILT_IN_CAPABILITIES), None);
    }
}
