//! Encryption that knows whom it speaks to.

use quarterdeck_postgres::{DatabaseError, ErrorClass};
use quarterdeck_testkit::{PostgresServer, PostgresVersion};

use crate::database;

async fn is_encrypted(url: &str) -> Result<bool, DatabaseError> {
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let database = database(url);
    let row = database.call(move |client| Box::pin(async move { client.query_typed_one(sql, &[]).await }));
    row.await.map(|row| row.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn server_must_prove_that_it_is_the_one_that_was_named() {
    let Some((server, authority)) = PostgresServer::start_encrypted() else { return };
    let (port, authority) = (server.port(), authority.display().to_string());
    let trusted = format!("postgres://qd@localhost:{port}/postgres?sslmode=require&sslrootcert={authority}");
    assert_eq!(is_encrypted(&trusted).await, Ok(true));
    let plain = format!("postgres://qd@localhost:{port}/postgres?sslmode=disable");
    assert_eq!(is_encrypted(&plain).await, Ok(false));

    let unknown = is_encrypted(&format!("postgres://qd@localhost:{port}/postgres?sslmode=require")).await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    let misnamed = trusted.replace("localhost", "127.0.0.1");
    let misnamed = is_encrypted(&misnamed).await.unwrap_err().to_string();
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn password_is_proven_over_the_encrypted_line_and_a_wrong_one_is_final() {
    let Some((server, authority)) = PostgresServer::start_encrypted() else { return };
    server.execute("postgres", "CREATE ROLE ann LOGIN PASSWORD 'hunter2'");
    // The rules are in the server's own folder, which it works in.
    for (rule, redirect) in [("hostssl all ann 0.0.0.0/0 scram-sha-256", ">"), ("local all all trust", ">>")]
    {
        server
            .execute("postgres", &format!("COPY (SELECT '{rule}') TO PROGRAM 'cat {redirect} pg_hba.conf'"));
    }
    server.execute("postgres", "SELECT pg_reload_conf()");
    let url = |password: &str| {
        let (port, authority) = (server.port(), authority.display());
        format!(
            "postgres://ann:{password}@localhost:{port}/postgres?channel_binding=require&sslrootcert={authority}"
        )
    };
    assert_eq!(is_encrypted(&url("hunter2")).await, Ok(true));
    let wrong = is_encrypted(&url("hunter3")).await.unwrap_err();
    assert_eq!(wrong.class(), ErrorClass::Final, "{wrong}");
    assert!(!wrong.to_string().contains("hunter"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_encryption_is_not_spoken_to_where_it_is_required() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.url("postgres").replace("sslmode=disable", "sslmode=require");
    let refused = is_encrypted(&url).await.unwrap_err().to_string();
    assert!(refused.contains("TLS"), "{refused}");
}
