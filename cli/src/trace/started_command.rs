//! A command that is started in order to be traced, and waits until the trace has begun.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{
    Pid, Signal, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitpid,
};

/// Stops itself, and becomes the user's command once continued.
const WAIT_THEN_RUN: &str = "kill -STOP $$; exec sh -c \"$1\"";
const POLL: Duration = Duration::from_millis(5);
/// How long it may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long the command may take to end when asked to.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The command's process. Dropping it ends the process.
pub struct StartedCommand {
    text: String,
    child: Child,
    /// SIGTERM was sent because the time was up.
    was_ended: bool,
}

impl StartedCommand {
    /// Starts `text` with `sh -c`; the command has not run yet when this returns. Its output goes to stderr, so
    /// that stdout stays ours.
    pub fn start(text: &str) -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", WAIT_THEN_RUN, "sh", text])
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            // So that what it starts itself can be ended with it.
            .process_group(0)
            .spawn()
            .context("cannot start sh, which starts the command to be traced")?;
        let command = Self {
            text: text.into(),
            child,
            was_ended: false,
        };
        command.wait_until_stopped()?;
        Ok(command)
    }

    fn wait_until_stopped(&self) -> Result<()> {
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let status =
                rustix::process::waitid(rustix::process::WaitId::Pid(self.handle()?), options)
                    .context("cannot wait for the command to be traced")?;
            if status.is_some_and(|status| status.stopped()) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("the command to be traced was not ready within {STOP_LIMIT:?}")
    }

    fn handle(&self) -> Result<Pid> {
        i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("the command has no process ID")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Names it in texts that are kept, by its first word alone: what follows may be a password.
    pub fn name(&self) -> String {
        let program = self.text.split_whitespace().next().unwrap_or_default();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        match !program.is_empty() && program.chars().all(is_plain) {
            true => format!("the command `{program} …`"),
            false => "the command".into(),
        }
    }

    /// Lets the command run.
    pub fn go_on(&self) -> Result<()> {
        kill_process(self.handle()?, Signal::CONT)
            .context("cannot continue the command to be traced")
    }

    /// Returns how it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks the command to end, waits a while, and then kills it.
    pub fn end(&mut self) {
        let Ok(pid) = self.handle() else { return };
        if self.ended().is_some() {
            return;
        }
        self.was_ended = true;
        // A stopped process acts on the signal only when continued.
        let _ = kill_process_group(pid, Signal::TERM);
        let _ = kill_process_group(pid, Signal::CONT);
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline {
            if self.ended().is_some() {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }

    /// Returns how the command ended if it failed by itself.
    pub fn failed(&mut self) -> Option<ExitStatus> {
        let status = self.ended()?;
        (!status.success() && !self.was_ended).then_some(status)
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_nothing_until_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made");
        let mut command =
            StartedCommand::start(&format!("touch {}; exit 3", file.display())).unwrap();
        assert!(command.ended().is_none() && !file.exists());
        command.go_on().unwrap();
        while command.ended().is_none() {
            std::thread::sleep(POLL);
        }
        assert!(file.exists());
        assert_eq!(command.failed().unwrap().code(), Some(3));
    }

    #[test]
    fn it_does_not_outlive_us() {
        let command = StartedCommand::start("sleep 600").unwrap();
        command.go_on().unwrap();
        let pid = command.handle().unwrap();
        drop(command);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    #[test]
    fn nor_does_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let text = format!(
            "sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 600'; true",
            file.display()
        );
        let command = StartedCommand::start(&text).unwrap();
        command.go_on().unwrap();
        while !file.exists() {
            std::thread::sleep(POLL);
        }
        let pid = std::fs::read_to_string(&file).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        drop(command);
        let deadline = Instant::now() + END_LIMIT;
        while rustix::process::test_kill_process(pid).is_ok() {
            assert!(Instant::now() < deadline, "{pid:?} goes on");
            std::thread::sleep(POLL);
        }
    }
}
