use expect_test::expect;
use quarterdeck_compiler::{Tree, compile};
use quarterdeck_contracts::CapabilitySpec;
use serde_json::json;

use crate::world::{check, expect_diagnostics, inspectors, options, patched, sound};

#[test]
fn a_sound_tool_has_nothing_to_complain_about() {
    check(
        &sound(),
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn missing_fields_are_all_named() {
    check(
        &patched(json!({ "category": null, "latencyBudgetMs": null, "parameters": null })),
        expect![[r#"
        error QD0101 greet/schema.json:1:1 `{`
          the field `category` is missing
          help: add `"category": "utility"` (or "retrieval", "action")
        error QD0101 greet/schema.json:1:1 `{`
          the field `latencyBudgetMs` is missing
          help: add `"latencyBudgetMs": 500`
        error QD0101 greet/schema.json:1:1 `{`
          the field `parameters` is missing
          help: add `"parameters": { "type": "object", "additionalProperties": false, "properties": {} }`
    "#]],
    );
}

#[test]
fn an_unknown_field_gets_the_nearest_name() {
    check(
        &patched(json!({ "sideEffect": "none", "colour": "red" })),
        expect![[r#"
        error QD0102 greet/schema.json:27:3 `"sideEffect"`
          the field `sideEffect` does not exist
          help: did you mean `sideEffects`?
        error QD0102 greet/schema.json:28:3 `"colour"`
          the field `colour` does not exist
          help: remove it; `tools/README.md` lists the fields that exist
    "#]],
    );
}

#[test]
fn a_value_outside_its_set_is_refused() {
    check(
        &patched(json!({
            "category": "search", "sideEffects": 3, "idempotent": "yes", "requiresConfirmation": "always",
            "description": "", "control": null, "rateLimit": { "calls": 0, "windowMs": 1, "per": "person", "burst": 2 },
            "availability": { "authenticated": "yes" },
        })),
        expect![[r#"
            error QD0103 greet/schema.json:4:18 `""`
              description must have at least 1 character (got 0)
              help: see `description` in `tools/README.md`
            error QD0103 greet/schema.json:5:15 `"search"`
              category must be one of "retrieval", "action", "utility" (got "search")
              help: see `category` in `tools/README.md`
            error QD0103 greet/schema.json:6:18 `3`
              sideEffects must be a string (got 3)
              help: see `sideEffects` in `tools/README.md`
            error QD0103 greet/schema.json:7:17 `"yes"`
              idempotent must be true or false (got "yes")
              help: see `idempotent` in `tools/README.md`
            error QD0103 greet/schema.json:8:27 `"always"`
              requiresConfirmation must be one of true, false, "policy" (got "always")
              help: write true, false or "policy"
            error QD0103 greet/schema.json:27:3 `"rateLimit"`
              unknown parameter "burst" in rateLimit; known are "calls", "windowMs", "per"
              help: see `rateLimit` in `tools/README.md`
            error QD0103 greet/schema.json:28:14 `0`
              rateLimit.calls must be ≥ 1 (got 0)
              help: see `rateLimit` in `tools/README.md`
            error QD0103 greet/schema.json:30:12 `"person"`
              rateLimit.per must be one of "client", "session", "global" (got "person")
              help: see `rateLimit` in `tools/README.md`
            error QD0103 greet/schema.json:34:22 `"yes"`
              availability.authenticated must be true or false (got "yes")
              help: see `availability` in `tools/README.md`
        "#]],
    );
}

#[test]
fn a_field_that_is_null_is_not_the_same_as_one_that_is_left_out() {
    let files = sound();
    let text = std::fs::read_to_string(files.join("greet/schema.json")).unwrap();
    files.write(
        "greet/schema.json",
        text.replacen("\"latencyBudgetMs\"", "\"timeoutMs\": null, \"latencyBudgetMs\"", 1),
    );
    check(
        &files,
        expect![[r#"
        error QD0109 greet/schema.json:10:16 `null`
          timeoutMs must be an integer (got null)
          help: write whole milliseconds, such as 800
    "#]],
    );
}

#[test]
fn a_retrieval_tool_may_not_write_and_is_idempotent() {
    check(
        &patched(json!({ "category": "retrieval", "sideEffects": "writes", "idempotent": false })),
        expect![[r#"
            error QD0104 greet/schema.json:6:18 `"writes"`
              retrieval tools cannot write
              help: set "sideEffects" to "read_only", or the category to "action"
            error QD0105 greet/schema.json:7:17 `false`
              retrieval tools are idempotent
              help: set "idempotent" to true, or the category to "action"
        "#]],
    );
}

#[test]
fn the_id_is_the_folder() {
    check(
        &patched(json!({ "toolId": "greeting" })),
        expect![[r#"
        error QD0106 greet/schema.json:2:13 `"greeting"`
          `toolId` is "greeting", but the folder is `greet`
          help: set `toolId` to "greet", or rename the folder
    "#]],
    );
}

#[test]
fn an_id_that_no_provider_takes_is_refused() {
    check(
        &patched(json!({ "toolId": "greet.me" })),
        expect![[r#"
            error QD0103 greet/schema.json:2:13 `"greet.me"`
              toolId must match the pattern ^[a-zA-Z_][a-zA-Z0-9_]{0,63}$ (got "greet.me")
              help: use the folder's name with dashes as underscores
            error QD0106 greet/schema.json:2:13 `"greet.me"`
              `toolId` is "greet.me", but the folder is `greet`
              help: set `toolId` to "greet", or rename the folder
        "#]],
    );
}

#[test]
fn a_version_is_semantic() {
    check(
        &patched(json!({ "version": "1.0" })),
        expect![[r#"
        error QD0107 greet/schema.json:3:14 `"1.0"`
          "1.0" is not a semantic version: unexpected end of input while parsing minor version number
          help: write three numbers, such as "1.0.0"
    "#]],
    );
}

#[test]
fn modes_are_at_least_one_and_each_once() {
    check(
        &patched(json!({ "allowedModes": [] })),
        expect![[r#"
        error QD0108 greet/schema.json:9:3 `"allowedModes"`
          allowedModes must have at least 1 item (got 0)
          help: write `["text"]`, `["voice"]` or `["text", "voice"]`
    "#]],
    );
    check(
        &patched(json!({ "allowedModes": ["text", "text"] })),
        expect![[r#"
        error QD0108 greet/schema.json:9:3 `"allowedModes"`
          allowedModes must not contain the same item twice
          help: write `["text"]`, `["voice"]` or `["text", "voice"]`
    "#]],
    );
    check(
        &patched(json!({ "allowedModes": ["text", "video"] })),
        expect![[r#"
        error QD0108 greet/schema.json:11:5 `"video"`
          allowedModes[1] must be one of "text", "voice" (got "video")
          help: write `["text"]`, `["voice"]` or `["text", "voice"]`
    "#]],
    );
}

#[test]
fn times_are_positive() {
    check(
        &patched(json!({ "latencyBudgetMs": 0, "timeoutMs": -5 })),
        expect![[r#"
        error QD0109 greet/schema.json:13:22 `0`
          latencyBudgetMs must be ≥ 1 (got 0)
          help: write whole milliseconds, such as 800
        error QD0109 greet/schema.json:27:16 `-5`
          timeoutMs must be ≥ 1 (got -5)
          help: write whole milliseconds, such as 800
    "#]],
    );
    check(
        &patched(json!({ "latencyBudgetMs": 1.5 })),
        expect![[r#"
        error QD0109 greet/schema.json:13:22 `1.5`
          latencyBudgetMs must be an integer (got 1.5)
          help: write whole milliseconds, such as 800
    "#]],
    );
}

#[test]
fn capabilities_and_hosts_are_known() {
    check(
        &patched(
            json!({ "capabilities": ["kb", "files", "messaging"], "network": ["https://api.example.com", "10.0.0.1"] }),
        ),
        expect![[r#"
            error QD0110 greet/schema.json:29:5 `"files"`
              capabilities[1] must be one of "kb", "calendar", "images", "store", "tools", "moderation", "session", "messaging", "voice", "audit", "progress", "clock", "log" (got "files")
              help: name any of "kb", "calendar", "images", "store", "tools", "moderation"
            warning QD0116 greet/schema.json:30:5 `"messaging"`
              every handler has "messaging" without declaring it
              help: remove the entry
            error QD0111 greet/schema.json:33:5 `"https://api.example.com"`
              "https://api.example.com" is not a host name: leave out the scheme
              help: name each host by itself, such as "api.example.com"
            error QD0111 greet/schema.json:34:5 `"10.0.0.1"`
              "10.0.0.1" is not a host name: addresses are not allowed
              help: name each host by itself, such as "api.example.com"
        "#]],
    );
}

#[test]
fn secrets_go_to_one_declared_host_in_one_place() {
    let sound = json!({ "network": ["api.example.com"], "secrets": {
        "API_KEY": { "host": "API.example.com", "header": "Authorization", "format": "Bearer {}" },
        "TENANT": { "host": "api.example.com", "query": "tenant" },
    } });
    check(
        &patched(sound),
        expect![[r#"
            fine
        "#]],
    );
    check(
        &patched(json!({ "network": ["api.example.com"], "secrets": {
            "api-key": { "host": "api.example.org", "header": "Authorization" },
            "NOWHERE": { "host": "api.example.com" },
            "TWICE": { "host": "api.example.com", "header": "X-Key", "query": "key" },
            "HOST": { "host": "api.example.com", "header": "Host" },
            "FORMAT": { "host": "api.example.com", "header": "X-Format", "format": "Bearer" },
            "ONE": { "host": "api.example.com", "header": "x-one" },
            "OTHER": { "host": "api.example.com", "header": "X-One" },
            "FIELD": { "host": "api.example.com", "headers": "X-Field" },
        } })),
        expect![[r#"
            error QD0142 greet/schema.json:31:5 `"api-key"`
              "api-key" cannot be the name of a secret
              help: write capital letters, digits and single underscores, such as "API_KEY"
            error QD0138 greet/schema.json:32:15 `"api.example.org"`
              `network` does not name "api.example.org"
              help: did you mean "api.example.com"?
            error QD0139 greet/schema.json:35:5 `"NOWHERE"`
              a secret has either a `header` or a `query`
              help: write one of them: `"header": "Authorization"` or `"query": "key"`
            error QD0139 greet/schema.json:38:5 `"TWICE"`
              a secret has either a `header` or a `query`
              help: write one of them: `"header": "Authorization"` or `"query": "key"`
            error QD0140 greet/schema.json:45:17 `"Host"`
              the header "Host" cannot carry a secret
              help: name the header that the interface asks for, such as "Authorization"
            error QD0141 greet/schema.json:50:17 `"Bearer"`
              `format` does not have `{}` exactly once among visible ASCII characters
              help: write `{}` where the secret goes, such as "Bearer {}", or leave `format` out
            error QD0139 greet/schema.json:56:5 `"OTHER"`
              OTHER and ONE go to the same place of the same host
              help: give each secret a place of its own, or remove one
            error QD0103 greet/schema.json:60:5 `"FIELD"`
              unknown parameter "headers" in secrets.FIELD; did you mean "header"?
              help: see `secrets` in `tools/README.md`
        "#]],
    );
}

#[test]
fn registered_capability_can_be_declared() {
    const WEATHER: CapabilitySpec = CapabilitySpec::new("weather", "The weather.", &["today"]);
    let build = |names: &[&str]| {
        let files = patched(json!({ "capabilities": names }));
        let mut options = options(inspectors(), false);
        options.capabilities.push(WEATHER);
        compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options)
    };
    let tool = build(&["weather"]).artifact.unwrap().tools.remove(0);
    assert_eq!(tool.metadata.effective_capabilities(), [WEATHER.capability()]);
    expect_diagnostics(
        &build(&["whether"]),
        expect![[r#"
            error QD0110 greet/schema.json:28:5 `"whether"`
              capabilities[0] must be one of "kb", "calendar", "images", "store", "tools", "moderation", "session", "messaging", "voice", "audit", "progress", "clock", "log", "weather" (got "whether")
              help: name any of "kb", "calendar", "images", "store", "tools", "moderation", "weather"
        "#]],
    );
}

#[test]
fn sensitive_pointers_lead_somewhere() {
    check(
        &patched(json!({ "sensitive": ["/name", "/nome", "name"] })),
        expect![[r#"
        error QD0112 greet/schema.json:29:5 `"/nome"`
          "/nome" leads to no parameter
          help: did you mean "/name"?
        error QD0112 greet/schema.json:30:5 `"name"`
          "name" leads to no parameter
          help: did you mean "/name"?
    "#]],
    );
}

#[test]
fn a_preview_names_parameters() {
    check(
        &patched(json!({ "preview": "Greet {name} and {nmae}" })),
        expect![[r#"
        warning QD0117 greet/schema.json:27:14 `"Greet {name} and {nmae}"`
          `{nmae}` names no parameter
          help: did you mean `{name}`?
    "#]],
    );
}

#[test]
fn an_action_that_writes_wants_confirmation() {
    check(
        &patched(json!({ "category": "action", "sideEffects": "writes" })),
        expect![[r#"
        warning QD0114 greet/schema.json:8:27 `false`
          an action that writes runs without confirmation
          help: set "requiresConfirmation" to true unless it is harmless or can be undone
    "#]],
    );
    // Session control is not asked about: a user who is to be blocked would not approve it.
    check(
        &patched(json!({ "category": "action", "sideEffects": "writes", "control": true })),
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn a_slow_tool_in_voice_is_noticed() {
    check(
        &patched(json!({ "latencyBudgetMs": 3001 })),
        expect![[r#"
        warning QD0115 greet/schema.json:13:22 `3001`
          3001 ms is long for a tool in voice
          help: aim for 3000 ms, or allow the tool in text only
    "#]],
    );
    check(
        &patched(json!({ "category": "retrieval", "sideEffects": "read_only", "latencyBudgetMs": 900 })),
        expect![[r#"
        warning QD0115 greet/schema.json:13:22 `900`
          900 ms is long for a retrieval tool in voice
          help: aim for 800 ms, or allow the tool in text only
    "#]],
    );
    check(
        &patched(json!({ "latencyBudgetMs": 9000, "allowedModes": ["text"] })),
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn the_times_of_a_background_tool_must_belong_to_its_execution() {
    check(
        &patched(json!({ "execution": "background", "taskTimeoutMs": 60_000 })),
        expect![[r#"
        fine
    "#]],
    );
    check(
        &patched(json!({ "backgroundAfterMs": 500, "taskTimeoutMs": 60_000 })),
        expect![[r#"
        warning QD0129 greet/schema.json:27:24 `500`
          `backgroundAfterMs` has no effect with "execution": "inline"
          help: set "execution" to "auto", or remove the field
        warning QD0129 greet/schema.json:28:20 `60000`
          `taskTimeoutMs` has no effect with "execution": "inline"
          help: set "execution" to "background" or "auto", or write "timeoutMs"
    "#]],
    );
    check(
        &patched(json!({ "execution": "background", "backgroundAfterMs": 500, "timeoutMs": 9_000 })),
        expect![[r#"
            warning QD0129 greet/schema.json:28:24 `500`
              `backgroundAfterMs` has no effect with "execution": "background"
              help: set "execution" to "auto", or remove the field
            warning QD0129 greet/schema.json:29:16 `9000`
              `timeoutMs` has no effect with "execution": "background"
              help: write "taskTimeoutMs" instead
        "#]],
    );
    check(
        &patched(json!({ "execution": "auto", "backgroundAfterMs": 5_000, "taskTimeoutMs": 5_000 })),
        expect![[r#"
            error QD0130 greet/schema.json:28:24 `5000`
              a call would be stopped before it becomes a task
              help: make "backgroundAfterMs" shorter than "taskTimeoutMs"
        "#]],
    );
    check(
        &patched(json!({ "execution": "later", "backgroundAfterMs": 1, "taskTimeoutMs": 1.5 })),
        expect![[r#"
            error QD0103 greet/schema.json:27:16 `"later"`
              execution must be one of "inline", "background", "auto" (got "later")
              help: see `execution` in `tools/README.md`
            error QD0103 greet/schema.json:28:24 `1`
              backgroundAfterMs must be ≥ 100 (got 1)
              help: see `backgroundAfterMs` in `tools/README.md`
            warning QD0129 greet/schema.json:28:24 `1`
              `backgroundAfterMs` has no effect with "execution": "later"
              help: set "execution" to "auto", or remove the field
            error QD0103 greet/schema.json:29:20 `1.5`
              taskTimeoutMs must be an integer (got 1.5)
              help: see `taskTimeoutMs` in `tools/README.md`
        "#]],
    );
}

#[test]
fn session_control_does_not_go_on_in_the_background() {
    check(
        &patched(json!({ "execution": "auto", "control": true })),
        expect![[r#"
        error QD0128 greet/schema.json:27:16 `"auto"`
          session control cannot go on in the background
          help: remove "execution", or "control"
    "#]],
    );
}
