//! The system calls that are followed, and attaching programs to their classic tracepoints.

use libbpf_rs::{Link, Object, TracepointCategory};
use seekscope_run::{IoKind, IoOp};

/// A system call that is followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemCall {
    /// The number on this architecture.
    pub(crate) number: libc::c_long,
    /// The part of its tracepoints' names behind `sys_enter_` and `sys_exit_`.
    name: &'static str,
    pub(crate) op: IoOp,
    /// The program for its tracepoint (`bpf/io.bpf.c`). The kernel refuses one that reads more arguments than the call
    /// has.
    program: &'static str,
}

/// Programs for calls with one, three, four and six arguments.
const ARGUMENTS_1: &str = "seekscope_args1";
const ARGUMENTS_3: &str = "seekscope_args3";
const ARGUMENTS_4: &str = "seekscope_args4";
const ARGUMENTS_6: &str = "seekscope_args6";
const END: &str = "seekscope_end";
const OPENED: &str = "seekscope_open";

/// The programs that [`attach`] attaches.
pub(crate) const PROGRAMS: &[&str] = &[
    ARGUMENTS_1,
    ARGUMENTS_3,
    ARGUMENTS_4,
    ARGUMENTS_6,
    END,
    OPENED,
];

const fn call(
    number: libc::c_long,
    name: &'static str,
    op: IoOp,
    program: &'static str,
) -> SystemCall {
    SystemCall {
        number,
        name,
        op,
        program,
    }
}

const SYSTEM_CALLS: [SystemCall; 13] = [
    call(libc::SYS_read, "read", IoOp::Read, ARGUMENTS_3),
    call(libc::SYS_pread64, "pread64", IoOp::Pread, ARGUMENTS_4),
    call(libc::SYS_readv, "readv", IoOp::Readv, ARGUMENTS_3),
    call(libc::SYS_preadv, "preadv", IoOp::Preadv, ARGUMENTS_4),
    call(libc::SYS_preadv2, "preadv2", IoOp::Preadv2, ARGUMENTS_6),
    call(libc::SYS_write, "write", IoOp::Write, ARGUMENTS_3),
    call(libc::SYS_pwrite64, "pwrite64", IoOp::Pwrite, ARGUMENTS_4),
    call(libc::SYS_writev, "writev", IoOp::Writev, ARGUMENTS_3),
    call(libc::SYS_pwritev, "pwritev", IoOp::Pwritev, ARGUMENTS_4),
    call(libc::SYS_pwritev2, "pwritev2", IoOp::Pwritev2, ARGUMENTS_6),
    call(libc::SYS_fsync, "fsync", IoOp::Fsync, ARGUMENTS_1),
    call(
        libc::SYS_fdatasync,
        "fdatasync",
        IoOp::Fdatasync,
        ARGUMENTS_1,
    ),
    call(
        libc::SYS_sync_file_range,
        "sync_file_range",
        IoOp::SyncFileRange,
        ARGUMENTS_4,
    ),
];

/// Calls after which a file has a descriptor, with the names of their tracepoints.
#[cfg(target_arch = "x86_64")]
pub(crate) const OPEN_CALLS: [(libc::c_long, &str); 4] = [
    (libc::SYS_open, "open"),
    (libc::SYS_creat, "creat"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OPEN_CALLS: [(libc::c_long, &str); 2] =
    [(libc::SYS_openat, "openat"), (libc::SYS_openat2, "openat2")];

/// Returns the calls of these kinds.
pub(crate) fn of_kinds(kinds: &[IoKind]) -> impl Iterator<Item = SystemCall> {
    let calls = SYSTEM_CALLS.into_iter();
    calls.filter(|call| kinds.contains(&call.op.kind()))
}

/// Attaches [`PROGRAMS`] to the tracepoints of these calls, and of those that open files, whose names are needed
/// whatever is followed.
pub(super) fn attach(object: &Object, kinds: &[IoKind]) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let mut to = |tracepoint: String| -> libbpf_rs::Result<()> {
            links.push(program.attach_tracepoint(TracepointCategory::Syscalls, tracepoint)?);
            Ok(())
        };
        for call in of_kinds(kinds) {
            if name == call.program {
                to(format!("sys_enter_{}", call.name))?;
            } else if name == END {
                to(format!("sys_exit_{}", call.name))?;
            }
        }
        for (_, call) in OPEN_CALLS.iter().filter(|_| name == OPENED) {
            to(format!("sys_exit_{call}"))?;
        }
    }
    Ok(links)
}
