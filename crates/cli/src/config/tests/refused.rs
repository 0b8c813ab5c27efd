//! What cannot be meant is told, all of it at once.

use std::path::Path;

use expect_test::expect;

use super::super::raw::{SCRIPT_VARIABLES, SPECIAL_VARIABLES};
use super::{TOKEN, config, refused};

#[test]
fn every_unknown_key_is_told_with_its_place_and_the_nearest_known_one() {
    refused(
        r#"
        colour = "red"
        [server]
        listn = "127.0.0.1:1"
        "text.model" = 1
        [sever]
        port = 1
        [text.opena]
        [server.listen.port]
        "#,
        &[
            ("QUARTERDECK_TEXT__PROVDER", "gemini"),
            ("QUARTERDECK_LISTEN", "x"),
            ("QUARTERDECK_ADMIN_TOKN", "x"),
            ("QUARTERDECK_SERVER_PORT", "8080"),
            ("QUARTERDECK_API_KEY_", "x"),
        ],
        expect![[r#"
            the configuration has 11 problems
            quarterdeck.toml:2: there is no key `colour`
            quarterdeck.toml:4: there is no key `server.listn`
              help: did you mean `server.listen`?
            quarterdeck.toml:5: there is no key `server."text.model"`
              help: did you mean `text.model`?
            quarterdeck.toml:6: there is no table [sever]
              help: did you mean [server]?
            quarterdeck.toml:8: there is no table [text.opena]
              help: did you mean [text.openai]?
            quarterdeck.toml:9: `server.listen` is a table; it takes an address with a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080
            env QUARTERDECK_ADMIN_TOKN: this variable sets nothing: there is no key `admin_tokn`
              help: did you mean QUARTERDECK_ADMIN_TOKEN?
            env QUARTERDECK_API_KEY_: this variable sets nothing: there is no key `api_key_`
              help: did you mean QUARTERDECK_TEXT__API_KEY_FILE?
            env QUARTERDECK_LISTEN: this variable sets nothing: there is no key `listen`
              help: did you mean QUARTERDECK_SERVER__LISTEN?
            env QUARTERDECK_SERVER_PORT: this variable sets nothing: there is no key `server_port`
              help: did you mean QUARTERDECK_MCP__SERVE?
            env QUARTERDECK_TEXT__PROVDER: this variable sets nothing: there is no key `text.provder`
              help: did you mean QUARTERDECK_TEXT__PROVIDER?
        "#]],
    );
}

#[test]
fn foreign_variables_are_ignored() {
    config(
        "",
        &[
            ("QUARTERDECK_SERVICE_HOST", "10.0.0.1"),
            ("QUARTERDECK_SERVICE_PORT_HTTP", "80"),
            ("QUARTERDECK_PORT", "tcp://10.0.0.1:80"),
            ("QUARTERDECK_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("HOME", "/root"),
        ],
    );
}

#[test]
fn variables_of_our_scripts_do_not_stop_the_program() {
    config("", &SCRIPT_VARIABLES.map(|name| (name, "1")));
    // A script that looks at one more variable must not be the first to find out.
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    for script in std::fs::read_dir(scripts).unwrap() {
        let Ok(text) = std::fs::read_to_string(script.unwrap().path()) else { continue };
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for name in words.filter(|word| word.starts_with("QUARTERDECK_") && !word.contains("__")) {
            assert!(SCRIPT_VARIABLES.contains(&name) || SPECIAL_VARIABLES.contains(&name), "{name}");
        }
    }
}

#[test]
fn a_wrong_value_is_told_with_what_would_be_right() {
    refused(
        r#"
        [server]
        listen = "8080"
        max_json_depth = 128
        max_connections = "many"
        drain_seconds = -1
        origins = ["https://a.example", "https://b.example/path"]
        secure_cookie = "sometimes"
        trust_proxy = 1
        [text]
        provider = "gpt"
        rounds = 2.5
        base_url = "https://user:hunter2@proxy.example"
        [kb]
        folder = ["kb"]
        [calendar]
        time_zone = "Mars/Olympus"
        [prompts]
        folder = "nowhere"
        "#,
        &[("QUARTERDECK_LIMITS__STREAMS", "0")],
        expect![[r#"
            the configuration has 14 problems
            quarterdeck.toml:3: `server.listen` is "8080"; it takes an address with a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080
            quarterdeck.toml:4: `server.max_json_depth` is 128; it takes a whole number from 4 to 127
            quarterdeck.toml:5: `server.max_connections` is "many"; it takes a whole number from 1 to 1000000
            quarterdeck.toml:6: `server.drain_seconds` is -1; it takes a whole number from 0 to 600
            quarterdeck.toml:7: `server.origins` is "https://b.example/path"; it takes a list; each item is an origin as browsers send it, such as https://app.example or http://localhost:3000: lower case, no path, no slash at the end
            quarterdeck.toml:8: `server.secure_cookie` is "sometimes"; it takes "auto", true or false
            quarterdeck.toml:9: `server.trust_proxy` is 1; it takes true or false
            quarterdeck.toml:11: `text.provider` is "gpt"; it takes "gemini", "openai", "anthropic" or "rehearsal"
            quarterdeck.toml:12: `text.rounds` is a number with a fraction; it takes a whole number from 1 to 100
            quarterdeck.toml:13: `text.base_url` is a URL with a user, a query or a fragment; it takes a URL that begins with http:// or https://, without a password, a query and a fragment
            quarterdeck.toml:15: `kb.folder` is a list; it takes the path of a folder
            quarterdeck.toml:17: `calendar.time_zone`: "Mars/Olympus" is not a known IANA time zone; write it like Europe/Berlin
            quarterdeck.toml:19: `prompts.folder` is "nowhere", and there is no such folder
              help: leave the key out to use the built-in instructions
            env QUARTERDECK_LIMITS__STREAMS: `limits.streams` is "0"; it takes a whole number from 1 to 1000000
        "#]],
    );
}

#[test]
fn a_file_that_is_not_toml_is_told_with_the_line() {
    refused(
        "[server]\nlisten = \n",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:2: this is not TOML: string values must be quoted, expected literal string
        "#]],
    );
}

#[test]
fn listening_where_others_can_reach_needs_an_admin_token() {
    refused(
        "[server]\nlisten = \"0.0.0.0:80\"\n",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:2: listening on 0.0.0.0:80, which others can reach, needs an admin token
              help: set QUARTERDECK_ADMIN_TOKEN to the output of `openssl rand -hex 32`, or name a file that holds it in `server.admin_token_file`
        "#]],
    );
    for local in ["127.0.0.9:80", "[::1]:80", "localhost:0", "[::ffff:127.0.0.1]:80"] {
        config(&format!("server.listen = {local:?}"), &[]);
    }
    let config = config("server.listen = '[::]:80'", &[("QUARTERDECK_ADMIN_TOKEN", TOKEN)]);
    assert_eq!(config.server.admin_token.map(|token| token.expose().to_owned()), Some(TOKEN.into()));
}

#[test]
fn a_surface_that_nothing_would_open_is_refused() {
    refused(
        "[auth.required]\nv1 = true\napi = true\nvoice = true\n",
        &[],
        expect![[r#"
        the configuration has 3 problems
        quarterdeck.toml:2: `auth.required.v1` is true, but there is no key and no verification of tokens, so nothing would open it
          help: set QUARTERDECK_API_KEY_<NAME>, or QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`
        quarterdeck.toml:3: `auth.required.api` is true, but there is no key and no verification of tokens, so nothing would open it
          help: set QUARTERDECK_API_KEY_<NAME>, or QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`
        quarterdeck.toml:4: `auth.required.voice` is true, but there is no key and no verification of tokens, so nothing would open it
          help: set QUARTERDECK_API_KEY_<NAME>, or QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`
    "#]],
    );
    config("[auth.required]\nv1 = true\napi = true\n", &[("QUARTERDECK_API_KEY_CI", "a-key-of-some-length")]);
    config("[auth.required]\nv1 = \"auto\"\napi = false\n", &[]);
}

#[test]
fn what_is_no_host_and_no_network_is_refused() {
    refused(
        r#"
        [server]
        hosts = ["https://shop.example"]
        trusted_proxies = ["10.0.0.0/33"]
        "#,
        &[],
        expect![[r#"
            the configuration has 2 problems
            quarterdeck.toml:3: `server.hosts` is "https://shop.example"; it takes a list; each item is a host name or an address without a port, such as app.example, 192.0.2.1 or [2001:db8::1], in lower case
            quarterdeck.toml:4: `server.trusted_proxies` is "10.0.0.0/33"; it takes a list; each item is an address or a network, such as 10.0.0.5, 10.0.0.0/8 or 2001:db8::/32
        "#]],
    );
    for host in ["Shop.example", "shop.example:80", "", "a b", "[::1]:80", "shop.example/"] {
        assert!(
            super::with(&format!("[server]\nhosts = [{host:?}]"), &[], Default::default()).is_err(),
            "{host}"
        );
    }
    let config = config(
        "[server]\nhosts = [\"shop.example\", \"[::1]\"]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]",
        &[],
    );
    assert_eq!((config.server.settings.hosts.len(), config.server.settings.trusted_proxies.len()), (2, 2));
}

#[test]
fn a_topic_has_words_and_its_list_a_plain_name() {
    refused(
        "[topics]\nlegal = ['lawsuit', '…']\n'a b' = ['x']\nsingle = 'word'\n",
        &[],
        expect![[r#"
        the configuration has 3 problems
        quarterdeck.toml:2: `topics.legal` is "…"; it takes a list; each item is a word, or several words next to each other
        quarterdeck.toml:3: "a b" cannot be a name in `topics`
          help: use letters, digits, `-` and `_`
        quarterdeck.toml:4: `topics.single` is "word"; it takes a list; each item is a word, or several words next to each other
    "#]],
    );
}
