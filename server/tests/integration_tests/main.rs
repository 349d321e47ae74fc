//! Against the real kernel and a real server. What a test lacks (a server program, root, a cgroup
//! controller) fails it with a message: a skipped test would look like a passed one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests count as tests"
)]

mod announcing_proxy;
mod child;
mod examination;
mod leftovers;
mod local_server;
mod many_shards;
mod page_cache;
mod sampling;
mod scripted_server;
mod server;
mod slow_disk;
mod support;
