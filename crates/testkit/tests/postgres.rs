//! The server that other tests stand on.

use quarterdeck_testkit::{PostgresServer, PostgresVersion};

#[test]
fn server_keeps_what_was_committed_when_it_is_stopped_killed_and_restarted() {
    for version in PostgresVersion::ALL {
        let Some(server) = PostgresServer::start(version) else { return };
        let url = server.create_database();
        let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
        server.execute(name, "CREATE TABLE kept (n int)");
        for (n, end) in
            [PostgresServer::stop, PostgresServer::kill, PostgresServer::restart].iter().enumerate()
        {
            server.execute(name, &format!("INSERT INTO kept VALUES ({n})"));
            end(&server);
            server.restart();
            assert_eq!(server.execute(name, "SELECT count(*) FROM kept"), (n + 1).to_string());
        }
    }
}

#[test]
fn a_standby_has_everything_that_was_committed_when_its_server_is_killed() {
    let Some(primary) = PostgresServer::start(PostgresVersion::V18) else { return };
    let standby = primary.start_synchronous_standby();
    primary.execute("postgres", "CREATE TABLE t AS SELECT 42 AS n");
    primary.kill();
    standby.promote();
    assert_eq!(standby.execute("postgres", "SELECT n FROM t"), "42");
    standby.execute("postgres", "INSERT INTO t VALUES (43)");
}
