//! Against a real server: SEEKSCOPE_TEST_SERVER, else the one in seekscope's tool folder. Without
//! one the tests fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests count as tests"
)]

mod copies;
mod full_disk;
mod interrupted;
mod others;
mod support;
