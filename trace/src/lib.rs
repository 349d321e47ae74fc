//! Follows the I/O of processes with eBPF: which file and offset, how many bytes, how long, and
//! whether the page cache held them.
//!
//! # From system call to event
//!
//! 1. Small programs (`bpf/io.bpf.c`) run at the entry and exit of system calls: of all calls, or of
//!    those that are followed. They let everything pass except the read, write and sync calls of the
//!    processes followed, on regular files and block devices that the filters want. The entry program notes the call's start in an array slot chosen by thread
//!    id; the exit program writes one 56-byte record (`bpf/record.h`) into a ring buffer.
//! 2. [`Recording`] owns a thread that empties the ring every few milliseconds. Being woken for
//!    each record would cost the traced thread several times as much as the tracing itself.
//! 3. [`decode`] turns bytes into calls, [`files`] turns (device, inode) into named files, and an
//!    [`EventSink`] receives [`seekscope_run::IoEvent`]s, each file announced before its first
//!    event. Names of files that are opened meanwhile, and of threads, come through the same ring
//!    ([`notices`]).
//! 4. The trailer ([`seekscope_run::TraceFacts`]) says what was seen, written and lost, by cause.
//!    `seen = written + lost` holds exactly; the kernel counts `seen` and the losses, user space
//!    counts `written`, so the equation checks one against the other.
//!
//! Other I/O can be followed too, by [`Group`]s of programs, each of which loads or is left out
//! with its reason: io_uring, libaio, major faults of mapped files, requests of disks. Instead of
//! events the programs can keep totals per file ([`totals`]).
//!
//! # Two ways into the kernel
//!
//! Programs of type `tp_btf` run at every system call of the host: a followed call takes about 375 ns
//! longer, and any other 130 ns. Programs on the classic tracepoints of the followed calls alone add 530 ns
//! to these, 290 ns to the same calls of other processes, and 45 ns to all other calls (Linux 6.18); they
//! need tracefs. A server makes several calls on sockets for each on a file. So what
//! watches one takes these first ([`BackendChoice::Sparing`]); [`BackendChoice::Auto`] takes the others,
//! except from Linux 7.2 on, where they miss more calls (`preemption`). Where one kind does not load,
//! the other is tried, and the trailer says which one ran and why.
//!
//! # Hit or miss
//!
//! The kernel keeps two counters per thread: bytes it sent to the block layer for reading, and
//! how often it went to sleep. Their change over a call tells a page-cache hit from a miss
//! without a further probe; see [`seekscope_run::IoEvent::cache_outcome`].
//!
//! # What it does not see
//!
//! Reads through memory mappings, io_uring and libaio, unless their [`Group`] is asked for; 32-bit
//! programs; `msync`, `sync`, `splice` and `sendfile`; files of procfs, sysfs and cgroupfs, which
//! servers sample all the time and which are no disk I/O. Two threads that share a descriptor and
//! its position can make the offset of a plain `read` or `write` wrong (such events carry
//! `OFFSET_FROM_POSITION`). A file that was renamed has the name under which it was opened, until
//! the end of the trace, when it is looked for once more.

mod cost;
pub mod decode;
mod disks;
pub mod error;
pub mod files;
mod filter;
pub mod groups;
mod host_calls;
pub mod live;
mod loader;
mod members;
pub mod notices;
pub mod options;
mod preemption;
mod process;
pub mod recording;
pub mod replay;
mod request_counts;
mod ring;
pub mod source;
mod threads;
pub mod totals;

pub use error::{SinkError, TraceError};
pub use groups::Group;
pub use live::LiveSource;
pub use options::{BackendChoice, Filter, Followed, RequestScope, Sampling, TraceOptions};
pub use recording::Recording;
pub use replay::VecSource;
pub use source::{EventSink, EventSource};
pub use totals::{FileTotals, LATENCY_BUCKETS, RawTotals};
