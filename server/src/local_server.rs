//! A private server on a free loopback port.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::binary::{ServerBinary, ServerKind};
use crate::keeper::Keeper;
use crate::process::ProcFs;
use crate::server::Server;

/// mongod refuses a smaller cache.
const MONGOD_CACHE_MIN_BYTES: u64 = 256 << 20;
/// Another program may take the free port before the server does.
const PORT_ATTEMPTS: u32 = 3;
/// secantusd-rs builds an index in one transaction. At WiredTiger's usual limits for uncommitted
/// data (a fifth of the cache, of which the small cache of an experiment has little) it is rolled
/// back and tried again without end. A private server also needs no log for replication.
const SECANTUSD_ENVIRONMENT: [(&str, &str); 2] = [
    ("SECANTUS_WT_CONFIG_EXTRA", LocalServer::SECANTUSD_ENGINE),
    ("SECANTUS_DISABLE_OPLOG", "1"),
];
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Of the driver's monitor, which otherwise takes a server on an emulated slow disk for dead when it has
/// not answered for 10 s, and drops all connections in the middle of what they do.
const PATIENCE_MS: u32 = 120_000;
/// Only this much of the end of the server's log is ever read.
const LOG_TAIL_BYTES: u64 = 16 << 10;
const LOG_TAIL_LINES: usize = 12;

/// How to start a server.
#[derive(Debug, Clone)]
pub struct LocalServerOptions {
    pub binary: ServerBinary,
    /// Created if missing. Log and configuration go beside it, so its parent must be private too.
    pub data_directory: PathBuf,
    /// WiredTiger cache, bytes; mongod raises it to its minimum of 256 MiB.
    pub cache_bytes: u64,
    /// How long the server may take until it answers.
    pub start_limit: Duration,
    /// Added to the command line.
    pub extra_arguments: Vec<OsString>,
    /// Added to the server's environment, over what is set for it by itself.
    pub environment: Vec<(OsString, OsString)>,
}

/// A running server; dropping it kills the server and waits for its end.
#[derive(Debug)]
pub struct LocalServer {
    keeper: Keeper,
    port: u16,
    kind: ServerKind,
    data_directory: PathBuf,
    log_file: PathBuf,
}

/// How a server came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It wrote its last checkpoint and ended with success.
    Clean,
    /// It ended by itself but with a failure; `LocalServer::log_file` says more.
    Failed(ExitStatus),
    /// It did not end in time and was killed; the next start recovers from its journal.
    Killed,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum LocalServerError {
    #[error("{path}: {source}; the server's files must lie in a directory that we may write")]
    Files { path: PathBuf, source: io::Error },
    #[error("no free loopback port: {source}")]
    Port { source: io::Error },
    #[error("cannot start {path}: {source}")]
    Spawn { path: PathBuf, source: io::Error },
    #[error("the server {path} ended at start ({status}); its last log lines:\n{log}")]
    Ended {
        path: PathBuf,
        status: ExitStatus,
        log: String,
    },
    #[error(
        "the server {path} did not answer within {limit:?}; its last log lines:\n{log}\n\
         Allow more time or look at the log"
    )]
    TimedOut {
        path: PathBuf,
        limit: Duration,
        log: String,
    },
}

impl LocalServer {
    /// WiredTiger's configuration of a secantusd-rs that is started without another; see the constant
    /// above.
    pub const SECANTUSD_ENGINE: &str = "eviction_dirty_trigger=90,eviction_updates_trigger=90";

    /// Starts a server and waits until it answers. Dropping the future kills it.
    pub async fn start(options: &LocalServerOptions) -> Result<Self, LocalServerError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |source| LocalServerError::Files { path, source }
        };
        fs::create_dir_all(&options.data_directory).map_err(at(&options.data_directory))?;
        let mut attempt = 1;
        loop {
            match Self::start_once(options).await {
                Err(LocalServerError::Ended { log, .. })
                    if attempt < PORT_ATTEMPTS && log.to_lowercase().contains("in use") =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn start_once(options: &LocalServerOptions) -> Result<Self, LocalServerError> {
        let beside = options.data_directory.parent().unwrap_or(Path::new("/"));
        let log_file = beside.join("server.log");
        let files = |source| LocalServerError::Files {
            path: log_file.clone(),
            source,
        };
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&log_file)
            .map_err(files)?;
        let log_start = log.metadata().map_err(files)?.len();
        let port = free_port().map_err(|source| LocalServerError::Port { source })?;
        let mut command = command_line(options, beside, port).map_err(files)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(files)?)
            .stderr(log);
        let keeper = Keeper::start(command).map_err(|source| LocalServerError::Spawn {
            path: options.binary.path.clone(),
            source,
        })?;
        let server = Self {
            keeper,
            port,
            kind: options.binary.kind,
            data_directory: options.data_directory.clone(),
            log_file,
        };
        server.await_answer(options, log_start).await?;
        Ok(server)
    }

    async fn await_answer(
        &self,
        options: &LocalServerOptions,
        log_start: u64,
    ) -> Result<(), LocalServerError> {
        let path = || options.binary.path.clone();
        let log = || log_tail(&self.log_file, log_start);
        let deadline = Instant::now() + options.start_limit;
        loop {
            if let Some(status) = self.keeper.exit_status() {
                return Err(LocalServerError::Ended {
                    path: path(),
                    status,
                    log: log(),
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LocalServerError::TimedOut {
                    path: path(),
                    limit: options.start_limit,
                    log: log(),
                });
            }
            // Whoever else answers on the port is not our server.
            if ProcFs::host().listener(self.port, None).ok().flatten() == Some(self.pid())
                && matches!(
                    tokio::time::timeout(left, Server::connect(&self.uri())).await,
                    Ok(Ok(_))
                )
            {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Connection string.
    pub fn uri(&self) -> String {
        format!(
            "mongodb://127.0.0.1:{}/?directConnection=true&connectTimeoutMS={PATIENCE_MS}",
            self.port
        )
    }

    pub fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    pub fn data_directory(&self) -> &Path {
        &self.data_directory
    }

    /// What the server printed, over all its starts.
    pub fn log_file(&self) -> &Path {
        &self.log_file
    }

    /// Asks the server to end (SIGTERM), so that it writes a checkpoint; kills it after `limit`.
    /// Dropping the future kills it at once.
    pub async fn stop(mut self, limit: Duration) -> Stopped {
        let asked = self.keeper.signal(Signal::TERM);
        let status = if asked.is_ok() {
            self.keeper.wait(limit).await
        } else {
            None
        };
        match status {
            Some(status) if status.success() => Stopped::Clean,
            Some(status) => Stopped::Failed(status),
            None => Stopped::Killed,
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn command_line(options: &LocalServerOptions, beside: &Path, port: u16) -> io::Result<Command> {
    let mut command = Command::new(&options.binary.path);
    match options.binary.kind {
        ServerKind::Mongod => mongod_arguments(&mut command, options),
        ServerKind::SecantusdRs => {
            // An empty file of our own, else one in the home or working directory would be read.
            let config = beside.join("secantusd.toml");
            fs::write(&config, "")?;
            command
                .arg("--config")
                .arg(config)
                .args(["--host", "127.0.0.1", "--standalone"]);
            command.args(["--log-level", "WARNING", "--cache-size"]);
            command.arg(format!("{}M", (options.cache_bytes >> 20).max(1)));
            command.arg("--storage-path").arg(&options.data_directory);
            command.envs(SECANTUSD_ENVIRONMENT);
        }
    }
    command.arg("--port").arg(port.to_string());
    command.args(&options.extra_arguments);
    command.envs(
        options
            .environment
            .iter()
            .map(|(name, value)| (name, value)),
    );
    command.current_dir(beside);
    Ok(command)
}

fn mongod_arguments(command: &mut Command, options: &LocalServerOptions) {
    let cache_bytes = options.cache_bytes.max(MONGOD_CACHE_MIN_BYTES);
    let hundredths_gib = (u128::from(cache_bytes) * 100).div_ceil(1 << 30);
    command.arg("--dbpath").arg(&options.data_directory);
    command.args([
        "--bind_ip",
        "127.0.0.1",
        "--nounixsocket",
        "--wiredTigerCacheSizeGB",
    ]);
    command.arg(format!(
        "{}.{:02}",
        hundredths_gib / 100,
        hundredths_gib % 100
    ));
    // The recorder writes every second; a trace should show the work that was asked for.
    command.args(["--setParameter", "diagnosticDataCollectionEnabled=false"]);
}

/// The last lines that the server wrote after `start`, control characters made harmless.
fn log_tail(path: &Path, start: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            start.max(length.saturating_sub(LOG_TAIL_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("({}: {error})", path.display()),
    };
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines
        .get(lines.len().saturating_sub(LOG_TAIL_LINES)..)
        .unwrap_or_default()
        .join("\n");
    let shown: String = tail
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    if shown.trim().is_empty() {
        "(the log is empty)".into()
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: ServerKind, cache_bytes: u64) -> LocalServerOptions {
        LocalServerOptions {
            binary: ServerBinary {
                path: "/x/server".into(),
                kind,
            },
            data_directory: "/y/data".into(),
            cache_bytes,
            start_limit: Duration::from_secs(1),
            extra_arguments: vec!["--extra".into()],
            environment: Vec::new(),
        }
    }

    fn line(options: &LocalServerOptions, beside: &Path) -> String {
        let command = command_line(options, beside, 4711).unwrap();
        command
            .get_args()
            .map(|a| a.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn mongod_gets_its_documented_options() {
        let text = line(&options(ServerKind::Mongod, 64 << 20), Path::new("/y"));
        assert!(text.starts_with("--dbpath /y/data --bind_ip 127.0.0.1"));
        assert!(text.contains("--wiredTigerCacheSizeGB 0.25 "), "{text}");
        assert!(text.ends_with("--port 4711 --extra"));
        let text = line(&options(ServerKind::Mongod, 2 << 30), Path::new("/y"));
        assert!(text.contains("--wiredTigerCacheSizeGB 2.00 "), "{text}");
    }

    #[test]
    fn secantusd_gets_its_own() {
        let beside = tempfile::tempdir().unwrap();
        let text = line(&options(ServerKind::SecantusdRs, 64 << 20), beside.path());
        assert!(
            text.contains("--cache-size 64M --storage-path /y/data --port 4711 --extra"),
            "{text}"
        );
    }

    #[test]
    fn log_tail_is_short_and_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(
            &path,
            format!("old\n{}\u{1b}[2Jend\n", "line\n".repeat(90_000)),
        )
        .unwrap();
        let tail = log_tail(&path, 4);
        assert_eq!(tail.lines().count(), LOG_TAIL_LINES);
        assert!(tail.ends_with(" [2Jend"));
        assert_eq!(log_tail(&path, 10_000_000), "(the log is empty)");
    }
}
