//! A server known by its connection string, ours or somebody's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, ServerAddress};
use mongodb::{Client, Database};
use seekscope_run::{TargetFacts, document::Limitation};

use crate::process::ProcFs;
use crate::redact::{redact_text, redact_uri};
use crate::{replies, tcp_listener};

pub(crate) const APPLICATION: &str = "seekscope";
pub(crate) const DEFAULT_PORT: u16 = 27017;
/// Options of a connection string that have no place in one that leads to one server.
const OPTIONS_OF_MANY: [&str; 6] = [
    "directconnection",
    "loadbalanced",
    "replicaset",
    "srvmaxhosts",
    "srvservicename",
    "readpreference",
];
/// For getting connected.
pub(crate) const SELECTION_LIMIT: Duration = Duration::from_secs(5);
const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;

/// A connected server. Cloning shares the connections.
#[derive(Clone)]
pub struct Server {
    client: Client,
    /// Shared: they are long, and servers are cloned and passed about.
    options: Arc<ClientOptions>,
    /// As given: what is secret in it must be nowhere else.
    uri: String,
    shown_uri: String,
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

impl fmt::Debug for Server {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown_uri).finish()
    }
}

impl Server {
    /// Connects and waits for an answer, at most about five seconds (longer where the name lookup
    /// of a `mongodb+srv` string takes long).
    pub async fn connect(uri: &str) -> Result<Self, ServerError> {
        let server = Self::unasked(uri).await?;
        server.command("admin", doc! { "ping": 1 }).await?;
        Ok(server)
    }

    /// As [`Self::connect`], without waiting for an answer: where a set has no primary, `ping` would
    /// get none.
    pub(crate) async fn unasked(uri: &str) -> Result<Self, ServerError> {
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
        Self::with_options(options, uri, shown)
    }

    fn with_options(
        options: ClientOptions,
        uri: &str,
        shown_uri: String,
    ) -> Result<Self, ServerError> {
        let addresses = options.hosts.iter().filter_map(|host| match host {
            ServerAddress::Tcp { host, port } => Some((host.clone(), port.unwrap_or(DEFAULT_PORT))),
            _ => None,
        });
        let addresses = addresses.collect();
        let client =
            Client::with_options(options.clone()).map_err(|error| ServerError::BadUri {
                uri: shown_uri.clone(),
                why: redact_text(&error.to_string(), uri),
            })?;
        Ok(Self {
            client,
            options: Arc::new(options),
            uri: uri.to_string(),
            shown_uri,
            addresses,
        })
    }

    /// The same server through connections of its own, for a command that takes long: it then waits
    /// for none of ours, and none of ours for it. The driver sets no limit to the time of an answer.
    pub async fn another(&self) -> Result<Self, ServerError> {
        let other = Self::with_options((*self.options).clone(), &self.uri, self.shown_uri.clone())?;
        other.command("admin", doc! { "ping": 1 }).await?;
        Ok(other)
    }

    /// One member of the deployment, whatever its state, with the same login and TLS options. Does not
    /// wait for an answer; `patience` is for getting connected. `address` is `host:port`, as servers name
    /// one another.
    pub fn member(&self, address: &str, patience: Duration) -> Result<Self, ServerError> {
        let shown = direct_uri(&self.shown_uri, address);
        let host = ServerAddress::parse(address).map_err(|error| ServerError::BadUri {
            uri: shown.clone(),
            why: redact_text(&error.to_string(), &self.uri),
        })?;
        let mut options = (*self.options).clone();
        options.hosts = vec![host];
        options.server_selection_timeout = Some(patience);
        options.connect_timeout = Some(patience);
        options.direct_connection = Some(true);
        options.load_balanced = None;
        options.repl_set_name = None;
        options.srv_max_hosts = None;
        options.min_pool_size = None;
        options.selection_criteria = None;
        Self::with_options(options, &self.uri, shown)
    }

    /// Whether connections go through a load balancer, which lets nobody choose a member.
    pub(crate) fn is_load_balanced(&self) -> bool {
        self.options.load_balanced == Some(true)
    }

    /// Connection string without credentials.
    pub fn shown_uri(&self) -> String {
        self.shown_uri.clone()
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
        let mut target = self.target_facts(&build, &options, &status);
        missing.extend(self.locate(&mut target, proc_fs).err());
        ServerFacts { target, missing }
    }

    /// What the replies to `buildInfo`, `getCmdLineOpts` and `serverStatus` say; any may be empty.
    pub(crate) fn target_facts(
        &self,
        build: &Document,
        options: &Document,
        status: &Document,
    ) -> TargetFacts {
        let (process, _) = replies::process(status);
        TargetFacts {
            uri: self.shown_uri(),
            version: replies::version(build).unwrap_or_default(),
            product: process.unwrap_or_default(),
            dbpath: replies::dbpath(options),
            cache_bytes: replies::cache_bytes(status),
            ..TargetFacts::default()
        }
    }

    /// Adds what the server's process shows, where it runs on this host.
    pub(crate) fn locate(
        &self,
        target: &mut TargetFacts,
        proc_fs: &ProcFs,
    ) -> Result<(), Limitation> {
        let pid = self.local_process(proc_fs)?;
        // The program's own name is more exact: compatible servers call themselves mongod.
        if let Ok(program) = proc_fs.exe_name(pid) {
            target.product = program;
        }
        // As the process sees it; preferred, since the configured one can be relative.
        if let Some(path) = proc_fs.dbpath(pid) {
            target.dbpath = Some(path.to_string_lossy().into_owned());
        }
        target.pid = Some(pid);
        Ok(())
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
    pub(crate) fn local_process(&self, proc_fs: &ProcFs) -> Result<u32, Limitation> {
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

/// The connection string of one member of the deployment that `shown` (without credentials) names.
fn direct_uri(shown: &str, address: &str) -> String {
    let (scheme, rest) = shown.split_once("://").unwrap_or(("mongodb", shown));
    let (hosts, options) = rest.split_once('?').unwrap_or((rest, ""));
    let path = hosts.split_once('/').map_or("", |(_, path)| path);
    let mut kept: Vec<&str> = options
        .split('&')
        .filter(|option| {
            let name = option.split('=').next().unwrap_or_default();
            !name.is_empty() && !OPTIONS_OF_MANY.contains(&name.to_ascii_lowercase().as_str())
        })
        .collect();
    let names_tls = |option: &&str| option.starts_with("tls=") || option.starts_with("ssl=");
    if scheme == "mongodb+srv" && !kept.iter().any(names_tls) {
        kept.push("tls=true");
    }
    kept.push("directConnection=true");
    format!("mongodb://{address}/{path}?{}", kept.join("&"))
}

/// What an error says to people: the driver's own text of a refused command holds the whole reply as
/// bytes.
fn said(error: &mongodb::error::Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => format!("{} ({} {})", e.message, e.code, e.code_name),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::direct_uri;

    #[test]
    fn connection_strings_of_members() {
        for (shown, expected) in [
            ("mongodb://a,b:1", "mongodb://h:2/?directConnection=true"),
            (
                "mongodb://a/db?replicaSet=r&tls=true&directConnection=false",
                "mongodb://h:2/db?tls=true&directConnection=true",
            ),
            (
                "mongodb+srv://c.example/?retryWrites=true",
                "mongodb://h:2/?retryWrites=true&tls=true&directConnection=true",
            ),
        ] {
            assert_eq!(direct_uri(shown, "h:2"), expected);
        }
    }
}
