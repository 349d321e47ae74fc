//! How writers are kept out at the final moment: what was asked for, what the server can do, and commands of
//! the user.

use std::future::Future;
use std::pin::Pin;
use std::process::Stdio;

use anyhow::Result;
use seekscope_reorder::{ReorderError, WriterControl, Writers, block_refusal};
use seekscope_run::{MemberState, ReorderBlocking, WritersStop};
use seekscope_server::Server;
use tokio::process::Command;

use crate::args::WritersArgs;
use crate::exit::Usage;

type Done<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Returns what will be blocked, given the arguments and the server.
///
/// # Errors
/// When the server does not say what it is: the member of a set that has just died is not a standalone server.
pub async fn blocking(server: &Server, args: &WritersArgs) -> Result<ReorderBlocking> {
    let hello = server.hello().await?;
    // Each shard behind a router is a replica set.
    let replica_set = hello.set.is_some() || hello.is_router();
    let writers = if args.quiesced {
        WritersStop::Quiesced
    } else if args.pause_writers.is_some() {
        WritersStop::Commands
    } else if matches!(block_refusal(server).await, Ok(None)) {
        WritersStop::Server
    } else {
        WritersStop::Unsettled
    };
    Ok(ReorderBlocking {
        replica_set,
        writers,
        primary: hello.me.filter(|_| hello.state == MemberState::Primary),
        read_only: hello.set.is_some() && !hello.is_writable,
    })
}

/// Converts the blocking to the form that the reordering uses.
pub fn control(blocking: &ReorderBlocking, args: &WritersArgs) -> Result<Writers, Usage> {
    match (&args.pause_writers, &args.continue_writers) {
        _ if !blocking.replica_set && blocking.writers != WritersStop::Quiesced => Err(Usage(
            "on a standalone server changes cannot be followed: stop all writers to the collection for \
             the whole time, and say so with --quiesced"
                .into(),
        )),
        (None, Some(_)) => Err(Usage(
            "--continue-writers needs --pause-writers: how are they stopped?".into(),
        )),
        (Some(pause), Some(go_on)) => Ok(Writers::Paused(Box::new(Commands {
            pause: pause.clone(),
            go_on: go_on.clone(),
        }))),
        _ if blocking.writers == WritersStop::Quiesced => Ok(Writers::Quiesced),
        _ if blocking.writers == WritersStop::Server => Ok(Writers::BlockedByServer),
        _ => Err(Usage(
            "this server cannot keep writers out by itself (that takes setUserWriteBlockMode, so mongod \
             6.0 or later with authentication): name commands with --pause-writers and \
             --continue-writers, or stop them and say so with --quiesced"
                .into(),
        )),
    }
}

/// Commands of the user. Their text may contain secrets and is not shown.
struct Commands {
    pause: String,
    go_on: String,
}

impl WriterControl for Commands {
    fn stop(&mut self) -> Done<'_> {
        Box::pin(run("--pause-writers", &self.pause))
    }

    fn go_on(&mut self) -> Done<'_> {
        Box::pin(run("--continue-writers", &self.go_on))
    }
}

/// Lets writers continue, if a command for that was given. Harmless if they were not stopped.
pub async fn go_on(args: &WritersArgs) -> Result<()> {
    match &args.continue_writers {
        Some(command) => {
            let ended = run("--continue-writers", command).await;
            ended.map_err(|why| ReorderError::WritersStillStopped { why }.into())
        }
        None => Ok(()),
    }
}

/// Runs a command in its own process group, so that Ctrl-C at the terminal does not end it halfway.
async fn run(option: &'static str, command: &str) -> Result<(), String> {
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .status()
        .await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command of {option} ended with {status}")),
        Err(error) => Err(format!(
            "the command of {option} could not be started: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(quiesced: bool, pause: Option<&str>) -> WritersArgs {
        WritersArgs {
            quiesced,
            pause_writers: pause.map(String::from),
            continue_writers: pause.map(String::from),
        }
    }

    #[test]
    fn a_standalone_server_wants_the_promise() {
        let mut blocking = ReorderBlocking {
            writers: WritersStop::Commands,
            ..ReorderBlocking::default()
        };
        assert!(control(&blocking, &args(false, Some("true"))).is_err());
        blocking.writers = WritersStop::Quiesced;
        assert!(matches!(
            control(&blocking, &args(true, None)),
            Ok(Writers::Quiesced)
        ));
        blocking.replica_set = true;
        blocking.writers = WritersStop::Unsettled;
        assert!(control(&blocking, &args(false, None)).is_err());
        blocking.writers = WritersStop::Server;
        assert!(matches!(
            control(&blocking, &args(false, None)),
            Ok(Writers::BlockedByServer)
        ));
    }

    #[test]
    fn commands_tell_how_they_ended_and_not_what_they_were() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut commands = Commands {
            pause: "exit 3 # secret".into(),
            go_on: "true".into(),
        };
        let error = runtime.block_on(commands.stop()).unwrap_err();
        assert!(
            error.contains("--pause-writers") && error.contains('3'),
            "{error}"
        );
        assert!(!error.contains("secret"));
        assert_eq!(runtime.block_on(commands.go_on()), Ok(()));
    }
}
