//! The engine against real servers and against peers that break the protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod accidents;
mod libraries;
mod loops;
mod peer;
mod peers;
mod server;
mod workload;
