//! Waiting for a child process, with what the kernel counted of it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::{Result, ensure};

/// What a child that has ended used, together with the children that it waited for.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// User and system time.
    pub cpu_ns: u64,
    /// Peak resident memory.
    pub rss_bytes: u64,
}

/// Waits for the end of a child that nobody else waits for.
pub fn wait(pid: u32) -> Result<(ExitStatus, Usage)> {
    let pid = libc::pid_t::try_from(pid)?;
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals of the types that wait4 writes; the child is ours and nobody
    // else waits for it.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    ensure!(waited == pid, "wait4: {}", std::io::Error::last_os_error());
    let ns = |time: libc::timeval| {
        let us = time.tv_sec.saturating_mul(1_000_000) + time.tv_usec;
        u64::try_from(us).unwrap_or(0) * 1_000
    };
    let usage = Usage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}
