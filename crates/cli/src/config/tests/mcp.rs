//! `[mcp.servers.NAME]`.

use expect_test::expect;
use quarterdeck_host_mcp::{UpstreamLimits, UpstreamTransport};
use quarterdeck_testkit::tree;

use super::super::*;
use super::{config, loaded, refused};

fn server(config: &Config, name: &str) -> quarterdeck_host_mcp::UpstreamConfig {
    let found = config.mcp.iter().find(|(known, _)| known.as_str() == name);
    found.map(|(_, server)| server.clone()).unwrap()
}

#[test]
fn a_process_has_its_arguments_and_its_variables() {
    let file = r#"
        [mcp.servers.time]
        command = "uvx"
        args = ["mcp-server-time", "--local-timezone", ""]
        cwd = "work"
        env.TZ = "Europe/Oslo"
        env.PATH = { env = "PATH" }
        start_timeout_seconds = 90
        max_concurrent_calls = 3
    "#;
    let config = config(file, &[("PATH", "/bin")]);
    let time = server(&config, "time");
    let UpstreamTransport::Stdio(stdio) = &time.transport else { panic!() };
    assert_eq!((stdio.command.as_str(), stdio.args.len()), ("uvx", 3));
    assert_eq!(stdio.cwd.as_deref(), Some(std::path::Path::new("work")));
    let env: Vec<_> = stdio.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("PATH", "/bin"), ("TZ", "Europe/Oslo")]);
    let limits = UpstreamLimits {
        start_timeout: std::time::Duration::from_secs(90),
        max_concurrent_calls: 3,
        ..UpstreamLimits::default()
    };
    assert_eq!(time.limits, limits);
}

#[test]
fn a_url_has_headers_and_client_credentials_and_none_is_printed() {
    let files = tree("//- secret\nhunter2-file\n");
    let file = format!(
        "[mcp.servers.crm]\nurl = 'https://crm.example/mcp?profile=a'\nheaders.Authorization = {{ env = 'CRM_TOKEN', prefix = 'Bearer ' }}\n\
         headers.X-Team = 'deck'\noauth.client_id = 'us'\noauth.client_secret = {{ file = {:?} }}\noauth.scopes = ['read']\n\
         oauth.token_url = 'https://id.example/token'\nprivate_hosts = ['localhost:8080']\n",
        files.join("secret")
    );
    let loaded = loaded(&file, &[("CRM_TOKEN", "hunter2-token")]);
    let crm = server(&loaded.config, "crm");
    let UpstreamTransport::Http(http) = &crm.transport else { panic!() };
    assert_eq!(http.headers["authorization"].expose(), "Bearer hunter2-token");
    assert_eq!(http.headers["x-team"].expose(), "deck");
    let oauth = http.oauth.as_ref().unwrap();
    assert_eq!((oauth.client_id.as_str(), oauth.client_secret.expose()), ("us", "hunter2-file"));
    assert_eq!(http.private_hosts.len(), 1);
    let listing = format!("{}{}{:?}", loaded.listing.to_text(), loaded.listing.to_json(), loaded.config);
    assert!(!listing.contains("hunter2"), "{listing}");
}

#[test]
fn what_is_no_server_is_refused_without_repeating_a_secret() {
    refused(
        r#"
        [mcp.servers.Time]
        command = "x"
        [mcp.servers.neither]
        [mcp.servers.both]
        command = "x"
        url = "https://a.example"
        [mcp.servers.secrets]
        command = "x"
        env.GITHUB_TOKEN = "hunter2"
        env.UNSET = { env = "hunter2_variable" }
        [mcp.servers.url]
        url = "https://hunter2@a.example/?api_key=hunter2"
        [mcp.servers.typo]
        comand = "x"
        "#,
        &[],
        expect![[r#"
            the configuration has 8 problems
            quarterdeck.toml:2: [mcp.servers.Time]: a server's name has lower-case letters, digits, `-` and `_`, begins with a letter, and has at most 32 characters
            quarterdeck.toml:4: [mcp.servers.neither] has neither `command` nor `url`
              help: a server is reached in one of the two ways
            quarterdeck.toml:5: [mcp.servers.both] has both `command` and `url`
              help: a server is reached in one of the two ways
            quarterdeck.toml:10: `mcp.servers.secrets.env.GITHUB_TOKEN` is a secret, and secrets do not belong in this file
              help: write `{ env = "VARIABLE" }` or `{ file = "PATH" }`
            quarterdeck.toml:11: `mcp.servers.secrets.env.UNSET.env` names a variable that is not set
              help: set that variable; write its name here, not the secret itself
            quarterdeck.toml:13: `mcp.servers.url.url` is a URL with a user, a query or a fragment; it takes a URL that begins with https:// or http://, without a user, a password, a fragment and secrets in its query
            quarterdeck.toml:14: [mcp.servers.typo] has neither `command` nor `url`
              help: a server is reached in one of the two ways
            quarterdeck.toml:15: there is no key `mcp.servers.typo.comand`
              help: did you mean `mcp.servers.typo.command`?
        "#]],
    );
}
