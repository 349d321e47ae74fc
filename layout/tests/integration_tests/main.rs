//! Data directories read from disk: files of real servers, and made ones for what real ones do not
//! show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "helpers of tests count as tests"
)]

mod access;
mod made_tree;
mod read_only;
mod real_directory;
