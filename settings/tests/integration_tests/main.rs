//! Against recorded replies, a server that answers with them, real files, real commands and a real server
//! (SEEKSCOPE_TEST_SERVER, else the one in seekscope's tool folder).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod applying;
mod config_file;
mod discovering;
mod exporting;
mod host;
mod mongod;
mod recorded;
mod secantusd;
mod support;
