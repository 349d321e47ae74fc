//! Against a real Cassandra: SEEKSCOPE_TEST_CASSANDRA, else the jars in seekscope's cache folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod cassandra_server;

mod ownership;
mod requests;
mod ycsb;
