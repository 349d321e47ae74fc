//! The binary on MongoDB's own servers: a mongod alone, with a password and with TLS, replica sets, and a
//! sharded cluster with its mongos.
//!
//! `cargo test` leaves this suite out, because not everybody has a mongod. `./x test` runs it once on each
//! version that it finds; `cargo test -p seekscope-cli --test real_mongod [FILTER]` runs it on one:
//! `SEEKSCOPE_TEST_MONGOD` names the mongod (mongos lies beside it, or `SEEKSCOPE_TEST_MONGOS` names it);
//! without it, the first on PATH or in seekscope's cache is taken. Where there is none, every test fails.
//!
//! # Adding a test
//!
//! There is a module per topic. A new one is a file here and a line below. Usually a test looks like this:
//!
//! ```ignore
//! #[test]
//! fn what_is_true() {
//!     let _machine = shared_machine();                // or machine(), see below
//!     let bench = Bench::new();                       // a folder of its own, and how to run seekscope
//!     let server = shared(Topology::Standalone);      // started by the first test that asks for it
//!     server.load("mine.orders", 20_000);             // SDU documents of about 3 KiB
//!     let document = json(&mut bench.seekscope(&["doctor", server.uri(), "--for", "5s", "--out", "run"]));
//!     assert_valid("doctor", &document);
//! }
//! ```
//!
//! - A test that traces, measures, loads the machine or starts servers takes one of two locks first, and never a second
//!   one beside it. Most take [`support::shared_machine`], which several hold at once: nearly all of their time they wait
//!   for a watch to end or for a slow disk. Beside such a test up to five others may use both CPUs, read and write the
//!   disk, and trace. So it says nothing of times and rates that these could change, it waits for what it wants to see
//!   rather than for some seconds, and it gives what happens during a watch more time than an idle machine needs.
//! - [`support::machine`] is for tests that compare times or rates, look at the whole machine (its disk, CPUs, memory,
//!   processes or eBPF programs), or want a finding to be the first one or nothing to be wrong. They run one after the
//!   other, while all others wait. What such a test needs is therefore made with [`running::beforehand`], while others
//!   still run. A comment says why it wants the machine alone, unless that is plain.
//! - Tests without a lock run beside every other, also beside those that measure. They hardly do anything, as those that
//!   try wrong arguments.
//! - [`running::shared`] gives the one deployment of a topology that all tests use, several of them at the same time. A
//!   start takes seconds, of a cluster more; so use it wherever other tests' databases and their work do no harm. Name
//!   your databases after your module, leave other settings as they were, and never stop it. What others drop while
//!   seekscope looks at such a server appears among the limitations, and what they do in the counters of the whole server.
//! - [`running::own`] starts one for this test alone, with arguments for its mongod: for slow disks, small
//!   caches, kills, settings, measurements of the whole server, and where no limitation is to be left.
//! - [`running::Running`] has what tests ask of a deployment: its connection string, the process, data
//!   directory and log of a member by name, commands, documents. `reset_page_cache` makes reads cold.
//! - What runs seekscope, waits and checks schemas is that of the other suite (`integration_tests/support.rs`,
//!   `schemas.rs`), and so are the rules: no timed unit tests, bounded waits, nothing left behind.
//! - What differs between versions of the server is asked of [`running::Running::version`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test helper that fails is a failed test; nobody depends on a test"
)]

mod advise;
mod aged;
mod bench;
mod bench_failover;
mod bench_steps;
mod deployments;
mod disk_opinion;
mod doctor;
mod errors;
mod exporter;
#[path = "../integration_tests/exporter_process.rs"]
#[allow(dead_code, reason = "the other suite uses the rest")]
mod exporter_process;
mod file_names;
mod findings;
mod initial_sync;
mod large_cluster;
mod layout;
mod members;
mod mongod;
mod prefetch;
mod query_findings;
mod reorder;
mod reorder_kills;
mod role;
mod router;
mod running;
#[path = "../integration_tests/schemas.rs"]
mod schemas;
mod set_writes;
mod shard_spread;
mod sharding;
mod sockets;
#[path = "../integration_tests/support.rs"]
#[allow(dead_code, reason = "the other suite uses the rest")]
mod support;
mod trace;
mod tune;
mod tune_failover;
mod tune_rolling;
mod whole;
