//! Runs the user's commands by a shell with a time limit.
//!
//! The value never becomes part of the shell's text: it is a positional parameter.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use seekscope_run::shell_quoted;
use tokio::process::Command;

/// Bytes read from the end of a command's output.
const OUTPUT_MAX_BYTES: u64 = 4 << 20;
/// Characters shown of its error output.
const SHOWN_MAX_CHARS: usize = 400;
const HOLE: &str = "{value}";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("`{command}` could not be run: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` ended with {status}{}", shown(output))]
    Failed {
        command: String,
        status: String,
        output: String,
    },
    #[error("`{command}` was still running after {limit_s} s and was killed")]
    TimedOut { command: String, limit_s: u64 },
}

fn shown(output: &str) -> String {
    let output = output.trim();
    if output.is_empty() {
        return String::new();
    }
    let tail: Vec<char> = output.chars().rev().take(SHOWN_MAX_CHARS).collect();
    format!(": {}", tail.into_iter().rev().collect::<String>())
}

/// Checks a command that sets something: it must say where the value goes, and leave the quoting to us.
pub(crate) fn check_set(command: &str) -> Result<(), String> {
    if !command.contains(HOLE) {
        return Err(format!(
            "`command` must say with {HOLE} where the value goes"
        ));
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in command.char_indices() {
        if (quote.is_some() || escaped) && command.get(at..).is_some_and(|c| c.starts_with(HOLE)) {
            return Err(format!(
                "write {HOLE} without quotes; it is always one word"
            ));
        }
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', None | Some('"')) => escaped = true,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    match quote {
        None => Ok(()),
        Some(_) => Err("a quote is not closed".into()),
    }
}

/// Words that may come before a password in a command.
const SECRET_WORDS: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "credential"];

/// Returns whether the command may hold a password in some form other than a connection string. If so, it is not kept.
pub fn may_hold_secret(command: &str) -> bool {
    let words = command.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| words.contains(word))
        || words.split_whitespace().any(|word| word.starts_with("-p"))
}

/// Kills the command's whole process group, also if the future is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// How a command ended, and the end of what it printed.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
    pub errors: String,
}

/// Runs a user's command with `sh -c` and these variables. `arguments` are `$1` and so on.
///
/// # Errors
/// Returns an error if it cannot be run, or takes longer than `limit`: then it is killed with all that it
/// started in its process group, as it also is if the future is dropped.
pub async fn run_shell(
    command: &str,
    arguments: &[&str],
    variables: &BTreeMap<String, String>,
    limit: Duration,
) -> Result<Ended, ScriptError> {
    let start = |source| ScriptError::Start {
        command: command.into(),
        source,
    };
    // Files rather than pipes: a server that the command leaves running would keep a pipe open for ever.
    let mut output = tempfile::tempfile().map_err(start)?;
    let mut errors = tempfile::tempfile().map_err(start)?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command, "seekscope"])
        .args(arguments)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(start)?)
        .stderr(errors.try_clone().map_err(start)?)
        .process_group(0);
    let mut child = shell.spawn().map_err(start)?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let mut group = Group(pid.and_then(Pid::from_raw));
    let ended = tokio::time::timeout(limit, child.wait()).await;
    let Ok(status) = ended else {
        drop(group);
        let _ = child.wait().await;
        return Err(ScriptError::TimedOut {
            command: command.into(),
            limit_s: limit.as_secs(),
        });
    };
    // Processes left running on purpose, such as a server, continue.
    group.0 = None;
    Ok(Ended {
        status: status.map_err(start)?,
        output: tail(&mut output).map_err(start)?,
        errors: tail(&mut errors).map_err(start)?,
    })
}

/// Runs a knob's command with the value in its place, and returns what it prints.
///
/// # Errors
/// Returns the errors of [`run_shell`], and one if it ends with a status other than 0.
pub async fn run(
    command: &str,
    value: Option<&str>,
    limit: Duration,
) -> Result<String, ScriptError> {
    let shell = command.replace(HOLE, "\"$1\"");
    let value: Vec<&str> = value.into_iter().collect();
    let ended = run_shell(&shell, &value, &BTreeMap::new(), limit).await?;
    match ended.status.success() {
        true => Ok(ended.output),
        false => Err(ScriptError::Failed {
            command: command.into(),
            status: ended.status.to_string(),
            output: ended.errors,
        }),
    }
}

/// Returns the end of a file: results come last.
fn tail(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_MAX_BYTES)))?;
    file.take(OUTPUT_MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the command with the value filled in, for people to copy.
pub(crate) fn with_value(command: &str, value: &str) -> String {
    command.replace(HOLE, &shell_quoted(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_one_unquoted_hole() {
        for command in [
            "./set.sh {value}",
            "a 'b c' {value} \"d\"",
            "echo {value} > x",
        ] {
            assert_eq!(check_set(command), Ok(()), "{command}");
        }
        for command in [
            "./set.sh",
            "x '{value}'",
            "x \"a {value}\"",
            "x \\{value}",
            "x {value} '",
        ] {
            assert!(check_set(command).is_err(), "{command}");
        }
    }

    #[tokio::test]
    async fn no_value_is_ever_shell_text() {
        let limit = Duration::from_secs(30);
        for value in [
            "8",
            "a b",
            "$(touch x)",
            "'; exit 3; '",
            "`id`",
            "-n",
            "*",
            "\"",
            "\\",
        ] {
            let printed = run("printf '%s|' {value}", Some(value), limit).await;
            assert_eq!(printed.unwrap(), format!("{value}|"));
            let copied = with_value("printf '%s|' {value}", value);
            assert_eq!(
                run(&copied, None, limit).await.unwrap(),
                format!("{value}|")
            );
        }
    }

    #[tokio::test]
    async fn failures_say_what_was_printed_and_hangs_end() {
        let limit = Duration::from_secs(30);
        let error = run("echo no such disk >&2; exit 7", None, limit)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("exit status: 7: no such disk"),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let error = run(&command, None, Duration::from_millis(300))
            .await
            .unwrap_err();
        assert!(matches!(error, ScriptError::TimedOut { .. }), "{error}");
        let pid: i32 = std::fs::read_to_string(&file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while is_running(pid) {
            assert!(
                std::time::Instant::now() < deadline,
                "the group outlived its leader"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A zombie that nobody waits for does not count.
    fn is_running(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[tokio::test]
    async fn what_is_left_running_does_not_hold_us() {
        let left = run("sleep 5 & echo $!", None, Duration::from_secs(4))
            .await
            .unwrap();
        let pid = Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        assert!(is_running(pid));
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
}
