//! The parser against files that real servers wrote, whole and damaged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    unreachable_pub,
    reason = "tests; clippy's own exceptions do not reach their helpers"
)]

mod corruption;
mod directory;
mod forgery;
mod hostile;
mod lone;
mod memory;
mod mongod;
mod round_trips;
mod synthetic;

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting::new();
