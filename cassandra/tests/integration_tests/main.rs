//! Against a real Cassandra: SEEKSCOPE_TEST_CASSANDRA, else the jars in seekscope's cache folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod cassandra_server;

#[test]
fn starts() {
    let server = cassandra_server::CassandraServer::start();
    println!(
        "port {} pid {} {}",
        server.port,
        server.pid,
        server.uri("x", "")
    );
}
