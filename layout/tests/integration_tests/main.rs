//! Data directories read from disk: files of real servers, files made by real WiredTiger engines of
//! three releases, and what those engines say of them; made ones for what real ones do not show.
//! `./x test` installs the engines; without them these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "all of this is test code"
)]

mod access;
mod cold_scan;
mod corrupted;
mod damage;
mod damaged_directory;
mod engines;
mod live;
mod local_server;
mod made_tree;
mod memory;
mod read_only;
mod real_directory;
mod real_wiredtiger;
mod verify_output;
mod walking;
