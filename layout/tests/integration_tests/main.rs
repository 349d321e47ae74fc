//! Data directories read from disk: files of real servers, files made by real WiredTiger engines of
//! three releases, and made ones for what real ones do not show. `./x test` installs the engines;
//! without them these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "all of this is test code"
)]

mod access;
mod cold_scan;
mod corrupted;
mod damage;

mod engines;
mod live;
mod local_server;

mod made_tree;
mod read_only;
mod real_directory;
mod real_wiredtiger;
mod verify_output;
mod walking;
