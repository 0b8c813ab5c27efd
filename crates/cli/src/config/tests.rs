//! Precedence, and what values mean.

mod calendar_services;
mod calendars;
mod grants;
mod mcp;
mod page;
mod pages;
mod providers;
mod refused;
mod secrets;
mod speech;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use expect_test::Expect;
use quarterdeck_runtime::{AllowedDigests, Policy, VersionSettings};

use super::file::parse_text;
use super::raw::{RawConfig, Variables};
use super::*;

/// What a file, variables and flags come to.
fn with(file: &str, variables: &[(&str, &str)], flags: ServeOptions) -> Result<LoadedConfig, Problems> {
    let mut raw = RawConfig::default();
    parse_text("quarterdeck.toml", file, &mut raw).map_err(Problems::new)?;
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    merge(raw, Variables::from_all(variables), &flags)
}

fn loaded(file: &str, variables: &[(&str, &str)]) -> LoadedConfig {
    with(file, variables, ServeOptions::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn config(file: &str, variables: &[(&str, &str)]) -> Config {
    loaded(file, variables).config
}

/// What is said about a configuration that cannot be used.
fn refused(file: &str, variables: &[(&str, &str)], expected: Expect) {
    match with(file, variables, ServeOptions::default()) {
        // A server would rehearse instead; it is a problem all the same.
        Ok(LoadedConfig { model_problems, .. }) if !model_problems.is_empty() => {
            expected.assert_eq(&format!("{model_problems}\n"))
        }
        Ok(_) => panic!("this was accepted"),
        Err(problems) => expected.assert_eq(&format!("{problems}\n")),
    }
}

/// The value of a key and where it came from.
fn row(loaded: &LoadedConfig, key: &str) -> String {
    let json = loaded.listing.to_json();
    let row = &json["settings"][key];
    format!("{} from {}", row["value"], row["origin"].as_str().unwrap_or_default())
}

const TOKEN: &str = "an-admin-token-of-some-length";

#[test]
fn flag_wins_over_variable_over_file_over_default() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[kb]\nfolder = \"records\"\n";
    let variables = [("QUARTERDECK_SERVER__LISTEN", "127.0.0.1:2"), ("QUARTERDECK_KB__FOLDER", "more")];
    let listen = |loaded: LoadedConfig| row(&loaded, "server.listen");
    assert_eq!(listen(loaded("", &[])), r#""127.0.0.1:8080" from default"#);
    assert_eq!(listen(loaded(file, &[])), r#""127.0.0.1:1" from quarterdeck.toml:2"#);
    assert_eq!(listen(loaded(file, &variables)), r#""127.0.0.1:2" from env QUARTERDECK_SERVER__LISTEN"#);
    let flags = ServeOptions { listen: Some("127.0.0.1:3".into()), ..ServeOptions::default() };
    let all = with(file, &variables, flags).unwrap();
    assert_eq!(all.config.server.listen.port(), 3);
    assert_eq!(row(&all, "kb.folder"), r#""more" from env QUARTERDECK_KB__FOLDER"#);
    assert_eq!(listen(all), r#""127.0.0.1:3" from flag --listen"#);
}

#[test]
fn every_flag_sets_its_key() {
    let flag = |name: &str| Some(name.to_owned());
    let flags = ServeOptions {
        listen: flag("localhost:1"),
        data: flag("state"),
        tools: flag("t"),
        kb: flag("k"),
        locked: true,
        artifact_digest: flag(&"Ab".repeat(32)),
        allow_digests: flag(&format!("{}, {}", "Cd".repeat(32), "ef".repeat(32))),
        watch: false,
        new_store: false,
        config: None,
        rehearsal_script: flag("script.json"),
    };
    let config = with("", &[], flags).unwrap().config;
    let Folders { tools, kb, data, prompts, artifact, allowed, .. } = config.folders;
    let digests = ["ab", "cd", "ef"].map(|digits| digits.repeat(32));
    assert_eq!(allowed, AllowedDigests::Listed(digests.into()));
    assert_eq!(artifact, ArtifactRule::Locked { digest: Some("ab".repeat(32)) });
    assert_eq!((tools, kb, data), ("t".into(), "k".into(), "state".into()));
    assert_eq!(prompts, None);
    let ChatProvider::Rehearsal { script, .. } = config.text.provider else { panic!("not rehearsal") };
    assert_eq!(script, Some(PathBuf::from("script.json")));
}

#[test]
fn the_defaults_are_those_of_the_parts() {
    let config = config("", &[]);
    assert_eq!(config.policy, Policy::default());
    assert_eq!(config.versions, VersionSettings::default());
    assert_eq!(config.folders.allowed, AllowedDigests::Any);
    assert_eq!(config.calendar.calendars, quarterdeck_calendar::CalendarConfig::default());
    assert_eq!(config.text.settings, quarterdeck_agents::text::Settings::default());
    assert_eq!(config.voice.settings, quarterdeck_agents::voice::Settings::default());
    assert!(config.auth.tokens.is_none());
    assert!(matches!(config.server.cookie_secret, CookieSecret::Generated));
    assert!(matches!(config.voice.provider, LiveProvider::Simulator));
}

#[test]
fn a_variable_can_be_a_number_a_list_or_a_word() {
    let config = config(
        "",
        &[
            ("QUARTERDECK_SERVER__ORIGINS", "https://a.example, http://localhost:3000"),
            ("QUARTERDECK_SERVER__SECURE_COOKIE", "true"),
            ("QUARTERDECK_SERVER__TRUST_PROXY", "true"),
            ("QUARTERDECK_SERVER__DRAIN_SECONDS", " 3 "),
            ("QUARTERDECK_POLICY__VOICE__TOP_K", "none"),
            ("QUARTERDECK_POLICY__RETENTION_DAYS", "7"),
            ("QUARTERDECK_PRESENT__KEYS", "crm"),
            ("QUARTERDECK_TEXT__MODEL", ""),
        ],
    );
    assert_eq!(config.server.settings.origins, ["https://a.example", "http://localhost:3000"]);
    assert_eq!(config.server.settings.secure_cookie, Some(true));
    assert!(config.server.settings.trust_proxy);
    assert_eq!(config.server.settings.drain, Duration::from_secs(3));
    assert_eq!(config.policy.voice.top_k, None);
    assert_eq!(config.policy.retention, Duration::from_secs(7 * 24 * 3_600));
    assert!(config.config_keys.contains("crm"));
}

#[test]
fn numbers_may_be_written_as_toml_allows() {
    let config =
        config("[server]\nmax_body_bytes = 2_097_152\nmax_connections = 0x10\ndrain_seconds = +3", &[]);
    let server = &config.server.settings;
    assert_eq!((server.max_body_bytes, server.max_connections, server.drain.as_secs()), (2 << 20, 16, 3));
}

#[test]
fn lists_of_topics_have_names_of_the_operators_choice() {
    let json = |file: &str| serde_json::json!(config(file, &[]).topics);
    let built_in = json("")["sensitive"].clone();
    assert!(built_in.as_array().unwrap().contains(&"weapons".into()), "{built_in}");
    let given = json("[topics]\nlegal = ['lawsuit', 'power of attorney']\n");
    assert_eq!(given["legal"], serde_json::json!(["lawsuit", "power of attorney"]));
    assert_eq!(given["sensitive"], built_in, "the built-in list stays");
    assert_eq!(
        json("[topics]\nsensitive = []\n")["sensitive"],
        serde_json::json!([]),
        "and can be switched off"
    );
}

/// The chat model of an environment: who runs it, where, which, and what is wrong with the configured one.
fn chat(file: &str, variables: &[(&str, &str)]) -> (String, Vec<String>) {
    let loaded = with(file, variables, ServeOptions::default()).unwrap();
    let model = match loaded.config.text.provider {
        ChatProvider::Gemini(config) => format!("gemini {}", config.model),
        ChatProvider::OpenAi(config) => {
            let key = if config.api_key.is_some() { "with a key" } else { "without a key" };
            format!("{} {} {:?} {key}", config.base_url, config.model, config.dialect)
        }
        ChatProvider::Anthropic(config) => format!("anthropic {}", config.model),
        ChatProvider::Rehearsal { .. } => "rehearsal".to_owned(),
    };
    (model, loaded.model_problems.texts().collect())
}

#[test]
fn a_key_alone_is_enough() {
    for (variable, model) in [
        ("OPENAI_API_KEY", "https://api.openai.com/v1 gpt-5.4-mini OpenAi with a key"),
        ("GEMINI_API_KEY", "gemini gemini-3.8-flash"),
        ("ANTHROPIC_API_KEY", "anthropic claude-sonnet-5-5"),
    ] {
        assert_eq!(chat("", &[(variable, "sk-1")]), (model.to_owned(), Vec::new()), "{variable}");
    }
}

#[test]
fn what_makes_the_chat_model_unusable_is_told_and_rehearsed() {
    for (file, variables, words) in [
        (
            "",
            &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")][..],
            "set QUARTERDECK_TEXT__MODEL to one of its models",
        ),
        ("", &[("OPENAI_BASE_URL", "nowhere"), ("QUARTERDECK_TEXT__MODEL", "m")], "OPENAI_BASE_URL"),
        ("[text]\nprovider = 'gemini'", &[], "gemini needs a key"),
        ("[text]\nprovider = 'gpt'", &[], "`text.provider` is \"gpt\""),
        ("[text]\nbase_url = 'http://127.0.0.1:9'", &[], "needs `text.provider`"),
        ("", &[("OPENAI_API_KEY", "one\ntwo")], "more than one line"),
    ] {
        let (model, problems) = chat(file, variables);
        assert_eq!(model, "rehearsal", "{file} {variables:?}");
        assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:?}");
    }
}

#[test]
fn a_model_of_this_machine_takes_one_variable_and_gets_no_foreign_key() {
    let variables = [("QUARTERDECK_TEXT__MODEL", "ollama/qwen3:8b"), ("OPENAI_API_KEY", "sk-1")];
    let expected = "http://127.0.0.1:11434/v1 qwen3:8b Compatible without a key".to_owned();
    assert_eq!(chat("", &variables), (expected, Vec::new()));
    let text = config("", &variables).text;
    let ChatProvider::OpenAi(openai) = text.provider else { panic!("not openai") };
    assert_eq!(openai.limits.first_byte, Duration::from_secs(300), "it may have to be loaded");
    assert!(text.settings.round_deadline > openai.limits.first_byte);
    let patient = [variables[0], ("QUARTERDECK_TEXT__FIRST_BYTE_SECONDS", "7")];
    let ChatProvider::OpenAi(openai) = config("", &patient).text.provider else { panic!("not openai") };
    assert_eq!(openai.limits.first_byte, Duration::from_secs(7));
    // A name with a slash is a name where a provider is configured.
    let elsewhere = [("OPENAI_API_KEY", "sk-1"), ("QUARTERDECK_TEXT__MODEL", "meta/llama")];
    assert!(chat("", &elsewhere).0.starts_with("https://api.openai.com/v1 meta/llama"));
    let gateway = "[text]\nprovider = 'openai'\nmodel = 'ollama/x'\nbase_url = 'https://gateway.example/v1'";
    assert_eq!(chat(gateway, &[]).0, "https://gateway.example/v1 ollama/x Compatible without a key");
}
