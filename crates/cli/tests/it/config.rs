//! `quarterdeck config`.

use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use quarterdeck_testkit::tree;

use crate::terminal;

/// A terminal in whose environment nothing is configured.
fn command(folder: &Path) -> Command {
    let mut command = terminal::command(folder);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("QUARTERDECK_") || text.ends_with("_API_KEY") || text == "OPENAI_BASE_URL" {
            command.env_remove(name);
        }
    }
    command
}

fn check(command: &mut Command, expected: Expect) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (code, out, err) = (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr));
    expected.assert_eq(&format!("exit {code}\n--- stdout\n{out}--- stderr\n{err}"));
}

#[test]
fn the_configuration_is_shown_with_where_each_value_came_from() {
    let files = tree(
        r#"
        //- quarterdeck.toml
        [text]
        model = "gemini-3.8-pro"

        [auth.api_keys]
        partner = "secrets/partner"
        //- secrets/partner
        the-key-of-the-partner
        "#,
    );
    let mut command = command(files.path());
    command
        .env("QUARTERDECK_KB__FOLDER", "records")
        .env("QUARTERDECK_ADMIN_TOKEN", "an-admin-token-of-some-length")
        .env("GEMINI_API_KEY", "hunter2")
        .args(["config", "--listen", "127.0.0.1:9000"]);
    check(
        &mut command,
        expect![[r#"
            exit 0
            --- stdout
            key                                    value                                                                                                    from
            server.listen                          127.0.0.1:9000                                                                                           flag --listen
            server.hosts                           -                                                                                                        default
            server.origins                         -                                                                                                        default
            server.frame_ancestors                 -                                                                                                        default
            server.admin_token_file                -                                                                                                        default
            server.admin_token                     set                                                                                                      env QUARTERDECK_ADMIN_TOKEN
            server.trust_proxy                     false                                                                                                    default
            server.trusted_proxies                 -                                                                                                        default
            server.max_body_bytes                  1048576                                                                                                  default
            server.max_json_depth                  64                                                                                                       default
            server.drain_seconds                   10                                                                                                       default
            server.max_connections                 4096                                                                                                     default
            server.secure_cookie                   auto                                                                                                     default
            server.cookie_secret_file              -                                                                                                        default
            server.cookie_secret                   generated                                                                                                default
            limits.requests_per_minute_client      60                                                                                                       default
            limits.requests_per_minute_address     300                                                                                                      default
            limits.streams_per_client              4                                                                                                        default
            limits.streams                         1000                                                                                                     default
            limits.file_link_seconds               3600                                                                                                     default
            limits.calls                           500                                                                                                      default
            limits.connections_per_address         512                                                                                                      default
            page.title                             -                                                                                                        default
            page.logo                              -                                                                                                        default
            page.welcome                           -                                                                                                        default
            page.suggestions                       -                                                                                                        default
            page.links                             -                                                                                                        default
            page.colours.accent                    -                                                                                                        default
            page.colours.accent_text               -                                                                                                        default
            page.colours.background                -                                                                                                        default
            page.colours.surface                   -                                                                                                        default
            page.colours.text                      -                                                                                                        default
            page.show.tool_cards                   true                                                                                                     default
            page.show.gates                        true                                                                                                     default
            page.show.json                         true                                                                                                     default
            store.url                              -                                                                                                        default
            store.password_file                    -                                                                                                        default
            store.password                         not set                                                                                                  default
            store.pool_size                        16                                                                                                       default
            store.statement_timeout_ms             5000                                                                                                     default
            store.connect_timeout_ms               3000                                                                                                     default
            store.wait_seconds                     30                                                                                                       default
            store.migrate                          auto                                                                                                     default
            store.root_certificates_file           -                                                                                                        default
            audit.keep_in_store                    false                                                                                                    default
            audit.segment_mb                       64                                                                                                       default
            audit.compress                         true                                                                                                     default
            audit.retain_days                      0                                                                                                        default
            audit.seal_file                        -                                                                                                        default
            cluster.node                           -                                                                                                        default
            cluster.address                        -                                                                                                        default
            cluster.secret_file                    -                                                                                                        default
            cluster.secret                         generated                                                                                                default
            auth.algorithm                         HS256                                                                                                    default
            auth.secret_file                       -                                                                                                        default
            auth.secret                            not set                                                                                                  default
            auth.public_key_file                   -                                                                                                        default
            auth.issuer                            -                                                                                                        default
            auth.audience                          -                                                                                                        default
            auth.required.v1                       auto                                                                                                     default
            auth.required.api                      false                                                                                                    default
            auth.required.voice                    false                                                                                                    default
            auth.required.mcp                      auto                                                                                                     default
            auth.api_keys.partner                  secrets/partner                                                                                          quarterdeck.toml:5
            auth.api_key.partner                   set                                                                                                      file secrets/partner
            text.provider                          gemini                                                                                                   env GEMINI_API_KEY
            text.model                             gemini-3.8-pro                                                                                           quarterdeck.toml:2
            text.base_url                          https://generativelanguage.googleapis.com                                                                default
            text.api_key_file                      -                                                                                                        default
            text.api_key                           set                                                                                                      env GEMINI_API_KEY
            text.window                            1048576                                                                                                  default
            text.max_output_tokens                 -                                                                                                        default
            text.rounds                            8                                                                                                        default
            text.guide_tokens                      4000                                                                                                     default
            text.declare                           all                                                                                                      default
            text.first_byte_seconds                60                                                                                                       default
            text.idle_seconds                      60                                                                                                       default
            text.retries                           2                                                                                                        default
            text.retry_after_cap_seconds           20                                                                                                       default
            text.openai.system_role                system                                                                                                   default
            text.openai.max_tokens_field           max_tokens                                                                                               default
            text.openai.dialect                    compatible                                                                                               default
            text.openai.include_usage              true                                                                                                     default
            text.anthropic.version                 2026-10-21                                                                                               default
            text.anthropic.auth_header             bearer                                                                                                   default
            text.anthropic.prompt_cache            true                                                                                                     default
            text.rehearsal.script                  -                                                                                                        default
            text.rehearsal.pace_ms                 20                                                                                                       default
            fallback.provider                      none                                                                                                     default
            fallback.model                         none                                                                                                     default
            fallback.base_url                      -                                                                                                        default
            fallback.api_key_file                  -                                                                                                        default
            fallback.api_key                       not set                                                                                                  default
            fallback.window                        -                                                                                                        default
            fallback.max_output_tokens             -                                                                                                        default
            fallback.first_byte_seconds            60                                                                                                       default
            fallback.idle_seconds                  60                                                                                                       default
            fallback.retries                       2                                                                                                        default
            speech.stt.provider                    local                                                                                                    default
            speech.stt.model                                                                                                                                default
            speech.stt.base_url                    -                                                                                                        default
            speech.stt.api_key_file                -                                                                                                        default
            speech.stt.language                    -                                                                                                        default
            speech.stt.logprobs                    false                                                                                                    default
            speech.stt.timeout_seconds             20                                                                                                       default
            speech.stt.stream                      false                                                                                                    default
            speech.stt.max_requests                -                                                                                                        default
            speech.stt.api_key                     not set                                                                                                  default
            speech.tts.provider                    local                                                                                                    default
            speech.tts.model                                                                                                                                default
            speech.tts.base_url                    -                                                                                                        default
            speech.tts.api_key_file                -                                                                                                        default
            speech.tts.voice                       -                                                                                                        default
            speech.tts.format                      pcm                                                                                                      default
            speech.tts.sample_rate                 24000                                                                                                    default
            speech.tts.first_byte_seconds          10                                                                                                       default
            speech.tts.idle_seconds                10                                                                                                       default
            speech.tts.max_requests                -                                                                                                        default
            speech.tts.api_key                     not set                                                                                                  default
            voice.provider                         gemini                                                                                                   env GEMINI_API_KEY
            voice.model                            gemini-3.8-live                                                                                          default
            voice.base_url                         wss://generativelanguage.googleapis.com                                                                  default
            voice.api_key_file                     -                                                                                                        default
            voice.api_key                          set                                                                                                      env GEMINI_API_KEY
            voice.voice                            Algenib                                                                                                  default
            voice.guide_tokens                     4000                                                                                                     default
            voice.declare                          all                                                                                                      default
            voice.filler                           none                                                                                                     default
            voice.ear                              true                                                                                                     default
            images.provider                        none                                                                                                     default
            images.model                           none                                                                                                     default
            images.base_url                        -                                                                                                        default
            images.api_key_file                    -                                                                                                        default
            images.api_key                         not set                                                                                                  default
            images.quality                         -                                                                                                        default
            images.timeout_seconds                 100                                                                                                      default
            images.max_bytes                       8388608                                                                                                  default
            images.per_session                     20                                                                                                       default
            mcp.serve                              true                                                                                                     default
            mcp.sessions_per_client                32                                                                                                       default
            mcp.sessions                           10000                                                                                                    default
            mcp.idle_seconds                       1800                                                                                                     default
            mcp.task_seconds                       45                                                                                                       default
            mcp.approval_pages                     true                                                                                                     default
            mcp.list_seconds                       60                                                                                                       default
            policy.confirmation_seconds            300                                                                                                      default
            policy.resumable_seconds               300                                                                                                      default
            policy.idle_seconds                    1800                                                                                                     default
            policy.retention_days                  30                                                                                                       default
            policy.remembered_calls                100                                                                                                      default
            policy.waiting_events                  256                                                                                                      default
            policy.calls_per_message               128                                                                                                      default
            policy.tasks_per_client                5                                                                                                        default
            policy.tasks                           100                                                                                                      default
            policy.text.calls                      10                                                                                                       default
            policy.text.retrieval                  5                                                                                                        default
            policy.text.top_k                      none                                                                                                     default
            policy.text.retrieval_ms               2000                                                                                                     default
            policy.text.call_ms                    none                                                                                                     default
            policy.text.turn_ms                    none                                                                                                     default
            policy.text.retries                    3                                                                                                        default
            policy.text.backoff_ms                 200                                                                                                      default
            policy.voice.calls                     3                                                                                                        default
            policy.voice.retrieval                 2                                                                                                        default
            policy.voice.top_k                     3                                                                                                        default
            policy.voice.retrieval_ms              800                                                                                                      default
            policy.voice.call_ms                   1000                                                                                                     default
            policy.voice.turn_ms                   1500                                                                                                     default
            policy.voice.retries                   1                                                                                                        default
            policy.voice.backoff_ms                50                                                                                                       default
            policy.voice.max_wait_ms               15000                                                                                                    default
            confirmation.spoken                    false                                                                                                    default
            confirmation.listen                    own                                                                                                      default
            moderation.max_block                   86400                                                                                                    default
            transcripts.keep                       off                                                                                                      default
            transcripts.retain_days                30                                                                                                       default
            transcripts.key_file                   -                                                                                                        default
            transcripts.key                        not set                                                                                                  default
            transcripts.previous_keys_file         -                                                                                                        default
            transcripts.previous_keys              not set                                                                                                  default
            tools.folder                           tools                                                                                                    default
            tools.locked                           false                                                                                                    default
            tools.artifact_digest                  -                                                                                                        default
            tools.allowed_digests                  -                                                                                                        default
            kb.folder                              records                                                                                                  env QUARTERDECK_KB__FOLDER
            kb.max_passages_in_memory              500000                                                                                                   default
            data.folder                            .quarterdeck                                                                                             default
            prompts.folder                         prompts                                                                                                  default
            versions.max_loaded                    4                                                                                                        default
            versions.max_stored                    8                                                                                                        default
            versions.organisation_claim            org_id                                                                                                   default
            calendar.time_zone                     UTC                                                                                                      default
            calendar.calendars                     primary, team, personal                                                                                  default
            calendar.conference_url                -                                                                                                        default
            calendar.details_claim                 -                                                                                                        default
            calendar.manage_claim                  -                                                                                                        default
            calendar.owner.name                    -                                                                                                        default
            calendar.owner.email                   -                                                                                                        default
            calendar.backend.NAME.kind             local                                                                                                    default
            calendar.backend.NAME.url              -                                                                                                        default
            calendar.backend.NAME.calendar         -                                                                                                        default
            calendar.backend.NAME.user             -                                                                                                        default
            calendar.backend.NAME.password_file    -                                                                                                        default
            calendar.backend.NAME.password         not set                                                                                                  default
            calendar.backend.NAME.timeout_seconds  5                                                                                                        default
            calendar.backend.NAME.mirror           true                                                                                                     default
            calendar.backend.NAME.send_updates     true                                                                                                     default
            calendar.backend.NAME.meet             false                                                                                                    default
            calendar.smtp.host                     -                                                                                                        default
            calendar.smtp.port                     -                                                                                                        default
            calendar.smtp.encryption               starttls                                                                                                 default
            calendar.smtp.user                     -                                                                                                        default
            calendar.smtp.password_file            -                                                                                                        default
            calendar.smtp.password                 not set                                                                                                  default
            calendar.smtp.from                     -                                                                                                        default
            calendar.smtp.ca_file                  -                                                                                                        default
            calendar.zoom.account_id               -                                                                                                        default
            calendar.zoom.client_id                -                                                                                                        default
            calendar.zoom.client_secret_file       -                                                                                                        default
            calendar.zoom.client_secret            not set                                                                                                  default
            calendar.zoom.user                     me                                                                                                       default
            calendar.zoom.base_url                 https://api.zoom.us/v2                                                                                   default
            calendar.zoom.token_url                https://zoom.us/oauth/token                                                                              default
            logs.level                             info                                                                                                     default
            logs.format                            auto                                                                                                     default
            alerts.rules_file                      -                                                                                                        default
            alerts.webhook_url                     -                                                                                                        default
            alerts.webhook_secret_file             -                                                                                                        default
            alerts.webhook_secret                  not set                                                                                                  default
            alerts.certificates                    -                                                                                                        default
            telemetry.endpoint                     -                                                                                                        default
            telemetry.service_name                 quarterdeck                                                                                              default
            telemetry.sampling_percent             100                                                                                                      default
            telemetry.content                      false                                                                                                    default
            telemetry.accept_traceparent           true                                                                                                     default
            telemetry.traces                       true                                                                                                     default
            telemetry.metrics                      true                                                                                                     default
            telemetry.logs                         true                                                                                                     default
            telemetry.interval_seconds             5                                                                                                        default
            telemetry.metrics_interval_seconds     60                                                                                                       default
            telemetry.timeout_seconds              10                                                                                                       default
            topics.sensitive                       bomb, bombs, corpse, gore, gun, guns, naked, nude, nudity, suicide, terrorist, torture, weapon, weapons  default
            present.keys                           -                                                                                                        default
            --- stderr
        "#]],
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let files = tree(
        r#"
        //- site.toml
        [server]
        listn = "127.0.0.1:80"
        admin_token = "hunter2-hunter2-hunter2"
        max_json_depth = 1000
        "#,
    );
    let mut command = command(files.path());
    command.env("QUARTERDECK_TEXT__PROVIDER", "gpt").args([
        "config",
        "--config",
        "site.toml",
        "--listen",
        "0.0.0.0:80",
    ]);
    check(
        &mut command,
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            error: the configuration has 5 problems
            site.toml:2: there is no key `server.listn`
              help: did you mean `server.listen`?
            site.toml:3: `server.admin_token` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`
            site.toml:4: `server.max_json_depth` is 1000; it takes a whole number from 4 to 127
            env QUARTERDECK_TEXT__PROVIDER: `text.provider` is "gpt"; it takes "gemini", "openai", "anthropic" or "rehearsal"
            flag --listen: listening on 0.0.0.0:80, which others can reach, needs an admin token
              help: set QUARTERDECK_ADMIN_TOKEN to the output of `openssl rand -hex 32`, or name a file that holds it in `server.admin_token_file`
        "#]],
    );
    check(
        command.arg("--json").env_remove("QUARTERDECK_TEXT__PROVIDER"),
        expect![[r#"
            exit 1
            --- stdout
            {
              "problems": [
                {
                  "origin": "site.toml:2",
                  "message": "there is no key `server.listn`",
                  "help": "did you mean `server.listen`?"
                },
                {
                  "origin": "site.toml:3",
                  "message": "`server.admin_token` is a secret, and secrets do not belong in this file",
                  "help": "set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`"
                },
                {
                  "origin": "site.toml:4",
                  "message": "`server.max_json_depth` is 1000; it takes a whole number from 4 to 127",
                  "help": null
                },
                {
                  "origin": "flag --listen",
                  "message": "listening on 0.0.0.0:80, which others can reach, needs an admin token",
                  "help": "set QUARTERDECK_ADMIN_TOKEN to the output of `openssl rand -hex 32`, or name a file that holds it in `server.admin_token_file`"
                }
              ]
            }
            --- stderr
        "#]],
    );
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let files = tree("");
    check(
        command(files.path()).args(["config", "--config", "site.toml"]),
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            error: the configuration has 1 problem
            flag --config: cannot read the configuration file site.toml: No such file or directory (os error 2)
        "#]],
    );
    check(
        command(files.path()).arg("config").env("QUARTERDECK_CONFIG", "other.toml"),
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            error: the configuration has 1 problem
            env QUARTERDECK_CONFIG: cannot read the configuration file other.toml: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn the_example_is_a_file_to_begin_with() {
    let files = tree("");
    let example = command(files.path()).args(["config", "--example"]).output().unwrap();
    std::fs::write(files.join("quarterdeck.toml"), &example.stdout).unwrap();
    let shown = command(files.path()).arg("config").output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
}

#[test]
fn programs_get_data() {
    let files = tree("//- quarterdeck.toml\n[limits]\nstreams = 5\n");
    let output = command(files.path()).args(["config", "--json"]).output().unwrap();
    let json = terminal::stdout_json(&output);
    let (streams, token) = (&json["settings"]["limits.streams"], &json["settings"]["server.admin_token"]);
    assert_eq!(*streams, serde_json::json!({ "value": 5, "origin": "quarterdeck.toml:2" }));
    assert_eq!(*token, serde_json::json!({ "isSet": false, "origin": "default" }));
}
