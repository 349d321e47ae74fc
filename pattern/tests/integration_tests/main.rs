//! The analysis against patterns that are known beforehand: made up, and made by fio.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "all of this is test code"
)]

mod fio;
mod made_up;
mod properties;
mod server;
mod truths;
