//! MongoDB's official driver behind [`AsyncClient`]: TLS, logins, `mongodb+srv`, replica sets, sharded
//! clusters, retryable reads and writes, concerns and read preferences follow the connection string, by the
//! driver's own rules.

/// Runs an action of the driver, in the transaction that is open if there is one. The driver's actions
/// share no trait for this.
macro_rules! in_session {
    ($action:expr, $session:expr) => {
        match &mut $session {
            None => $action.await,
            Some(session) => $action.session(session).await,
        }
    };
}

mod commands;
mod failure;
mod read;
mod sender;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bson::doc;
use mongodb::Client;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::options::ClientOptions;
use seekscope_run::ClientKind;
use seekscope_server::{Sightings, redact_uri};

use crate::{AsyncClient, AsyncClientFactory, BoxFuture, Failure, FailureKind};
use failure::Failures;
use sender::Sender;

const APPLICATION: &str = "seekscope";
/// How long a member is looked for, unless the connection string sets a limit (the driver's own is 30 s).
const SELECTION_LIMIT: Duration = Duration::from_secs(5);
/// Logins and TLS handshakes at a time; with the driver's default of two, a start with many connections would
/// be slow.
const CONNECTING_MAX: u32 = 16;
/// How long the start waits for every virtual user to have its connection.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// One or more servers, and how to talk to them.
#[derive(Clone)]
pub struct DriverTarget {
    uri: String,
    database: String,
}

impl fmt::Debug for DriverTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverTarget")
            .field("uri", &redact_uri(&self.uri))
            .field("database", &self.database)
            .finish()
    }
}

impl DriverTarget {
    /// Creates the target. The connection string is read when clients connect. Requests go to `database`.
    pub fn new(uri: &str, database: &str) -> Self {
        Self {
            uri: uri.into(),
            database: database.into(),
        }
    }

    async fn senders(&self, count: usize) -> Result<Vec<Box<dyn AsyncClient>>, Failure> {
        let failures = Failures::new(&self.uri);
        let mut options = ClientOptions::parse(&self.uri)
            .await
            .map_err(|error| failures.bad_uri(&error))?;
        let ready = size_pool(&mut options, count);
        let failures = Arc::new(failures.seeing(Sightings::watch(&mut options)));
        let client = Client::with_options(options).map_err(|error| failures.bad_uri(&error))?;
        client
            .database(&self.database)
            .run_command(doc! { "ping": 1 })
            .await
            .map_err(|error| failures.of(&error, 0))?;
        // Connections that are still being made would be counted as slow operations.
        let started = Instant::now();
        let wanted = ready.as_ref().map_or(0, |_| count);
        while ready.as_ref().map_or(0, |n| n.load(Ordering::Relaxed)) < wanted
            && started.elapsed() < READY_LIMIT
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let database = client.database(&self.database);
        let sender = || Sender::new(client.clone(), database.clone(), Arc::clone(&failures));
        Ok((0..count)
            .map(|_| Box::new(sender()) as Box<dyn AsyncClient>)
            .collect())
    }
}

/// Sizes the pool for a connection for each of `count` virtual users, whatever the connection string says: a
/// user that waits for another's connection would measure the pool. With a single server they are made at once,
/// and the result counts those that are.
fn size_pool(options: &mut ClientOptions, count: usize) -> Option<Arc<AtomicUsize>> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    options.app_name.get_or_insert_with(|| APPLICATION.into());
    options
        .server_selection_timeout
        .get_or_insert(SELECTION_LIMIT);
    options.connect_timeout.get_or_insert(SELECTION_LIMIT);
    let allowed = options.max_pool_size.unwrap_or(0);
    options.max_pool_size = Some(allowed.max(count).max(1));
    options.max_connecting.get_or_insert(CONNECTING_MAX);
    if options.hosts.len() != 1 {
        return None;
    }
    options.min_pool_size = Some(options.min_pool_size.unwrap_or(0).max(count));
    let ready = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ready);
    options.cmap_event_handler = Some(EventHandler::callback(move |event| {
        if matches!(event, CmapEvent::ConnectionReady(_)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }));
    Some(ready)
}

impl AsyncClientFactory for DriverTarget {
    fn kind(&self) -> ClientKind {
        ClientKind::Driver
    }

    fn connect(&self, count: usize) -> BoxFuture<'_, Result<Vec<Box<dyn AsyncClient>>, Failure>> {
        Box::pin(self.senders(count))
    }
}

/// Returns the failure for something that the driver cannot be asked for.
fn unsupported(message: impl Into<String>) -> Failure {
    Failure::of(FailureKind::Unsupported, "Unsupported", message)
}
