//! `[store]` and `[cluster]`.

use expect_test::expect;
use quarterdeck_testkit::tree;

use super::super::*;
use super::{TOKEN, config, loaded, refused, row, with};
use crate::store_url::StoreUrl;

const PASSWORD: &str = "hunter2-hunter2";

/// The whole URL of a configured database, with its password.
fn exposed(config: &Config) -> String {
    match &config.store.url {
        Some(StoreUrl::Postgres(url)) => url.expose().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn store_of_the_data_folder_is_the_default() {
    let config = config("[data]\nfolder = 'state'", &[]);
    let node = config.node_data();
    assert!(
        matches!(&node.url, StoreUrl::Sqlite(file) if file.ends_with("state/quarterdeck.db")),
        "{node:?}"
    );
    assert_eq!(node.chain, "local");
    assert!(!config.store.is_shared());
}

#[test]
fn url_names_a_file_or_a_database() {
    let of =
        |url: &str| config(&format!("[store]\nurl = {url:?}\n[cluster]\nnode = 'fram'"), &[]).node_data();
    let file = of("sqlite:///var/lib/qd/store.db");
    assert_eq!((file.url.to_string().as_str(), file.chain.as_str()), ("/var/lib/qd/store.db", "local"));
    let database = of("postgres://qd@db.example:5432/qd?sslmode=require");
    assert_eq!(database.url.to_string(), "postgres://qd@db.example:5432/qd?sslmode=require");
    assert_eq!(database.chain, "fram");
}

#[test]
fn password_comes_from_a_variable_a_file_or_the_variable_of_the_url() {
    let files = tree(&format!("//- password\n{PASSWORD}\n"));
    let file = "[store]\nurl = 'postgres://qd@db.example/qd'";
    let expected = format!("postgres://qd@db.example/qd?password={PASSWORD}");
    assert_eq!(exposed(&config(file, &[("QUARTERDECK_STORE_PASSWORD", PASSWORD)])), expected);
    let named = format!("{file}\npassword_file = {:?}", files.join("password"));
    assert_eq!(exposed(&config(&named, &[])), expected);
    let url = format!("postgres://qd:{PASSWORD}@db.example/qd");
    assert_eq!(exposed(&config(&named, &[("QUARTERDECK_STORE__URL", &url)])), url);
    let root = format!("{file}\nroot_certificates_file = 'certs/root.pem'");
    assert_eq!(exposed(&config(&root, &[])), "postgres://qd@db.example/qd?sslrootcert=certs%2Froot.pem");
}

#[test]
fn password_is_in_no_listing_and_not_in_debug() {
    let url = format!("postgres://qd:{PASSWORD}@db.example/qd");
    let secrets =
        [("QUARTERDECK_STORE__URL", url.as_str()), ("QUARTERDECK_CLUSTER_SECRET", &PASSWORD.repeat(3))];
    let loaded = loaded("", &secrets);
    assert_eq!(row(&loaded, "store.url"), r#""postgres://qd@db.example/qd" from env QUARTERDECK_STORE__URL"#);
    for text in
        [loaded.listing.to_text(), loaded.listing.to_json().to_string(), format!("{:?}", loaded.config)]
    {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

#[test]
fn password_in_the_file_is_refused() {
    refused(
        "[store]\nurl = 'postgres://qd:hunter2@db.example/qd'\npassword = 'hunter2'\n[cluster]\nsecret = 'hunter2'",
        &[],
        expect![[r#"
            the configuration has 3 problems
            quarterdeck.toml:2: `store.url` holds a password, and secrets do not belong in this file
              help: leave it out of the URL, and set QUARTERDECK_STORE_PASSWORD, or name a file that holds it in `store.password_file`; or set QUARTERDECK_STORE__URL
            quarterdeck.toml:3: `store.password` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_STORE_PASSWORD, or name a file that holds it in `store.password_file`
            quarterdeck.toml:5: `cluster.secret` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_CLUSTER_SECRET, or name a file that holds it in `cluster.secret_file`
        "#]],
    );
}

#[test]
fn a_wrong_url_is_told_without_being_repeated() {
    refused(
        "[store]\nurl = 'mysql://qd:hunter2@db.example/qd'\npool_size = 1\nmigrate = 'never'\n[cluster]\nnode = 'a/b'\naddress = 'https://10.0.0.5'",
        &[("QUARTERDECK_CLUSTER_SECRET", "hunter2")],
        expect![[r#"
            the configuration has 6 problems
            quarterdeck.toml:2: `store.url` is an address of another kind; it takes a URL: postgres://USER@HOST/DATABASE or sqlite:///PATH
            quarterdeck.toml:3: `store.pool_size` is 1; it takes a whole number from 2 to 1000
            quarterdeck.toml:4: `store.migrate` is "never"; it takes "auto" or "manual"
            quarterdeck.toml:6: `cluster.node` is "a/b"; it takes a name of up to 64 letters, digits, `-`, `_` and `.`
            quarterdeck.toml:7: `cluster.address` is "https://10.0.0.5"; it takes a URL that begins with http://, without a password, a query and a fragment
            env QUARTERDECK_CLUSTER_SECRET: this secret is too short for `cluster.secret`, which takes 32 characters or more
              help: `openssl rand -hex 32` makes a good one
        "#]],
    );
}

#[test]
fn node_has_a_name_that_stays_and_an_address_that_others_reach() {
    let shared = "[store]\nurl = 'postgres://qd@db.example/qd'\n[server]\nlisten = ";
    let with_listen = |listen: &str| {
        with(&format!("{shared}{listen:?}"), &[("QUARTERDECK_ADMIN_TOKEN", TOKEN)], ServeOptions::default())
    };
    let config = with_listen("10.0.0.5:9000").unwrap().config;
    assert!(config.cluster.node.ends_with("-9000"), "{}", config.cluster.node);
    assert_eq!(config.cluster.node, with_listen("10.0.0.5:9000").unwrap().config.cluster.node);
    let address = |listening: &str| config.cluster.address_of(listening.parse().unwrap());
    assert_eq!(address("10.0.0.5:9000"), "http://10.0.0.5:9000");
    assert_eq!(address("[::1]:9000"), "http://[::1]:9000");
    let Err(problems) = with_listen("0.0.0.0:9000") else { panic!("a wildcard is no address") };
    let expected = expect![[r#"
        the configuration has 1 problem
        the other nodes cannot reach this one by 0.0.0.0:9000, so `cluster.address` is needed
          help: set it to what they reach this machine by, such as http://10.0.0.5:9000
    "#]];
    expected.assert_eq(&format!("{problems}\n"));
    let named = format!("{shared}'0.0.0.0:9000'\n[cluster]\naddress = 'http://10.0.0.5:9000/'");
    let config = with(&named, &[("QUARTERDECK_ADMIN_TOKEN", TOKEN)], ServeOptions::default()).unwrap().config;
    assert_eq!(config.cluster.address_of("0.0.0.0:9000".parse().unwrap()), "http://10.0.0.5:9000");
}
