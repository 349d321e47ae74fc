//! This binary, started again to play another part, and spoken to in lines.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The starting side. Dropping it closes the other's input, upon which it ends.
pub(crate) struct Role {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Role {
    /// Starts this binary with these arguments and waits until it says `ready`.
    pub(crate) fn start(arguments: &[String]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut role = Self { child, said };
        let word = role.hear()?;
        ensure!(word == "ready", "{arguments:?} did not get ready: {word:?}");
        Ok(role)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives the word to begin; returns what it says when it is done.
    pub(crate) fn go(&mut self) -> Result<String> {
        let input = self.child.stdin.as_mut().context("no pipe")?;
        input.write_all(b"go\n")?;
        self.hear()
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.said.read_line(&mut line)?;
        ensure!(bytes > 0, "a part of the benchmark ended early");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Its exit code says nothing that its silence would not.
        let _ = self.child.wait();
    }
}

/// The started side: says `ready`, then answers each word with what `work` returns.
pub(crate) fn serve(mut work: impl FnMut() -> Result<String>) -> Result<()> {
    println!("ready");
    for word in stdin().lines() {
        word?;
        println!("{}", work()?);
        stdout().flush()?;
    }
    Ok(())
}
