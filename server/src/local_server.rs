//! A private server on a free loopback port.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use seekscope_run::{ErrorKind, Kinded};

use crate::binary::ServerKind;
use crate::keeper::Keeper;
use crate::local_server_options::LocalServerOptions;
use crate::process::ProcFs;
use crate::server::Server;

/// Another program may take the free port before the server does.
const PORT_ATTEMPTS: u32 = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit of the driver's monitor, which by default takes a server on an emulated slow disk for dead if it
/// has not answered for 10 s, and drops all connections in the middle of their work.
const PATIENCE_MS: u32 = 120_000;
/// Only this much of the end of the server's log is ever read, in bytes.
const LOG_TAIL_BYTES: u64 = 64 << 10;
const LOG_TAIL_LINES: usize = 12;

/// A running server; dropping it kills the server and waits for its end.
#[derive(Debug)]
pub struct LocalServer {
    keeper: Keeper,
    port: u16,
    kind: ServerKind,
    data_directory: PathBuf,
    log_file: PathBuf,
    uri_options: String,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It wrote its last checkpoint and ended with success.
    Clean,
    /// It ended by itself with a failure; see `LocalServer::log_file`.
    Failed(ExitStatus),
    /// It did not end in time and was killed; the next start recovers from its journal.
    Killed,
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum LocalServerError {
    #[error(
        "{path}: {source}; the server's files must be in a directory that seekscope may write to"
    )]
    Files { path: PathBuf, source: io::Error },
    #[error("cannot find a free loopback port: {source}")]
    Port { source: io::Error },
    #[error("cannot start {path}: {source}")]
    Spawn { path: PathBuf, source: io::Error },
    #[error(
        "the server {path} ended during its start ({status}); the last lines of its log are:\n{log}"
    )]
    Ended {
        path: PathBuf,
        status: ExitStatus,
        log: String,
    },
    #[error(
        "the server {path} did not answer within {limit:?}; the last lines of its log \
         are:\n{log}\nAllow more time, or look for the cause in the log"
    )]
    TimedOut {
        path: PathBuf,
        limit: Duration,
        log: String,
    },
}

impl Kinded for LocalServerError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Target)
    }
}

impl LocalServer {
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
        let port = match options.port {
            Some(port) => port,
            None => free_port().map_err(|source| LocalServerError::Port { source })?,
        };
        let mut command = options.command_line(beside, port).map_err(files)?;
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
            uri_options: options.uri_options.clone(),
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
            // Whatever else answers on the port is not our server.
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

    /// Returns the connection string.
    pub fn uri(&self) -> String {
        let mut uri = format!(
            "mongodb://127.0.0.1:{}/?directConnection=true&connectTimeoutMS={PATIENCE_MS}",
            self.port
        );
        if !self.uri_options.is_empty() {
            uri.push('&');
            uri.push_str(&self.uri_options);
        }
        uri
    }

    /// Returns the port, on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
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

    /// Returns the file with what the server printed, over all its starts.
    pub fn log_file(&self) -> &Path {
        &self.log_file
    }

    /// Returns the errors of late and the last lines that the server wrote into its log.
    pub fn last_lines_of_log(&self) -> String {
        log_tail(&self.log_file, 0)
    }

    /// Asks the server to end (SIGTERM), so that it writes a checkpoint; kills it after `limit`. Dropping the
    /// future kills it at once.
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

/// Returns the errors that the server wrote after `start`, and its last lines, with control characters made harmless.
/// mongod ends in good order after an error, and says so in more lines than are shown.
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
    let (earlier, last) = lines.split_at(lines.len().saturating_sub(LOG_TAIL_LINES));
    let errors = earlier.iter().filter(|line| is_error(line));
    let shown = errors.take(LOG_TAIL_LINES).chain(last).copied();
    let tail = shown.collect::<Vec<_>>().join("\n");
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

/// Returns whether it is a line of mongod's log about an error, or about one that ends the server.
fn is_error(line: &str) -> bool {
    ["\"s\":\"E\"", "\"s\":\"F\""]
        .iter()
        .any(|severity| line.contains(severity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_before_the_last_lines_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let error = r#"{"s":"E", "msg":"Failed","attr":{"error":"Address already in use"}}"#;
        let log = format!("{error}\n{}end\n", "{\"s\":\"I\"}\n".repeat(30));
        fs::write(&path, log).unwrap();
        let tail = log_tail(&path, 0);
        assert!(tail.starts_with(error) && tail.ends_with("end"), "{tail}");
        assert_eq!(tail.lines().count(), LOG_TAIL_LINES + 1);
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
