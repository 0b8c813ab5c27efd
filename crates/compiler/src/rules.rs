//! Every rule that the compiler knows, with a code that never changes its meaning.
//!
//! One entry here gives the code in a diagnostic, the text of `quarterdeck explain`, and a line in the
//! troubleshooting table of `tools/README.md`.

use crate::Severity::{self, Error, Warning};

/// A rule that tool folders are held to.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable: `QD0104`.
    pub code: &'static str,
    /// Stable, readable: `retrieval-writes`.
    pub name: &'static str,
    /// What breaking it means.
    pub severity: Severity,
    /// Why the rule exists and how to satisfy it.
    pub explanation: &'static str,
}

/// The rule of that code or name.
pub fn find(code_or_name: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.code.eq_ignore_ascii_case(code_or_name) || rule.name == code_or_name)
}

macro_rules! rules {
    ($($constant:ident = $code:literal $name:literal $severity:ident $explanation:literal;)*) => {
        $(pub(crate) static $constant: Rule =
            Rule { code: $code, name: $name, severity: $severity, explanation: $explanation };)*
        /// Every rule, in the order of its code.
        pub static ALL: &[&Rule] = &[$(&$constant),*];
    };
}

rules! {
    // The folder and its files.
    NO_TOOLS = "QD0001" "no-tools" Error
        "The tools folder holds no tool. A tool is a folder whose name does not begin with `_` or `.`. Check `--tools`, or make a first one with `quarterdeck new NAME`.";
    MISSING_FILE = "QD0002" "missing-file" Error
        "A tool folder has `schema.json`, `guide.md` (or the older pair `doc_summary.md` and `doc.md`) and one handler (`handler.js`, `handler.rs`, `handler.wasm` or `handler.mcp.json`). Add what is missing, or rename the folder to begin with `_` if it is not a tool.";
    UNREADABLE_FILE = "QD0003" "unreadable-file" Error
        "A file or folder cannot be read: its permissions, a link that leads nowhere or in a circle, or something that is not a regular file. Make it a readable file.";
    FILE_TOO_LARGE = "QD0004" "file-too-large" Error
        "Files of a tool folder are at most 1 MiB, and a folder has at most 200 of them, because a model or a sandbox has to take them in. Move data out of the folder.";
    NOT_UTF8 = "QD0005" "not-utf8" Error
        "Sources are UTF-8 text. Save the file as UTF-8; a file name must be UTF-8 too.";
    INVALID_JSON = "QD0006" "invalid-json" Error
        "The file is not JSON. Comments, trailing commas and single quotes are not JSON either. Nesting deeper than 127 levels is refused as well.";
    DUPLICATE_KEY = "QD0007" "duplicate-key" Error
        "An object has the same key twice; readers disagree on which one counts. Remove one.";
    TWO_HANDLERS = "QD0008" "handler-count" Error
        "A tool has exactly one handler file: `handler.js`, `handler.ts`, `handler.rs`, `handler.wasm` or `handler.mcp.json`. Remove the other one.";
    TWO_DOCUMENTATIONS = "QD0009" "two-documentations" Error
        "A tool is documented by `guide.md`, or by the older pair `doc_summary.md` and `doc.md`, not by both. Keep `guide.md`.";
    DUPLICATE_ID = "QD0010" "duplicate-tool-id" Error
        "Two folders stand for the same tool id (`kb-search` and `kb_search` are both `kb_search`). Rename one of them.";
    BAD_FOLDER_NAME = "QD0011" "bad-folder-name" Error
        "The folder's name, with dashes as underscores, is what models call, so it must be a name that every provider takes: a letter or underscore first, then letters, digits and underscores, at most 64 characters.";
    OTHER_HANDLER = "QD0012" "handler-not-taken" Error
        "A handler is `handler.js` or `handler.ts`, an ES module, `handler.rs`, or `handler.wasm`, which C and other languages are compiled to.";

    // The definition.
    MISSING_FIELD = "QD0101" "missing-field" Error
        "`schema.json` lacks a field that every tool must have. `tools/README.md` lists them all.";
    UNKNOWN_FIELD = "QD0102" "unknown-field" Error
        "`schema.json` has a field that does not exist, most likely a slip in its name.";
    BAD_VALUE = "QD0103" "bad-value" Error
        "A field has a value of the wrong kind, or one outside the values it may have.";
    RETRIEVAL_WRITES = "QD0104" "retrieval-writes" Error
        "A retrieval tool looks things up and changes nothing: models may call it freely, in parallel, and again. Set `sideEffects` to `read_only`, or the category to `action`.";
    RETRIEVAL_NOT_IDEMPOTENT = "QD0105" "retrieval-not-idempotent" Error
        "A retrieval tool can be repeated without harm, so `idempotent` is true. If repeating it does harm, it is an `action`.";
    ID_MISMATCH = "QD0106" "tool-id-mismatch" Error
        "`toolId` is the folder's name with dashes as underscores, so that a tool is found where its name says. Change one of the two.";
    BAD_VERSION = "QD0107" "bad-version" Error
        "`version` is a semantic version: three numbers such as `1.0.0`, perhaps with a pre-release such as `1.0.0-beta.1`.";
    BAD_MODES = "QD0108" "bad-modes" Error
        "`allowedModes` lists each mode once, and at least one: `text`, `voice` or both.";
    NOT_POSITIVE = "QD0109" "not-positive" Error
        "`latencyBudgetMs` and `timeoutMs` are whole milliseconds greater than zero.";
    UNKNOWN_CAPABILITY = "QD0110" "unknown-capability" Error
        "A handler can ask for `kb`, `calendar`, `images`, `store`, `tools` and `moderation`. Session, messaging, voice, audit, progress, clock and log are always there; `fetch` comes with `network`.";
    BAD_HOST = "QD0111" "bad-network-host" Error
        "`network` lists host names, one by one: `api.example.com`. No scheme, port, path, wildcard or address: each host that a handler may reach is a decision that a reviewer can see.";
    SENSITIVE_NOWHERE = "QD0112" "sensitive-nowhere" Error
        "A pointer under `sensitive` leads to no parameter, so nothing would be hidden. Pointers begin with `/`, name properties, and pass through a list with `*`: `/attendees/*/email`.";
    BAD_ACKNOWLEDGEMENT = "QD0113" "bad-acknowledgement" Warning
        "An entry under `acknowledged` matches nothing that is lost. Entries read `provider: what`, as `quarterdeck describe` shows them. Remove it, or correct it.";
    UNCONFIRMED_WRITE = "QD0114" "unconfirmed-write" Warning
        "An action that changes something runs without the user's approval. Set `requiresConfirmation` to true unless it is harmless or can be undone.";
    SLOW_IN_VOICE = "QD0115" "slow-in-voice" Warning
        "A user who speaks waits in silence. In voice, retrieval tools should answer within 800 ms and others within 3,000 ms. Lower `latencyBudgetMs`, or allow the tool in text only.";
    ALWAYS_THERE = "QD0116" "capability-always-there" Warning
        "The capability need not be declared: every handler has session, messaging, voice, audit, progress, clock and log. Remove the entry.";
    PREVIEW_NOWHERE = "QD0117" "preview-nowhere" Warning
        "A placeholder in `preview` names no parameter and would stay empty in the question that the user approves. Placeholders are parameter names in braces, such as `{title}` or `{attendees.length}`.";
    SIMILAR_TOOLS = "QD0118" "similar-tools" Warning
        "Two tools have nearly the same description, and a model will confuse them. Say in each what it does that the other does not.";
    POLICY_UNUSED = "QD0119" "policy-unused" Error
        "`confirmWhen` is judged for tools with `\"requiresConfirmation\": \"policy\"`, and `requestedBy` where `confirmWhen` has `\"notRequestedThisTurn\": true`. Elsewhere they look like a rule and are none. Complete them, or remove them.";
    POLICY_ALWAYS_ASKS = "QD0120" "policy-always-asks" Warning
        "With `\"requiresConfirmation\": \"policy\"`, a call runs unasked only where `confirmWhen` names conditions of which none holds; `notRequestedThisTurn` holds unless a phrase of `requestedBy` matches. As it stands, the user is asked every time.";
    THRESHOLD_NOWHERE = "QD0121" "threshold-nowhere" Error
        "A pointer under `confirmWhen.over` leads to no parameter that is a number, so the threshold would never be passed. Pointers begin with `/`, name properties, and pass through a list with `*`: `/items/*/price`.";
    BAD_PHRASE = "QD0122" "bad-phrase" Error
        "`requestedBy` lists, for each language (`en`, `pt-BR`), phrases that users say: words, and `*` with spaces around it for any words. At most 200 characters each and 500 phrases.";
    CONTROL_IN_BACKGROUND = "QD0128" "control-in-background" Error
        "A tool with `control` ends a call or blocks the user, and must have done so when it answers. It cannot have `execution` \"background\" or \"auto\".";
    UNUSED_TIME = "QD0129" "unused-time" Warning
        "`backgroundAfterMs` belongs to `execution` \"auto\", `taskTimeoutMs` to \"background\" and \"auto\", and `timeoutMs` to tools that do not go on in the background. Elsewhere the field has no effect.";
    NEVER_IN_BACKGROUND = "QD0130" "never-in-background" Error
        "With `execution` \"auto\" a call becomes a task after `backgroundAfterMs`. It is stopped after `taskTimeoutMs`, which must be longer.";
    SECRET_HOST = "QD0138" "secret-host" Error
        "A secret goes to one host, and `network` names that host too, so that a reviewer sees in one list what a handler can reach.";
    SECRET_PLACE = "QD0139" "secret-place" Error
        "A secret is added to requests in one place: a `header` or a parameter of the `query`, and no other secret for the same host has that place.";
    SECRET_HEADER = "QD0140" "secret-header" Error
        "The header cannot carry a secret: it is not a header's name, it belongs to the connection (`Host`, `Content-Length` …), or it goes along to other hosts after a redirect (`Accept`, `User-Agent` …). `Authorization` and `X-Api-Key` are usual.";
    SECRET_FORMAT = "QD0141" "secret-format" Error
        "`format` has `{}` once, where the secret goes, and otherwise visible ASCII characters and spaces: `Bearer {}`.";
    SECRET_NAME = "QD0142" "secret-name" Error
        "The name of a secret is what an operator writes under `[tools.NAME.secrets]`: a capital letter, then capital letters, digits and single underscores, at most 64 characters, such as `API_KEY`.";
    CONFIRM_BY_UNUSED = "QD0143" "confirm-by-unused" Error
        "`confirmBy` says how the user approves a call, and a tool with `\"requiresConfirmation\": false` never asks. It looks like a safeguard and is none. Ask the user, or remove it.";

    // Parameters (and `returns`).
    NOT_AN_OBJECT = "QD0201" "parameters-not-an-object" Error
        "Arguments come as an object, so `parameters` is a schema with `\"type\": \"object\"`.";
    OPEN_ROOT = "QD0202" "open-parameters" Error
        "`parameters` has `\"additionalProperties\": false`, so that an argument that a model invents is refused and not ignored.";
    UNKNOWN_KEYWORD = "QD0203" "unknown-keyword" Error
        "The keyword is not in JSON Schema (draft 2020-12), most likely a slip in its name; it would be ignored in silence.";
    UNKNOWN_FORMAT = "QD0204" "unknown-format" Error
        "The format is not one that is checked. Use one of: email, date-time, date, time, uri, uuid, ipv4, ipv6, hostname, duration.";
    REQUIRED_UNDECLARED = "QD0205" "required-undeclared" Error
        "A name under `required` is not declared under `properties` of the same schema. Declare it there, also inside a branch of `anyOf`, `if` or `then`.";
    BAD_REFERENCE = "QD0206" "bad-reference" Error
        "A `$ref` must resolve inside the same document, such as `#/$defs/address`, and must not lead in a circle without a step into the value. Nothing is fetched.";
    INVALID_SCHEMA = "QD0207" "invalid-schema" Error
        "The value is not a valid JSON Schema (draft 2020-12).";
    BAD_PATTERN = "QD0208" "bad-pattern" Error
        "A `pattern` is an ECMAScript regular expression in Unicode mode: no `(?i)`, no `\\Z`, no needless escapes such as `\\_`.";
    LOOSE_TYPES = "QD0209" "loose-types" Error
        "A keyword needs the `type` it works on beside it, a type must fit the types around it, and a list of types may only add `null` to one type. Use `anyOf` for a real choice.";
    IGNORED = "QD0210" "ignored-keyword" Error
        "The keyword would have no effect where it stands (`default` below `anyOf` or at the root, `then` without `if`, an open tuple …). Move or complete it.";
    UNBOUNDED_PATTERN = "QD0211" "unbounded-pattern" Error
        "A `pattern` is matched in time that is linear in the text, whatever a model sends. A back-reference (`\\1`, `\\k<name>`) has no such bound, and a counted repetition is written out, which can make a small pattern very large. List the alternatives, use `maxLength`, or let the handler check it. Look-ahead and look-behind are fine.";
    OTHER_DRAFT = "QD0220" "other-draft" Warning
        "`$schema` names another draft. The schema is read as draft 2020-12; remove the line or name that draft.";
    BAD_DEFAULT = "QD0221" "default-refused" Warning
        "A default does not satisfy its own schema: calls that leave the parameter out will fail. Change the default or the schema.";
    OPEN_NESTED = "QD0222" "open-nested-object" Warning
        "An object inside the parameters admits properties that are not declared. Add `\"additionalProperties\": false`, or give it a schema if it is meant to be a map.";
    UNDESCRIBED = "QD0223" "undescribed-parameter" Warning
        "The parameter has no description, and the model has to guess what it is for. One sentence is enough.";
    TOO_DEEP = "QD0224" "deep-nesting" Warning
        "The parameters nest more than five levels deep. Models fill such arguments badly, and at least one provider refuses deep schemas. Flatten them.";

    // Documentation.
    NO_SUMMARY = "QD0301" "no-summary" Error
        "The guide begins with a heading and then one or two sentences: the summary, which is all that a model sees of the guide when there are many tools.";
    LONG_SUMMARY = "QD0302" "long-summary" Warning
        "The summary (the first line of text) has more than 250 characters. Break the line after the first one or two sentences.";
    EXAMPLE_NOT_JSON = "QD0303" "example-not-json" Error
        "A `json` block under Examples is an example call: the arguments, as JSON. Mark anything else as `text`, or put a line that begins with “Response” above an answer.";
    EXAMPLE_REFUSED = "QD0304" "example-refused" Error
        "An example call would be refused by the tool's own schema. Models learn from examples: correct it.";
    MISSING_SECTION = "QD0305" "missing-section" Error
        "The older `doc.md` has the sections Summary, Preconditions, Postconditions, Invariants, Failure Modes, Examples and Common Mistakes. Add the missing one, or write a `guide.md` instead.";
    EMPTY_SUMMARY = "QD0306" "summary-repeats-name" Warning
        "The summary only repeats the tool's name and tells the model nothing. Say what the tool does and when to use it.";
    LONG_DOCUMENTATION = "QD0307" "long-documentation" Warning
        "The documentation takes more than 1,500 tokens (characters divided by four) of every conversation. Shorten it.";
    NO_HEADING = "QD0308" "no-heading" Warning
        "The guide does not begin with a `#` heading.";
    LONG_DOC_SUMMARY = "QD0328" "long-doc-summary" Error
        "The older `doc_summary.md` has at most 250 characters, white space around them aside. Shorten it; what is longer belongs into `doc.md`.";

    // The handler.
    HANDLER_SYNTAX = "QD0401" "handler-syntax" Error
        "The handler does not parse. Nothing was run.";
    NO_EXECUTE = "QD0402" "no-execute" Error
        "A handler exports `execute`: in JavaScript `export async function execute({ args, context })`, in Rust `pub async fn execute(args: Args, context: Arc<dyn Context>)`.";
    BAD_IMPORT = "QD0403" "bad-import" Error
        "A handler imports from `quarterdeck` and from files of its own folder, and from nothing else: no packages, no other tools, no addresses.";
    RESPONSE_VERSION = "QD0404" "response-version" Error
        "`responseSchemaVersion` is \"1.0.0\", \"1.1.0\" or \"2.0.0\", written as a plain string so that it can be read without running the handler.";
    NOT_COMPILED_IN = "QD0405" "not-compiled-in" Warning
        "The binary in use was built without this `handler.rs`, or with another state of it. Run `cargo build` and use the new binary; until then the tool is left out where this binary runs it, and the others are served.";
    NODE_ONLY = "QD0406" "node-only" Warning
        "The handler uses `require` or `process`, which Node has and handlers do not, so the line throws when it is reached. `import` from \"quarterdeck\" or from a file of the tool's folder; declare keys under `secrets`, and the server adds them to requests.";
    MCP_BINDING = "QD0407" "mcp-binding" Error
        "`handler.mcp.json` says which tool of which MCP server the folder stands for, and pins it: `{ \"server\", \"tool\", \"digest\" }`. `published.json` beside it is what the server published when the tool was imported, and has that digest. `quarterdeck mcp import` and `mcp update --accept` write both; a change of theirs belongs into `schema.json` and `guide.md`.";
    UNKNOWN_MCP_SERVER = "QD0408" "unknown-mcp-server" Warning
        "`handler.mcp.json` names a server that has no table `[mcp.servers.NAME]` in the configuration of this machine, so the tool is unavailable here. Add it with `quarterdeck mcp add`, or correct the name.";
    WASM_MODULE = "QD0409" "wasm-module" Error
        "`handler.wasm` is a core WebAssembly module of at most 1 MiB, in version 2 of the language without references to the host's objects: one 32-bit memory of at most 64 MiB, one table, no threads, no exceptions, no component. Nothing was run.";
    WASM_INTERFACE = "QD0410" "wasm-interface" Error
        "A module exports `memory`, `allocate`, `execute` and, if it imports `call`, `resume`; `_initialize` may be there, and names that begin with `__`. It imports from `quarterdeck` what it needs of `call`, `log`, `now` and `random`, and nothing else: there is no WASI. docs/WASM.md has their forms.";

    // Providers.
    LEFT_OUT = "QD0501" "left-out" Warning
        "A provider would refuse the tool's declaration, and with it the whole request, so the tool is left out for that provider. The others get it.";
    LOSSY = "QD0502" "lossy" Error
        "A provider's form cannot say all that the parameters say, and `--deny-lossy` was given. Arguments are still checked against the original. Simplify the schema, or add the entry to `acknowledged`.";
    TOO_MANY_TOOLS = "QD0503" "too-many-tools" Warning
        "Gemini takes at most 512 function declarations in one request.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<_> = ALL.iter().map(|rule| rule.code).collect();
        let sorted: BTreeSet<_> = codes.iter().copied().collect();
        assert_eq!(codes, sorted.into_iter().collect::<Vec<_>>());
        let names: BTreeSet<_> = ALL.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_rule_is_found_by_code_and_by_name() {
        assert_eq!(find("qd0104"), Some(&RETRIEVAL_WRITES));
        assert_eq!(find("retrieval-writes"), Some(&RETRIEVAL_WRITES));
        assert_eq!(find("QD9999"), None);
    }
}
