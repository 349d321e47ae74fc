//! Against a real server: SEEKSCOPE_TEST_SERVER, else the one in seekscope's tool folder. Without
//! one the tests fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod engine;
mod index_build;
mod index_lab;
mod load_and_update;
mod own;
mod ownership;
mod schema;
mod sharding;
mod support;
mod sysbench;
mod verification;
mod ycsb;
