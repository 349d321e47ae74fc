//! The parser against files that real servers wrote, whole and damaged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests; clippy's own exceptions do not reach their helpers"
)]

mod directory;
mod lone;
mod mongod;
