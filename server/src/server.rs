//! A server known by its connection string, ours or somebody's.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, ServerAddress};
use mongodb::{Client, Database};
use seekscope_run::{TargetFacts, document::Limitation};

use crate::process::ProcFs;
use crate::redact::{redact_text, redact_uri};
use crate::{replies, tcp_listener};

const APPLICATION: &str = "seekscope";
const SELECTION_LIMIT: Duration = Duration::from_secs(5);
const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;

/// A connected server. Cloning shares the connections.
#[derive(Debug, Clone)]
pub struct Server {
    client: Client,
    uri: String,
    addresses: Vec<(String, u16)>,
}

/// Why a server, or one of its commands, refused us. Never holds credentials.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("connection string {uri}: {why}; use one that mongosh accepts")]
    BadUri { uri: String, why: String },
    #[error(
        "no server answers at {uri}: {why}; is it running, and are host, port and TLS options right?"
    )]
    Unreachable { uri: String, why: String },
    #[error("{uri} refused the login: {why}; check user, password, authSource and authMechanism")]
    LoginRefused { uri: String, why: String },
    #[error("the user may not run {command} on {uri}; grant the built-in role clusterMonitor")]
    NotAuthorised { uri: String, command: String },
    #[error("{command} failed on {uri}: {why}")]
    Failed {
        uri: String,
        command: String,
        why: String,
    },
}

/// What a server says about itself, and what it would not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    pub target: TargetFacts,
    /// One for each fact that the user may not see or the server does not offer.
    pub missing: Vec<Limitation>,
}

impl Server {
    /// Connects and waits for an answer, at most about five seconds (longer where the name lookup
    /// of a `mongodb+srv` string takes long).
    pub async fn connect(uri: &str) -> Result<Self, ServerError> {
        let shown = redact_uri(uri);
        let mut options = ClientOptions::parse(uri).await.map_err(|error| {
            let why = redact_text(&error.to_string(), uri);
            match *error.kind {
                ErrorKind::DnsResolve { .. } => ServerError::Unreachable {
                    uri: shown.clone(),
                    why,
                },
                _ => ServerError::BadUri {
                    uri: shown.clone(),
                    why,
                },
            }
        })?;
        options.app_name = Some(APPLICATION.into());
        options.server_selection_timeout = Some(SELECTION_LIMIT);
        options.connect_timeout = Some(SELECTION_LIMIT);
        let addresses = options.hosts.iter().filter_map(|host| match host {
            ServerAddress::Tcp { host, port } => Some((host.clone(), port.unwrap_or(27017))),
            _ => None,
        });
        let addresses = addresses.collect();
        let client = Client::with_options(options).map_err(|error| ServerError::BadUri {
            uri: shown.clone(),
            why: redact_text(&error.to_string(), uri),
        })?;
        let server = Self {
            client,
            uri: uri.to_string(),
            addresses,
        };
        server.command("admin", doc! { "ping": 1 }).await?;
        Ok(server)
    }

    /// The same server through connections of its own, for a command that takes long: it then waits
    /// for none of ours, and none of ours for it. The driver sets no limit to the time of an answer.
    pub async fn another(&self) -> Result<Self, ServerError> {
        Self::connect(&self.uri).await
    }

    /// Connection string without credentials.
    pub fn shown_uri(&self) -> String {
        redact_uri(&self.uri)
    }

    /// Host and port of each member that the connection string names.
    pub fn addresses(&self) -> &[(String, u16)] {
        &self.addresses
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn database(&self, name: &str) -> Database {
        self.client.database(name)
    }

    /// Runs one command.
    pub async fn command(
        &self,
        database: &str,
        command: Document,
    ) -> Result<Document, ServerError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        self.client
            .database(database)
            .run_command(command)
            .await
            .map_err(|e| self.error(&name, &e))
    }

    /// Documents of a collection, by the server's own count; 0 where there is none of that name.
    pub async fn count(&self, database: &str, collection: &str) -> Result<u64, ServerError> {
        let reply = self.command(database, doc! { "count": collection }).await?;
        Ok(reply.get("n").and_then(replies::number).unwrap_or(0))
    }

    /// Sorts an error of the driver, without credentials. `command` says what was attempted.
    pub fn error(&self, command: &str, error: &mongodb::error::Error) -> ServerError {
        let (uri, command) = (self.shown_uri(), command.to_string());
        let why = redact_text(&said(error), &self.uri);
        match error.kind.as_ref() {
            ErrorKind::Command(e) if e.code == UNAUTHORIZED => {
                ServerError::NotAuthorised { uri, command }
            }
            ErrorKind::Command(e) if e.code == AUTHENTICATION_FAILED => {
                ServerError::LoginRefused { uri, why }
            }
            ErrorKind::Authentication { .. } => ServerError::LoginRefused { uri, why },
            ErrorKind::ServerSelection { .. } | ErrorKind::DnsResolve { .. } | ErrorKind::Io(_) => {
                ServerError::Unreachable { uri, why }
            }
            _ => ServerError::Failed { uri, command, why },
        }
    }

    /// What the server is. A command that is refused leaves its facts out and is listed.
    pub async fn facts(&self, proc_fs: &ProcFs) -> ServerFacts {
        let mut missing = Vec::new();
        let build = self
            .ask("buildInfo", "the server's version", &mut missing)
            .await;
        let options = self
            .ask(
                "getCmdLineOpts",
                "the configured data directory",
                &mut missing,
            )
            .await;
        let status = self
            .ask(
                "serverStatus",
                "cache size and process number",
                &mut missing,
            )
            .await;
        let (process, _) = replies::process(&status);
        let mut target = TargetFacts {
            uri: self.shown_uri(),
            version: replies::version(&build).unwrap_or_default(),
            product: process.unwrap_or_default(),
            dbpath: replies::dbpath(&options),
            cache_bytes: replies::cache_bytes(&status),
            ..TargetFacts::default()
        };
        match self.local_process(proc_fs) {
            Ok(pid) => {
                // The program's own name is more exact: compatible servers call themselves mongod.
                target.product = proc_fs.exe_name(pid).unwrap_or(target.product);
                // As the process sees it; preferred, since the configured one can be relative.
                let seen = proc_fs
                    .dbpath(pid)
                    .map(|path| path.to_string_lossy().into_owned());
                target.dbpath = seen.or(target.dbpath);
                target.pid = Some(pid);
            }
            Err(limitation) => missing.push(limitation),
        }
        ServerFacts { target, missing }
    }

    async fn ask(&self, command: &str, what: &str, missing: &mut Vec<Limitation>) -> Document {
        match self.command("admin", doc! { command: 1 }).await {
            Ok(reply) => reply,
            Err(error) => {
                missing.push(Limitation {
                    what: format!("{what} is not known"),
                    why: error.to_string(),
                    remedy: "grant the user the built-in role clusterMonitor".into(),
                });
                Document::new()
            }
        }
    }

    /// The process on this host that the connection string leads to. With several members, the
    /// first that is here.
    fn local_process(&self, proc_fs: &ProcFs) -> Result<u32, Limitation> {
        let limitation = |why: String, remedy: &str| Limitation {
            what: "the server's process is not known".into(),
            why,
            remedy: remedy.into(),
        };
        for (host, port) in &self.addresses {
            let Some(address) = tcp_listener::local_address(host) else {
                continue;
            };
            return match proc_fs.listener(*port, Some(address)) {
                Ok(Some(pid)) => Ok(pid),
                Ok(None) => Err(limitation(
                    format!("no process seen from here listens on port {port}"),
                    "if the server runs in a container, name its process with --pid",
                )),
                Err(error) => Err(limitation(error.to_string(), "run as root")),
            };
        }
        Err(limitation(
            "the server is on another host".into(),
            "run seekscope on the server's host",
        ))
    }
}

/// What an error says to people: the driver's own text of a refused command holds the whole reply as
/// bytes.
fn said(error: &mongodb::error::Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => format!("{} ({} {})", e.message, e.code, e.code_name),
        _ => error.to_string(),
    }
}
