//! A child process that cannot outlive us and never becomes a zombie.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

/// Keeps one child. Dropping it kills the child and waits for its end.
///
/// The kernel is told to kill the child when its parent dies. To the kernel, "parent" is the *thread* that
/// started it, so each child gets a thread of its own that starts it and then only waits for its end: that
/// thread lives exactly as long as the child may.
#[derive(Debug)]
pub(crate) struct Keeper {
    pid: u32,
    /// Signals sent through this descriptor can never reach a later process with the same number.
    pidfd: OwnedFd,
    exited: watch::Receiver<Option<ExitStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts `command` in a process group of its own, so that a terminal's Ctrl-C reaches only us.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let (started, has_started) = mpsc::channel();
        let (end, exited) = watch::channel(None);
        let thread = std::thread::Builder::new()
            .name("server keeper".into())
            .spawn(move || {
                prepare(&mut command);
                let (mut child, pidfd) = match spawn(&mut command) {
                    Ok(spawned) => spawned,
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return;
                    }
                };
                let _ = started.send(Ok((child.id(), pidfd)));
                let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
                let _ = end.send(Some(status));
            })?;
        let gone = || io::Error::other("the thread that starts the server ended unexpectedly");
        let (pid, pidfd) = has_started.recv().map_err(|_| gone())??;
        Ok(Self {
            pid,
            pidfd,
            exited,
            thread: Some(thread),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how the child ended, if it has.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        *self.exited.borrow()
    }

    /// Sends a signal; it is not an error if the child has ended.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for the end of the child, for at most `limit`.
    pub(crate) async fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = tokio::time::timeout(limit, self.exited.wait_for(Option::is_some)).await;
        end.ok().and_then(Result::ok).and_then(|status| *status)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.signal(Signal::KILL);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn spawn(command: &mut Command) -> io::Result<(Child, OwnedFd)> {
    let mut child = command.spawn()?;
    // It has not been waited for yet, so the number still belongs to this child.
    match pidfd_of(child.id()) {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

fn pidfd_of(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("it is not a process ID"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn prepare(command: &mut Command) {
    command.process_group(0);
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs between fork and exec and makes two system calls only; it neither
    // allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // We may have died between fork and the call above; nobody would then send the signal.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        });
    }
}
