//! The engine and its clients against real servers, and against peers that break the protocol. The
//! server is SEEKSCOPE_TEST_SERVER, else the one in seekscope's tool folder. Without one the tests fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod accidents;
mod driver;
mod libraries;
mod loops;
mod peer;
mod peers;
mod server;
mod workload;
