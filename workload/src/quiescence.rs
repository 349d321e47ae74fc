//! Waits until a server has finished the consequences of earlier work: later work should not pay for them,
//! and until then files are smaller, and less is written, than the work requires.

use std::time::{Duration, Instant};

use bson::{Document, doc};
use seekscope_run::{Limitation, ProcessIo};
use seekscope_server::process::io_between;
use seekscope_server::{ProcFs, Server, ServerError, number};

const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of consecutive checks at which the server must be quiet.
const QUIET_LOOKS: u32 = 3;
/// Share of one processor below which a server is quiet; it must also write little between two checks.
const QUIET_CPU_SHARE: f64 = 0.1;
const QUIET_WRITE_BYTES: u64 = 1 << 20;

/// Makes the server write everything to its files, and returns when that is done. Through a router all shards
/// do so.
pub async fn checkpoint(server: &Server) -> Result<(), ServerError> {
    server.command("admin", doc! { "fsync": 1 }).await.map(drop)
}

/// Why the work did not end with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum NoCheckpoint {
    #[error(transparent)]
    Failed(#[from] ServerError),
    #[error("the checkpoint took longer than {} s", .0.as_secs())]
    TooLong(Duration),
    /// None was requested: with several clients, each would disturb the others' measurements.
    #[error(
        "several clients are running, and a checkpoint for one of them would distort what the \
         others measure"
    )]
    Shared,
    #[error("Cassandra's protocol has no request for one")]
    NotOffered,
}

impl NoCheckpoint {
    /// Returns what is not known of the work.
    pub fn limitation(&self) -> Limitation {
        Limitation {
            what: "it is not known how much space the data take, nor how much the \
                   server wrote for them"
                .into(),
            why: format!(
                "no checkpoint was taken after the work, so that part of it is not in the \
                          files yet: {self}"
            ),
            remedy: self.remedy().into(),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Failed(ServerError::NotAuthorised { .. }) => {
                "grant the login the right to run fsync (built-in role hostManager)"
            }
            Self::Failed(ServerError::Unreachable { .. }) => {
                "find out why the server does not answer"
            }
            Self::Failed(_) => {
                "look in the server's log for the reason why fsync failed; servers that are only \
                 compatible with MongoDB may not have this command"
            }
            Self::TooLong(_) => "find out what keeps the server's disk busy",
            Self::Shared => "run the step with one client",
            Self::NotOffered => "run nodetool flush, then look at the size of its data directory",
        }
    }
}

/// Requests a checkpoint and waits until the server is quiet: its process if visible, else the changed bytes
/// in its cache. Returns a limitation if it never was within `limit`.
pub async fn quiesce(server: &Server, pid: Option<u32>, limit: Duration) -> Option<Limitation> {
    // If it is refused, the server's own checkpoint comes within a minute.
    let _ = checkpoint(server).await;
    let start = Instant::now();
    let mut before = look(server, pid).await;
    let mut quiet_looks = 0;
    while start.elapsed() < limit {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let now = look(server, pid).await;
        quiet_looks = if is_quiet(&before, &now) {
            quiet_looks + 1
        } else {
            0
        };
        if quiet_looks >= QUIET_LOOKS {
            return None;
        }
        before = now;
    }
    Some(Limitation {
        what: "some index builds began although the server was not idle".into(),
        why: format!("it was still busy {} s after the load", limit.as_secs()),
        remedy: "find out what else uses the server".into(),
    })
}

/// Signs of whether a server is at work.
#[derive(Debug, Clone, PartialEq)]
enum Look {
    Process(ProcessIo),
    DirtyBytes(u64),
    Nothing,
}

async fn look(server: &Server, pid: Option<u32>) -> Look {
    if let Some(io) = pid.and_then(|pid| ProcFs::host().io(pid).ok()) {
        return Look::Process(io);
    }
    match server.command("admin", doc! { "serverStatus": 1 }).await {
        Ok(status) => dirty_bytes(&status).map_or(Look::Nothing, Look::DirtyBytes),
        Err(_) => Look::Nothing,
    }
}

fn dirty_bytes(status: &Document) -> Option<u64> {
    let cache = status
        .get_document("wiredTiger")
        .ok()?
        .get_document("cache")
        .ok()?;
    number(cache.get("tracked dirty bytes in the cache")?)
}

/// Without data, the server counts as quiet: the checks are then a short pause.
fn is_quiet(before: &Look, now: &Look) -> bool {
    match (before, now) {
        (Look::Process(before), Look::Process(now)) => {
            let done = io_between(before, now);
            let cpu_share = done.cpu_ns as f64 / LOOK_INTERVAL.as_nanos() as f64;
            cpu_share < QUIET_CPU_SHARE && done.device_write_bytes < QUIET_WRITE_BYTES
        }
        (Look::DirtyBytes(before), Look::DirtyBytes(now)) => {
            before.abs_diff(*now) < QUIET_WRITE_BYTES
        }
        (Look::Nothing, Look::Nothing) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_not_quiet() {
        let process = |cpu_ms: u64, written: u64| {
            Look::Process(ProcessIo {
                cpu_ns: cpu_ms * 1_000_000,
                device_write_bytes: written,
                ..ProcessIo::default()
            })
        };
        assert!(is_quiet(&process(0, 0), &process(10, 1000)));
        assert!(!is_quiet(&process(0, 0), &process(400, 0)));
        assert!(!is_quiet(&process(0, 0), &process(0, 50 << 20)));
        assert!(!is_quiet(
            &Look::DirtyBytes(0),
            &Look::DirtyBytes(50_000_000)
        ));
        assert!(
            !is_quiet(&process(0, 0), &Look::Nothing),
            "the process ended"
        );
        assert!(is_quiet(&Look::Nothing, &Look::Nothing));
    }

    #[test]
    fn only_a_login_without_the_right_is_told_to_get_it() {
        let (uri, command, why) = ("u".to_string(), "fsync".to_string(), "w".to_string());
        let lacks = ServerError::NotAuthorised {
            uri: uri.clone(),
            command: command.clone(),
            has_user: true,
        };
        let remedy = |error: NoCheckpoint| error.limitation().remedy;
        assert!(remedy(lacks.into()).contains("hostManager"));
        let hangs = ServerError::Unreachable {
            uri: uri.clone(),
            why: why.clone(),
            remedy: "",
        };
        for error in [
            hangs.into(),
            ServerError::Failed { uri, command, why }.into(),
            NoCheckpoint::TooLong(Duration::from_secs(600)),
            NoCheckpoint::Shared,
            NoCheckpoint::NotOffered,
        ] {
            let said = error.to_string();
            let remedy = remedy(error);
            assert!(
                !remedy.is_empty() && !remedy.contains("hostManager"),
                "{said}: {remedy}"
            );
        }
    }

    #[test]
    fn dirty_bytes_come_as_any_number() {
        let status = |bytes: bson::Bson| doc! { "wiredTiger": { "cache": { "tracked dirty bytes in the cache": bytes } } };
        assert_eq!(dirty_bytes(&status(5.into())), Some(5));
        assert_eq!(dirty_bytes(&status(5_i64.into())), Some(5));
        assert_eq!(dirty_bytes(&status(5.0.into())), Some(5));
        assert_eq!(dirty_bytes(&status("5".into())), None);
        assert_eq!(dirty_bytes(&doc! {}), None);
    }
}
