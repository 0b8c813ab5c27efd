//! Who answers, and what that needs.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_transports::openai::{OutputLimit, SystemRole};

use super::super::*;
use super::{config, loaded, refused, row, with};

#[test]
fn environment_chooses_the_provider_by_default() {
    let chosen = |variables: &[(&str, &str)]| {
        let loaded = loaded("text.model = 'm'", variables);
        (row(&loaded, "text.provider"), row(&loaded, "text.base_url"))
    };
    let all = [
        ("ANTHROPIC_API_KEY", "a"),
        ("OPENAI_BASE_URL", "http://localhost:11434/v1/"),
        ("GOOGLE_API_KEY", "g"),
    ];
    assert_eq!(chosen(&all).0, r#""gemini" from env GOOGLE_API_KEY"#);
    let (provider, url) = chosen(&all[..2]);
    assert_eq!(provider, r#""openai" from env OPENAI_BASE_URL"#);
    assert_eq!(url, r#""http://localhost:11434/v1" from env OPENAI_BASE_URL"#);
    assert_eq!(chosen(&all[..1]).0, r#""anthropic" from env ANTHROPIC_API_KEY"#);
    assert_eq!(chosen(&[]).0, r#""rehearsal" from default"#);
    let named = loaded("text.provider = 'rehearsal'", &all);
    assert_eq!(row(&named, "text.provider"), r#""rehearsal" from quarterdeck.toml:1"#);
}

#[test]
fn what_a_provider_needs_is_asked_for() {
    refused(
        "text.provider = 'gemini'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: gemini needs a key
              help: set GEMINI_API_KEY or GOOGLE_API_KEY, or name a file that holds it in `text.api_key_file`
        "#]],
    );
    refused(
        "",
        &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")],
        expect![[r#"
            the configuration has 1 problem
            env OPENAI_BASE_URL: `text.model` is needed: which models this server of openai's protocol has is not known
              help: set QUARTERDECK_TEXT__MODEL to one of its models, or `text.model`
        "#]],
    );
    refused(
        "text.base_url = 'http://localhost:1'",
        &[("GEMINI_API_KEY", "k")],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: `text.base_url` needs `text.provider`: which protocol is spoken there cannot be guessed
              help: set `text.provider`; most servers of other vendors speak "openai"
        "#]],
    );
    refused(
        "",
        &[("OPENAI_BASE_URL", "https://u:hunter2@h"), ("QUARTERDECK_TEXT__MODEL", "m")],
        expect![[r#"
            the configuration has 1 problem
            env OPENAI_BASE_URL: it is a URL with a user, a query or a fragment; it takes a URL that begins with http:// or https://, without a password, a query and a fragment
        "#]],
    );
    let script = ServeOptions { rehearsal_script: Some("s".into()), ..ServeOptions::default() };
    let problems = with("text.provider = 'gemini'", &[("GEMINI_API_KEY", "k")], script).unwrap_err();
    expect![[r#"
        the configuration has 1 problem
        flag --rehearsal-script: this is for rehearsal alone, and `text.provider` is "gemini"
          help: set QUARTERDECK_TEXT__PROVIDER=rehearsal, or leave the flag out
    "#]]
    .assert_eq(&format!("{problems}\n"));
}

#[test]
fn another_server_of_a_protocol_needs_no_key_and_speaks_as_such_servers_do() {
    let file = "[text]\nprovider = 'openai'\nmodel = 'llama'\nmax_output_tokens = 100\nbase_url = 'http://localhost:11434/v1'";
    let ChatProvider::OpenAi(openai) = config(file, &[]).text.provider else { panic!("not openai") };
    assert!(openai.api_key.is_none());
    assert_eq!(openai.output_limit, OutputLimit::MaxTokens(100));
    assert_eq!(openai.system_role, SystemRole::System);
    let voice = config("voice.base_url = 'ws://127.0.0.1:9090'", &[]).voice.provider;
    assert!(matches!(voice, LiveProvider::Gemini(endpoint) if endpoint.base_url == "ws://127.0.0.1:9090"));
}

#[test]
fn images_need_a_provider_that_is_named_and_its_key() {
    // A key for the chat model does not switch on what costs money with every call.
    assert!(config("text.model = 'm'", &[("OPENAI_API_KEY", "k")]).images.provider.is_none());
    let images =
        config("images.provider = 'openai'", &[("OPENAI_API_KEY", "k"), ("QUARTERDECK_TEXT__MODEL", "m")]);
    let Some(ImageModel::OpenAi(openai)) = images.images.provider else { panic!("not openai") };
    assert_eq!((&*openai.base_url, &*openai.model), ("https://api.openai.com/v1", "gpt-image-2"));
    let file = "[images]\nprovider = 'gemini'\nbase_url = 'http://127.0.0.1:9'\nmax_bytes = 1000000";
    let images = config(file, &[]).images;
    let Some(ImageModel::Gemini(gemini)) = images.provider else { panic!("not gemini") };
    assert_eq!((&*gemini.base_url, &*gemini.model), ("http://127.0.0.1:9", "gemini-nano-banana-2.1"));
    assert_eq!((images.limits.max_bytes, gemini.limits.response), (1_000_000, 3_048_576));
    refused(
        "images.provider = 'gemini'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: gemini needs a key
              help: set GEMINI_API_KEY or GOOGLE_API_KEY, or name a file that holds it in `images.api_key_file`
        "#]],
    );
    refused(
        "images.model = 'gpt-image-2'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: `images.model` needs `images.provider`
              help: set `images.provider` to "openai" or "gemini", or leave the key out
        "#]],
    );
}

#[test]
fn a_fallback_is_configured_as_the_first_model_is() {
    let file = "[text]\nprovider = 'openai'\nmodel = 'm'\nbase_url = 'http://localhost:1/v1'\n\
                [fallback]\nprovider = 'anthropic'\nfirst_byte_seconds = 7\n";
    let loaded = loaded(file, &[("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(row(&loaded, "fallback.model"), r#""claude-sonnet-5-5" from default"#);
    assert_eq!(row(&loaded, "text.retry_after_cap_seconds"), "2 from default", "users need not wait");
    let Text { provider: ChatProvider::OpenAi(first), fallback, .. } = loaded.config.text else { panic!() };
    assert_eq!(first.limits.max_retry_delay, Duration::from_secs(2));
    let Some(ChatProvider::Anthropic(fallback)) = fallback else { panic!("{fallback:?}") };
    assert_eq!((fallback.api_key.expose(), fallback.limits.first_byte), ("k", Duration::from_secs(7)));

    let capped = config(
        &file.replace("[text]\n", "[text]\nretry_after_cap_seconds = 9\n"),
        &[("ANTHROPIC_API_KEY", "k")],
    );
    let ChatProvider::OpenAi(first) = capped.text.provider else { panic!() };
    assert_eq!(first.limits.max_retry_delay, Duration::from_secs(9), "as the operator says");
    assert!(config("", &[("ANTHROPIC_API_KEY", "k"), ("GEMINI_API_KEY", "g")]).text.fallback.is_none());
}

#[test]
fn a_fallback_by_variables_alone_has_its_own_server() {
    let variables = [
        ("GEMINI_API_KEY", "g"),
        ("OPENAI_API_KEY", "o"),
        ("QUARTERDECK_FALLBACK__PROVIDER", "openai"),
        ("QUARTERDECK_FALLBACK__MODEL", "small"),
        ("QUARTERDECK_FALLBACK__BASE_URL", "http://localhost:2/v1"),
    ];
    let Some(ChatProvider::OpenAi(fallback)) = config("", &variables).text.fallback else { panic!() };
    assert_eq!((&*fallback.model, &*fallback.base_url), ("small", "http://localhost:2/v1"));
    assert_eq!(fallback.system_role, SystemRole::System);
}

#[test]
fn a_fallback_needs_its_provider_and_its_key() {
    refused(
        "fallback.model = 'm'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: `fallback.model` needs `fallback.provider`
              help: set `fallback.provider`; most servers of other vendors speak "openai"
        "#]],
    );
    refused(
        "fallback.provider = 'anthropic'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: anthropic needs a key
              help: set ANTHROPIC_API_KEY, or name a file that holds it in `fallback.api_key_file`
        "#]],
    );
}
