//! What to do about the usual mistakes of a handler's author. They are told by the engine's words and the source line; where
//! neither is sure, there is no hint.

use quarterdeck_contracts::{AnswerError, CapabilitySpec, Methods};

/// What the tool's definition grants.
pub(crate) struct Declared {
    /// The file that says so: `weather/schema.json`.
    pub(crate) definition: String,
    pub(crate) capabilities: Vec<String>,
    pub(crate) network: Vec<String>,
}

/// Members of `context` beside the capabilities.
const CONTEXT_MEMBERS: [&str; 12] = [
    "clientId",
    "mode",
    "callId",
    "tool",
    "call",
    "session",
    "capabilities",
    "audit",
    "progress",
    "emit",
    "signal",
    "voice",
];

pub(crate) const REQUIRE: &str = "handlers are ES modules without packages and files: `import` from \"quarterdeck\" or from a file of this \
     folder, such as \"./parse.js\"; `fetch`, `URL` and `crypto` are there without an import";
pub(crate) const COMMON_JS: &str = "this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`";
const BUFFER: &str = "handlers have no Node globals: `TextEncoder`, `TextDecoder` and `Uint8Array` are there";
const SIGNATURE: &str = "`execute` gets one object: write `execute({ args, context })`";

/// `process.env`, and what to do about it.
pub(crate) fn environment(definition: &str) -> String {
    format!(
        "handlers have no process and no environment: declare a key under `secrets` in {definition}, and the server adds it \
         to requests; what is no secret is a constant of the handler"
    )
}

/// What an exception is explained with.
pub(crate) struct Exception<'a> {
    /// `ReferenceError: require is not defined`.
    pub(crate) head: &'a str,
    /// The source line that it was thrown on.
    pub(crate) line: &'a str,
    /// The line that exports `execute`.
    pub(crate) execute: &'a str,
}

/// What a thrown error most likely comes from.
pub(crate) fn of_exception(
    exception: &Exception<'_>,
    declared: &Declared,
    capabilities: &[CapabilitySpec],
) -> Option<String> {
    let Exception { head, line, execute } = exception;
    if let Some(name) = undefined_name(head) {
        return of_undefined(name, declared);
    }
    if head.starts_with("the answer cannot be written as JSON") {
        return Some("`data` is JSON: numbers, texts, lists and plain objects, no BigInt and nothing that contains itself".into());
    }
    let message = head.strip_prefix("TypeError: ")?;
    if message.contains("undefined") && has_separate_parameters(execute) {
        return Some(SIGNATURE.into());
    }
    let (member, method) = member_of_context(line)?;
    let spec = capabilities.iter().find(|spec| name_of(spec) == Some(member));
    if message.contains("not a function") {
        return of_method(member, method?, spec?);
    }
    let is_undefined = message.contains("undefined");
    if is_undefined && message.contains(&format!("'{member}'")) {
        return Some(SIGNATURE.into());
    }
    let is_known = spec.is_some() || CONTEXT_MEMBERS.contains(&member);
    (is_undefined && !is_known).then(|| of_unknown_member(member, declared, capabilities))
}

/// Whether `execute` is written as `execute(args, context)`, where `args` is the whole call.
fn has_separate_parameters(execute: &str) -> bool {
    let parameters = execute.split_once("execute").and_then(|(_, rest)| rest.split_once('('));
    let first = parameters.and_then(|(_, parameters)| parameters.trim_start().strip_prefix("args"));
    first.is_some_and(|rest| rest.trim_start().starts_with([',', ')']))
}

/// The name in `X is not defined`; one engine quotes it.
fn undefined_name(head: &str) -> Option<&str> {
    let name = head.strip_prefix("ReferenceError: ")?.strip_suffix(" is not defined")?;
    Some(name.trim_matches('\''))
}

fn of_undefined(name: &str, declared: &Declared) -> Option<String> {
    match name {
        "require" | "__dirname" | "__filename" => Some(REQUIRE.into()),
        "process" => Some(environment(&declared.definition)),
        "module" | "exports" => Some(COMMON_JS.into()),
        "Buffer" => Some(BUFFER.into()),
        "args" | "context" => Some(SIGNATURE.into()),
        _ => None,
    }
}

fn of_method(member: &str, method: &str, spec: &CapabilitySpec) -> Option<String> {
    let Methods::Object(_, methods) = spec.methods else { return None };
    if methods.contains(&method) {
        return None;
    }
    Some(format!("`context.{member}` has no `{method}`; it has {}", methods.join(", ")))
}

fn of_unknown_member(member: &str, declared: &Declared, capabilities: &[CapabilitySpec]) -> String {
    if member == "env" {
        return environment(&declared.definition);
    }
    let known: Vec<_> =
        capabilities.iter().filter(|spec| !spec.is_always_granted).filter_map(name_of).collect();
    format!(
        "`context` has no `{member}`; what a handler may use is {}, each declared under `capabilities` in {}",
        known.join(", "),
        declared.definition
    )
}

/// The member of `context` that a capability has.
fn name_of(spec: &CapabilitySpec) -> Option<&'static str> {
    match spec.methods {
        Methods::None => None,
        Methods::Object(member, _) | Methods::Function(member, _) => Some(member),
    }
}

/// In `context.kb.search(…)`: `kb`, and `search`.
fn member_of_context(line: &str) -> Option<(&str, Option<&str>)> {
    const CONTEXT: &str = "context";
    line.match_indices(CONTEXT).find_map(|(start, _)| {
        let is_inside_word = line[..start].ends_with(|letter: char| is_word(letter) || letter == '.');
        let (member, rest) = property(&line[start + CONTEXT.len()..]).filter(|_| !is_inside_word)?;
        Some((member, property(rest).map(|(method, _)| method)))
    })
}

/// The name in `.name…` or `?.name…`, and what follows it.
fn property(text: &str) -> Option<(&str, &str)> {
    let name = text.strip_prefix("?.").or_else(|| text.strip_prefix('.'))?;
    let end = name.find(|letter: char| !is_word(letter)).unwrap_or(name.len());
    (end > 0).then(|| name.split_at(end))
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// The line that `schema.json` lacks, with what it has already. `message` names it: `add "network": ["a.com"] to …`.
pub(crate) fn of_undeclared(message: &str, declared: &Declared) -> Option<String> {
    let (_, rest) = message.split_once('"')?;
    let (field, rest) = rest.split_once("\": [\"")?;
    let (missing, _) = rest.split_once("\"]")?;
    let known = match field {
        "capabilities" => &declared.capabilities,
        "network" => &declared.network,
        _ => return None,
    };
    let list: Vec<_> =
        known.iter().map(String::as_str).chain([missing]).map(|name| format!("\"{name}\"")).collect();
    Some(format!("write \"{field}\": [{}] in {}", list.join(", "), declared.definition))
}

/// What is wrong with the form of an answer; `returned` says what it was.
pub(crate) fn of_answer(error: &AnswerError, returned: &str) -> String {
    let returned = if returned.is_empty() { String::new() } else { format!("; it {returned}") };
    match error {
        AnswerError::NotAnObject | AnswerError::NoOk => {
            format!("end `execute` with `return {{ ok: true, data: … }};`{returned}")
        }
        _ => format!(
            "an answer is `{{ ok: true, data }}` or `{{ ok: false, error: {{ type, message }} }}`{returned}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::BUILT_IN_CAPABILITIES;

    use super::*;

    fn declared() -> Declared {
        Declared {
            definition: "weather/schema.json".into(),
            capabilities: vec!["store".into()],
            network: Vec::new(),
        }
    }

    fn hint(head: &str, line: &str) -> Option<String> {
        let execute = "export async function execute({ args, context }) {";
        of_exception(&Exception { head, line, execute }, &declared(), BUILT_IN_CAPABILITIES)
    }

    #[test]
    fn parameters_that_are_not_one_object_are_noticed() {
        let head = "TypeError: cannot read property 'trim' of undefined";
        for (execute, is_hinted) in [
            ("export async function execute(args, context) {", true),
            ("export const execute = async ( args ) => args.text.trim();", true),
            ("export async function execute({ args }) {", false),
            ("export async function execute(call) {", false),
            ("export async function execute(argsAndMore) {", false),
            ("", false),
        ] {
            let exception = Exception { head, line: "city.trim()", execute };
            let hint = of_exception(&exception, &declared(), BUILT_IN_CAPABILITIES);
            assert_eq!(hint.as_deref(), is_hinted.then_some(SIGNATURE), "{execute}");
        }
    }

    #[test]
    fn names_of_node_lead_to_what_is_there_instead() {
        for (name, hinted) in [
            ("require", REQUIRE),
            ("module", COMMON_JS),
            ("exports", COMMON_JS),
            ("Buffer", BUFFER),
            ("context", SIGNATURE),
        ] {
            assert_eq!(hint(&format!("ReferenceError: {name} is not defined"), "").as_deref(), Some(hinted));
            assert_eq!(
                hint(&format!("ReferenceError: '{name}' is not defined"), "").as_deref(),
                Some(hinted)
            );
        }
        assert_eq!(
            hint("ReferenceError: process is not defined", ""),
            Some(environment("weather/schema.json"))
        );
        assert_eq!(hint("ReferenceError: total is not defined", "return total;"), None);
    }

    #[test]
    fn a_member_that_context_does_not_have_is_named_with_those_it_has() {
        let unknown =
            hint("TypeError: cannot read property 'query' of undefined", "await context.db.query('x')")
                .unwrap();
        assert!(
            unknown.starts_with("`context` has no `db`; what a handler may use is kb, calendar,"),
            "{unknown}"
        );
        let method =
            hint("TypeError: not a function", "const hits = await context.kb.find(args.q);").unwrap();
        assert_eq!(method, "`context.kb` has no `find`; it has search, query, get");
        let signature =
            hint("TypeError: cannot read property 'kb' of undefined", "return context.kb.search({})");
        assert_eq!(signature.as_deref(), Some(SIGNATURE));
        for (head, line) in [
            ("TypeError: cannot read property 'x' of undefined", "args.list.x"),
            ("TypeError: cannot read property 'x' of undefined", "const a = context.session.state.x.x"),
            ("TypeError: not a function", "context.kb.search(args.list.map(1))"),
            ("TypeError: cannot read property 'x' of undefined", "mycontext.db.x"),
            ("Error: undefined", "context.db"),
        ] {
            assert_eq!(hint(head, line), None, "{head} {line}");
        }
    }

    #[test]
    fn the_line_to_write_keeps_what_is_declared_already() {
        let line = of_undeclared("add \"capabilities\": [\"kb\"] to schema.json to use this", &declared());
        assert_eq!(
            line.as_deref(),
            Some("write \"capabilities\": [\"store\", \"kb\"] in weather/schema.json")
        );
        let host =
            of_undeclared("add \"network\": [\"api.example.com\"] to schema.json to use this", &declared());
        assert_eq!(host.as_deref(), Some("write \"network\": [\"api.example.com\"] in weather/schema.json"));
        assert_eq!(of_undeclared("no such thing", &declared()), None);
    }
}
