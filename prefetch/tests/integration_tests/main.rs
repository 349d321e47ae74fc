//! Reading ahead of real files on a real disk: what is in the page cache before and after.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test helper that fails is a failed test"
)]

mod stretches;
