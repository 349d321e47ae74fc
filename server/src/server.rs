//! A server known by its connection string, whether ours or somebody else's.

mod error;
mod facts;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, ServerAddress};
use mongodb::{Client, Database};
use tokio::time::timeout;

pub use self::error::ServerError;
pub(crate) use self::error::{lacking, not_authorised};
pub use self::facts::ServerFacts;
use crate::driver_error::plain;
use crate::hello::Hello;
use crate::redact::{redact_text, redact_uri};
use crate::replies;
use crate::sightings::{NoServerKind, Sightings};

pub(crate) const APPLICATION: &str = "seekscope";
/// The port of a server whose address names none.
pub const DEFAULT_PORT: u16 = 27017;
/// Options of a connection string that make no sense in one that leads to a single server.
const OPTIONS_OF_MANY: [&str; 6] = [
    "directconnection",
    "loadbalanced",
    "replicaset",
    "srvmaxhosts",
    "srvservicename",
    "readpreference",
];
/// Time limit for connecting.
pub(crate) const SELECTION_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may work on a question that others answer at once, and how much longer we wait: the answer
/// takes time to arrive, and a server that hangs does not check its limit.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(3);
const WAY_LIMIT: Duration = Duration::from_millis(500);
/// Time limit for the first answer. It is above the limit for connecting, so that the reason becomes known.
const CONNECTING_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for connecting to a set's primary once more, directly: it has just answered.
const WRITER_LIMIT: Duration = Duration::from_secs(2);
/// A connected server. Cloning shares the connections.
#[derive(Clone)]
pub struct Server {
    client: Client,
    /// Shared, because it is large and servers are cloned and passed around.
    connecting: Arc<Connecting>,
    /// The connection string as given: its secrets must be nowhere else.
    uri: String,
    shown_uri: String,
    addresses: Vec<(String, u16)>,
}

/// How the driver connects, and what it sees of the servers meanwhile.
struct Connecting {
    options: ClientOptions,
    sightings: Sightings,
}

impl fmt::Debug for Server {
    /// Formats the server without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown_uri).finish()
    }
}

impl Server {
    /// Connects and waits for an answer: about five seconds if nobody answers, at most twice that (longer if
    /// the name lookup of a `mongodb+srv` string takes long).
    pub async fn connect(uri: &str) -> Result<Self, ServerError> {
        let server = Self::unasked(uri).await?;
        server.ping().await?;
        Ok(server)
    }

    /// Like [`Self::connect`], without waiting for an answer: if a set has no primary, `ping` would get none.
    ///
    /// # Errors
    /// Returns an error if the connection string cannot be read or a name in it is unknown.
    pub async fn unasked(uri: &str) -> Result<Self, ServerError> {
        let shown = redact_uri(uri);
        let mut options = ClientOptions::parse(uri).await.map_err(|error| {
            let why = redact_text(&plain(&error), uri);
            match *error.kind {
                ErrorKind::DnsResolve { .. } => ServerError::Unreachable {
                    uri: shown.clone(),
                    why,
                    remedy: NoServerKind::UnknownName.remedy(),
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
        mut options: ClientOptions,
        uri: &str,
        shown_uri: String,
    ) -> Result<Self, ServerError> {
        let addresses = options.hosts.iter().filter_map(|host| match host {
            ServerAddress::Tcp { host, port } => Some((host.clone(), port.unwrap_or(DEFAULT_PORT))),
            _ => None,
        });
        let addresses = addresses.collect();
        let sightings = Sightings::watch(&mut options);
        let client =
            Client::with_options(options.clone()).map_err(|error| ServerError::BadUri {
                uri: shown_uri.clone(),
                why: redact_text(&plain(&error), uri),
            })?;
        Ok(Self {
            client,
            connecting: Arc::new(Connecting { options, sightings }),
            uri: uri.to_string(),
            shown_uri,
            addresses,
        })
    }

    /// Returns the same server with connections of its own, for a command that takes long, so that neither
    /// waits for the other. The driver sets no time limit for an answer.
    pub async fn another(&self) -> Result<Self, ServerError> {
        let other = Self::with_options(
            self.connecting.options.clone(),
            &self.uri,
            self.shown_uri.clone(),
        )?;
        other.ping().await?;
        Ok(other)
    }

    /// Returns one member of the deployment, whatever its state, with the same login and TLS options. Does not
    /// wait for an answer; `patience` is the time limit for connecting. `address` is `host:port`, as servers
    /// name one another.
    pub fn member(&self, address: &str, patience: Duration) -> Result<Self, ServerError> {
        let shown = direct_uri(&self.shown_uri, address);
        let host = ServerAddress::parse(address).map_err(|error| ServerError::BadUri {
            uri: shown.clone(),
            why: redact_text(&plain(&error), &self.uri),
        })?;
        let mut options = self.connecting.options.clone();
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

    /// Returns the connection string of another member of its deployment, without credentials.
    pub fn uri_of(&self, address: &str) -> String {
        direct_uri(&self.shown_uri, address)
    }

    /// Returns the member that takes the writes of a replica set, directly, so that what it says, and its process, are
    /// its own. A server without a set is itself, and so is a set whose primary cannot be reached under its name in the
    /// set nor under one of the connection string.
    pub async fn writer(&self) -> Self {
        let hello = match self.is_direct() {
            true => Hello::default(),
            false => self.hello().await.unwrap_or_default(),
        };
        let Some(name) = hello.me.filter(|_| hello.set.is_some()) else {
            return self.clone();
        };
        for address in std::iter::once(name).chain(self.seeds()) {
            if let Ok(member) = self.member(&address, WRITER_LIMIT)
                && let Ok(answer) = member.hello().await
                && answer.is_writable
            {
                return member;
            }
        }
        self.clone()
    }

    /// Returns whether connections go through a load balancer, which allows no choice of member.
    pub(crate) fn is_load_balanced(&self) -> bool {
        self.connecting.options.load_balanced == Some(true)
    }

    /// Returns the connection string without credentials.
    pub fn shown_uri(&self) -> String {
        self.shown_uri.clone()
    }

    /// Returns the host and port of each member that the connection string names.
    pub fn addresses(&self) -> &[(String, u16)] {
        &self.addresses
    }

    /// Returns the path of each Unix socket that the connection string names; their servers are on this host.
    pub fn sockets(&self) -> impl Iterator<Item = &Path> {
        let hosts = self.connecting.options.hosts.iter();
        hosts.filter_map(|host| match host {
            ServerAddress::Unix { path } => Some(path.as_path()),
            _ => None,
        })
    }

    /// Returns the same as `host:port`, with brackets around an IPv6 address.
    pub fn seeds(&self) -> Vec<String> {
        let addresses = self.addresses.iter();
        addresses
            .map(|(host, port)| match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            })
            .collect()
    }

    /// Returns whether the connection string means one server rather than a set or a cluster.
    pub(crate) fn names_one_server(&self) -> bool {
        let options = &self.connecting.options;
        let means_set = options.repl_set_name.is_some() && options.direct_connection != Some(true);
        self.addresses.len() == 1 && !means_set && !self.uri.starts_with("mongodb+srv://")
    }

    /// Returns whether the connection string asks for this server alone, and not for the set that it is in.
    pub fn is_direct(&self) -> bool {
        self.connecting.options.direct_connection == Some(true)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn database(&self, name: &str) -> Database {
        self.client.database(name)
    }

    /// Waits until the server answers, at most about ten seconds for connecting, logging in and the answer.
    pub async fn ping(&self) -> Result<(), ServerError> {
        let ping = self.command(
            "admin",
            doc! { "ping": 1, "maxTimeMS": milliseconds(ANSWER_LIMIT) },
        );
        self.within(CONNECTING_LIMIT, "ping", ping).await.map(drop)
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

    /// Runs one command that servers answer at once, with a limit of some seconds on both sides.
    pub async fn command_in_time(
        &self,
        database: &str,
        mut command: Document,
    ) -> Result<Document, ServerError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        command.insert("maxTimeMS", milliseconds(ANSWER_LIMIT));
        self.within(ANSWER_LIMIT, &name, self.command(database, command))
            .await
    }

    /// Waits for an answer for as long as the server may work on it, and a little longer. `command` names what
    /// was attempted. The driver looks for longer for a server that is gone: what it has seen until then says so.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        command: &str,
        answer: impl Future<Output = Result<T, ServerError>>,
    ) -> Result<T, ServerError> {
        let limit = limit + WAY_LIMIT;
        match timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(command, limit)),
        }
    }

    /// Returns the number of documents of a collection by the server's own count; 0 if there is none of that
    /// name.
    pub async fn count(&self, database: &str, collection: &str) -> Result<u64, ServerError> {
        let reply = self.command(database, doc! { "count": collection }).await?;
        Ok(reply.get("n").and_then(replies::number).unwrap_or(0))
    }
}

/// Returns the value for `maxTimeMS`, where 0 would mean no limit.
pub(crate) fn milliseconds(limit: Duration) -> i64 {
    i64::try_from(limit.as_millis()).map_or(i64::MAX, |ms| ms.max(1))
}

/// Returns the connection string of one member of the deployment that `shown` (without credentials) names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_gone_is_not_taken_for_a_slow_one() {
        let server = Server::unasked("mongodb://127.0.0.1:1").await.unwrap();
        let never = std::future::pending::<Result<(), ServerError>>();
        let error = server.within(Duration::ZERO, "isMaster", never).await;
        let error = error.unwrap_err();
        assert!(matches!(error, ServerError::Unreachable { .. }), "{error}");
        assert!(
            error.to_string().contains("nothing listens there"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn nobody_waits_for_a_server_that_hangs() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("mongodb://{}", listener.local_addr().unwrap());
        let server = Server::unasked(&uri).await.unwrap();
        let never = std::future::pending::<Result<(), ServerError>>();
        let error = server.within(Duration::ZERO, "hello", never).await;
        let error = error.unwrap_err();
        assert!(matches!(error, ServerError::TimeOver { .. }), "{error}");
        assert!(error.to_string().contains("hello"), "{error}");
    }

    #[tokio::test]
    async fn one_server_or_its_whole_set_is_meant() {
        for (uri, seeds, is_one) in [
            ("mongodb://[::1]:7", vec!["[::1]:7"], true),
            ("mongodb://a:1,b:2", vec!["a:1", "b:2"], false),
            ("mongodb://a/?replicaSet=rs0", vec!["a:27017"], false),
            (
                "mongodb://a/?replicaSet=rs0&directConnection=true",
                vec!["a:27017"],
                true,
            ),
        ] {
            let server = Server::unasked(uri).await.unwrap();
            assert_eq!(
                (server.seeds(), server.names_one_server()),
                (seeds.into_iter().map(String::from).collect(), is_one),
                "{uri}"
            );
        }
    }

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
