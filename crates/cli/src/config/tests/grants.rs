//! `[tools.NAME]`: secrets and private hosts of single tools.

use expect_test::expect;
use quarterdeck_outbound::SecretText;
use quarterdeck_testkit::tree;

use super::super::*;
use super::{config, loaded, refused, row};

const KEY: &str = "hunter2-hunter2";

#[test]
fn a_tool_is_granted_secrets_and_private_hosts() {
    let files = tree("//- tenant\nhunter2-tenant\n");
    let file = format!(
        "[tools]\nfolder = 't'\n[tools.weather]\nprivate_hosts = ['localhost:8080', '10.0.0.5:443']\n\
         [tools.weather.secrets]\nAPI_KEY = {{ env = 'WEATHER_KEY' }}\nTENANT = {{ file = {:?} }}\n[tools.tide-table]\n",
        files.join("tenant")
    );
    let variables = [("WEATHER_KEY", KEY), ("QUARTERDECK_TOOLS__TIDES__SECRETS__TOKEN", "hunter2-tides")];
    let loaded = loaded(&file, &variables);
    let grants = &loaded.config.grants;
    assert_eq!(grants.keys().collect::<Vec<_>>(), ["tide_table", "tides", "weather"]);
    let weather = &grants["weather"];
    let hosts: Vec<_> = weather.private_hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["localhost:8080", "10.0.0.5:443"]);
    assert_eq!(weather.secrets["API_KEY"], SecretText::from(KEY));
    assert_eq!(weather.secrets["TENANT"], SecretText::from("hunter2-tenant"));
    assert_eq!(grants["tides"].secrets["TOKEN"], SecretText::from("hunter2-tides"));
    assert_eq!(
        row(&loaded, "tools.weather.private_hosts"),
        r#"["localhost:8080","10.0.0.5:443"] from quarterdeck.toml:4"#
    );
    let listing = format!("{}{}{:?}", loaded.listing.to_text(), loaded.listing.to_json(), loaded.config);
    assert!(listing.contains("tools.weather.secrets.API_KEY"), "{listing}");
    assert!(!listing.contains("hunter2"), "{listing}");
}

#[test]
fn the_variable_of_a_secret_wins_over_the_file() {
    let file = "tools.weather.secrets.API_KEY = { env = 'WEATHER_KEY' }";
    let variables = [("WEATHER_KEY", "hunter2-other"), ("QUARTERDECK_TOOLS__WEATHER__SECRETS__API_KEY", KEY)];
    assert_eq!(config(file, &variables).grants["weather"].secrets["API_KEY"], SecretText::from(KEY));
}

#[test]
fn what_cannot_be_granted_is_refused_without_repeating_a_secret() {
    refused(
        r#"
        [tools.weather]
        private_hosts = ["localhost", "https://a:1"]
        private_host = ["localhost:1"]
        [tools.weather.secrets]
        LITERAL = "hunter2-literal"
        UNSET = { env = "hunter2_variable" }
        OURS = { env = "QUARTERDECK_ADMIN_TOKEN" }
        NO_FILE = { file = "hunter2-file" }
        BOTH = { env = "WEATHER_KEY", file = "x" }
        SHORT = { env = "SHORT_KEY" }
        low-er = { env = "WEATHER_KEY" }
        [tools.folder]
        x = 1
        "#,
        &[("WEATHER_KEY", KEY), ("SHORT_KEY", "short")],
        expect![[r#"
            the configuration has 10 problems
            quarterdeck.toml:3: `tools.weather.private_hosts` is "localhost"; it takes a list; each item is a host with a port, such as localhost:8080, vault.internal:8200 or 10.0.0.5:443
            quarterdeck.toml:4: there is no key `tools.weather.private_host`
              help: did you mean `tools.weather.private_hosts`?
            quarterdeck.toml:6: `tools.weather.secrets.LITERAL` is a secret, and secrets do not belong in this file
              help: write `{ env = "VARIABLE" }` or `{ file = "PATH" }`
            quarterdeck.toml:7: `tools.weather.secrets.UNSET.env` names a variable that is not set
              help: set that variable; write its name here, not the secret itself
            quarterdeck.toml:8: `tools.weather.secrets.OURS.env` is not such a name; it takes the name of an environment variable that holds the secret, and does not begin with QUARTERDECK_
            quarterdeck.toml:9: `tools.weather.secrets.NO_FILE.file` names a file that cannot be read: No such file or directory (os error 2)
              help: write the name of a file that holds the secret, not the secret itself
            quarterdeck.toml:10: `tools.weather.secrets.BOTH` has both `env` and `file`
              help: leave one out
            quarterdeck.toml:12: `tools.weather.secrets.low-er` cannot be a secret
              help: a secret has the name that `secrets` in the tool's schema.json gives it, such as API_KEY
            quarterdeck.toml:13: `tools.folder` is a table; it takes the path of a folder
            env SHORT_KEY: this secret is too short for `tools.weather.secrets.SHORT`, which takes 8 characters or more
              help: `openssl rand -hex 32` makes a good one
        "#]],
    );
}

#[test]
fn commands_without_a_server_run_without_the_secrets() {
    let mut raw = RawConfig::default();
    super::parse_text(
        "quarterdeck.toml",
        "tools.weather.secrets.API_KEY = { env = 'WEATHER_KEY' }",
        &mut raw,
    )
    .unwrap();
    let local = load_local(raw, Variables::default()).unwrap();
    assert!(local.grants["weather"].secrets.is_empty());
}
