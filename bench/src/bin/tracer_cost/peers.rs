//! Other tracers of the same calls, each writing what it sees to a file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Some attach without saying when they have; this is several times what they need.
const ATTACH: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    BpftracePrintf,
    BpftraceHistogram,
    Strace,
    PerfRecord,
}

/// One that is tracing.
pub(crate) struct Tracing {
    peer: Peer,
    child: Child,
    output: std::path::PathBuf,
    said: std::path::PathBuf,
}

impl Peer {
    /// The program it is.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::BpftracePrintf | Self::BpftraceHistogram => "bpftrace",
            Self::Strace => "strace",
            Self::PerfRecord => "perf",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        let mut command = Command::new(self.program());
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Attaches to a process.
    pub(crate) fn start(self, pid: u32, folder: &Path) -> Result<Tracing> {
        let (output, said) = (folder.join("output"), folder.join("said"));
        let child = self
            .command(pid, &output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said)?)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program()))?;
        std::thread::sleep(ATTACH);
        Ok(Tracing {
            peer: self,
            child,
            output,
            said,
        })
    }

    fn command(self, pid: u32, output: &Path) -> Command {
        let pid = pid.to_string();
        let enter = format!(
            "tracepoint:syscalls:sys_enter_pread64 /pid == {pid}/ {{ @start[tid] = nsecs; }}"
        );
        let exit = "tracepoint:syscalls:sys_exit_pread64 /@start[tid]/";
        let mut command = Command::new(self.program());
        match self {
            Self::BpftracePrintf => command.arg("-o").arg(output).arg("-e").arg(format!(
                "{enter} {exit} {{ printf(\"%d %d %d\\n\", tid, nsecs - @start[tid], args->ret); delete(@start[tid]); }}"
            )),
            Self::BpftraceHistogram => command.arg("-o").arg(output).arg("-e").arg(format!(
                "{enter} {exit} {{ @ns = hist(nsecs - @start[tid]); @calls = count(); delete(@start[tid]); }}"
            )),
            Self::Strace => command
                .args(["-f", "-e", "trace=pread64", "-p", &pid, "-o"])
                .arg(output),
            Self::PerfRecord => command
                .args(["record", "-e", "syscalls:sys_enter_pread64,syscalls:sys_exit_pread64"])
                .args(["-p", &pid, "-o"])
                .arg(output),
        };
        command
    }
}

impl Tracing {
    /// Ends it; returns how many calls it recorded.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process id")?;
        kill_process(pid, Signal::INT)?;
        self.child.wait()?;
        let said = std::fs::read_to_string(&self.said)?;
        let calls = match self.peer {
            Peer::BpftracePrintf => self.lines(|line| line.split(' ').count() == 3)?,
            Peer::Strace => self.lines(|line| line.contains("pread64("))?,
            Peer::BpftraceHistogram => {
                number_after(&std::fs::read_to_string(&self.output)?, "@calls: ")
            }
            // Entry and exit of each call.
            Peer::PerfRecord => number_after(&said, " (") / 2,
        };
        ensure!(calls > 0, "{:?} recorded nothing: {said}", self.peer);
        Ok(calls)
    }

    fn lines(&self, wanted: impl Fn(&str) -> bool) -> Result<u64> {
        let mut count = 0;
        for line in BufReader::new(File::open(&self.output)?).lines() {
            count += u64::from(wanted(&line?));
        }
        Ok(count)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // Ended before, or it is in the way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number after the last `mark` in a text, 0 without.
fn number_after(text: &str, mark: &str) -> u64 {
    let rest = text.rsplit_once(mark).map_or("", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}
