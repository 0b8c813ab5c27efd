//! What an address may say.

use std::time::Duration;

use quarterdeck_postgres::{Database, PostgresSettings, PostgresUrlError};

fn parse(url: &str) -> Result<PostgresSettings, PostgresUrlError> {
    PostgresSettings::from_url(url)
}

/// The encryption as `Debug` shows it, which is all that others see of it.
fn encryption(url: &str) -> &'static str {
    let shown = format!("{:?}", parse(url).unwrap());
    if shown.contains("Disabled") { "none" } else { "verified" }
}

#[test]
fn encryption_is_verified_unless_the_server_is_on_this_machine_or_it_is_switched_off() {
    for (url, expected) in [
        ("postgres://qd@localhost/qd", "none"),
        ("postgres://qd@127.0.0.1:6000/qd", "none"),
        ("postgres://qd@[::1]/qd", "none"),
        ("postgres://qd@%2Frun%2Fpostgresql/qd", "none"),
        ("postgres://qd@/qd?host=/run/postgresql", "none"),
        ("postgres://qd@db.example/qd", "verified"),
        ("postgres://qd@localhost,db.example/qd", "verified"),
        ("postgres://qd@localhost/qd?sslmode=require", "verified"),
        ("postgres://qd@localhost/qd?sslrootcert=ca.pem", "verified"),
        ("postgres://qd@db.example/qd?sslmode=verify-full", "verified"),
        ("postgresql://qd@db.example/qd?sslmode=disable", "none"),
    ] {
        assert_eq!(encryption(url), expected, "{url}");
    }
}

#[test]
fn address_that_cannot_be_meant_is_refused_with_a_way_out() {
    for (url, expected) in [
        ("mysql://qd@db/qd", "must begin with postgres://"),
        ("postgres://qd@db", "names no database"),
        ("postgres:///qd?user=qd", "names no host"),
        ("postgres://db/qd", "names no user"),
        ("postgres://qd@db/qd?sslmode=prefer", "use sslmode=require"),
        ("postgres://qd@db/qd?sslmode=yes", "`sslmode`"),
        ("postgres://qd@db/qd?pool_size=0", "`pool_size`"),
        ("postgres://qd@db/qd?statement_timeout=never", "`statement_timeout`"),
        ("postgres://qd@db/qd?colour=red", "colour"),
        ("postgres://qd:hunter2@db:port/qd", "port"),
        ("postgres://qd:s@hunter2@db/qd", "%40"),
        ("postgres://qd:s?hunter2=x@db/qd", "%40"),
    ] {
        let refused = parse(url).unwrap_err().to_string();
        assert!(refused.contains(expected), "{url}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}

#[test]
fn limits_come_from_the_address_or_have_a_default() {
    let plain = parse("postgres://qd@db/qd").unwrap();
    assert_eq!((plain.pool_size, plain.statement_timeout), (16, Duration::from_secs(5)));
    let given = parse("postgres://qd@db/qd?pool_size=4&statement_timeout=250&connect_timeout=1").unwrap();
    assert_eq!((given.pool_size, given.statement_timeout), (4, Duration::from_millis(250)));
    assert_eq!(given.connect_timeout, Duration::from_secs(1));
}

#[test]
fn password_is_never_shown() {
    let url = "postgres://qd:hunter2@one.example:6000,two.example/quarterdeck";
    let settings = parse(url).unwrap();
    assert_eq!(settings.address(), "postgres://one.example:6000,two.example:5432/quarterdeck");
    let database = Database::connect(settings.clone()).unwrap();
    for shown in [format!("{settings:?}"), format!("{database:?}"), database.address().to_owned()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn file_of_authorities_that_is_missing_or_empty_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for file in [folder.path().join("missing.pem"), empty] {
        let url = format!("postgres://qd@db/qd?sslrootcert={}", file.display());
        let refused = Database::connect(parse(&url).unwrap()).unwrap_err().to_string();
        assert!(refused.contains(file.to_str().unwrap()) && refused.contains("sslrootcert"), "{refused}");
    }
}
