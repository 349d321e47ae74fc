//! Selects the numbers of `serverStatus` that are worth keeping each second.
//!
//! Their names are the server's own and differ between releases: what a server lacks has no rows.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use seekscope_run::monotonic_ns;

use super::Rows;
use crate::replies::float;
use crate::server::{Server, ServerError, milliseconds};

/// The source of the examined server's rows.
pub(super) const SOURCE: &str = "serverStatus";
/// How long a sample waits for the server.
const PATIENCE: Duration = Duration::from_millis(500);
/// After this time the question is dropped, and a later sample asks again.
const LIMIT: Duration = Duration::from_secs(10);
/// Bounds what a hostile reply can make us keep.
const ROWS_MAX: usize = 600;
const DEPTH_MAX: usize = 6;
const NAME_MAX_BYTES: usize = 200;
/// Sections that are not read: left out of the answer where the server lets us.
const UNWANTED: [&str; 11] = [
    "locks",
    "repl",
    "opcountersRepl",
    "electionMetrics",
    "logicalSessionRecordCache",
    "security",
    "sharding",
    "shardingStatistics",
    "twoPhaseCommitCoordinator",
    "trafficRecording",
    "oplogTruncation",
];

/// Selects numbers of a section.
enum Names {
    All,
    /// Numbers whose names begin with one of these.
    Beginning(&'static [&'static str]),
}

/// Sections by their path, and what is kept of each.
const KEPT: [(&[&str], Names); 27] = [
    (&[], Names::Beginning(&["uptimeMillis"])),
    (&["opcounters"], Names::All),
    (&["opLatencies"], Names::All),
    (&["connections"], Names::All),
    (&["globalLock", "currentQueue"], Names::All),
    (&["globalLock", "activeClients"], Names::All),
    (&["queues", "execution"], Names::All),
    (
        &["flowControl"],
        Names::Beginning(&[
            "targetRateLimit",
            "timeAcquiringMicros",
            "isLaggedTimeMicros",
        ]),
    ),
    (&["mem"], Names::Beginning(&["resident", "virtual"])),
    (
        &["tcmalloc", "tcmalloc"],
        Names::Beginning(&["pageheap_free_bytes"]),
    ),
    (
        &["network"],
        Names::Beginning(&["bytesIn", "bytesOut", "numRequests"]),
    ),
    (
        &["transactions"],
        Names::Beginning(&["current", "total", "retried"]),
    ),
    (&["metrics", "document"], Names::All),
    (&["metrics", "getLastError"], Names::Beginning(&["wtime"])),
    (&["metrics", "operation"], Names::All),
    (&["metrics", "ttl"], Names::All),
    (
        &["metrics", "commands"],
        Names::Beginning(&["aggregate", "count", "distinct", "mapReduce"]),
    ),
    (
        &["metrics", "queryExecutor"],
        Names::Beginning(&["collectionScans", "scanned"]),
    ),
    (&["wiredTiger", "cache"], Names::Beginning(CACHE)),
    (&["wiredTiger", "log"], Names::Beginning(LOG)),
    (&["wiredTiger", "concurrentTransactions"], Names::All),
    (
        &["wiredTiger", "transaction"],
        Names::Beginning(&[
            "transaction begins",
            "transaction checkpoint",
            "transactions committed",
            "transactions rolled back",
            "update conflicts",
        ]),
    ),
    (&["wiredTiger", "checkpoint"], Names::All),
    (
        &["wiredTiger", "block-manager"],
        Names::Beginning(&["blocks", "bytes read", "bytes written"]),
    ),
    (
        &["wiredTiger", "connection"],
        Names::Beginning(&["files currently open", "total"]),
    ),
    (
        &["wiredTiger", "thread-yield"],
        Names::Beginning(&["application thread time"]),
    ),
    (
        &["wiredTiger", "reconciliation"],
        Names::Beginning(&["page reconciliation calls"]),
    ),
];

const CACHE: &[&str] = &[
    "application thread time",
    "application threads page",
    "bytes",
    "eviction currently operating in aggressive mode",
    "eviction server evicting pages",
    "eviction server unable to reach eviction goal",
    "eviction worker thread active",
    "eviction worker thread evicting pages",
    "forced eviction - pages selected count",
    "history store table insert calls",
    "internal pages evicted",
    "maximum bytes configured",
    "modified pages evicted",
    "page evict attempts by application threads",
    "pages currently held in the cache",
    "pages evicted by application threads",
    "pages read into cache",
    "pages requested from the cache",
    "pages written from cache",
    "tracked",
    "unmodified pages evicted",
];

const LOG: &[&str] = &[
    "log bytes",
    "log flush operations",
    "log sync",
    "log write operations",
];

type Asked = Pin<Box<dyn Future<Output = Result<Document, ServerError>> + Send>>;

/// Asks one server, one question at a time.
pub(super) struct ServerStatus {
    server: Server,
    source: String,
    /// A question that has not been answered yet. It is not repeated meanwhile: a server that is already slow
    /// would only get slower.
    asked: Option<Asked>,
}

impl fmt::Debug for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.asked.is_some();
        f.debug_struct("ServerStatus")
            .field("server", &self.server)
            .field("asked", &asked)
            .finish()
    }
}

impl ServerStatus {
    /// Creates the reader; `source` is the source of its rows.
    pub(super) fn new(server: &Server, source: String) -> Self {
        Self {
            server: server.clone(),
            source,
            asked: None,
        }
    }

    /// Reads the numbers. Rows get the time at which the answer arrived.
    pub(super) async fn read(&mut self, rows: &mut Rows) {
        let server = &self.server;
        let asked = self.asked.get_or_insert_with(|| {
            let server = server.clone();
            let mut command = command();
            command.insert("maxTimeMS", milliseconds(LIMIT));
            Box::pin(async move {
                let answer = server.command("admin", command);
                server.within(LIMIT, "serverStatus", answer).await
            })
        });
        let Ok(answer) = tokio::time::timeout(PATIENCE, asked).await else {
            return;
        };
        self.asked = None;
        if let Ok(status) = answer {
            rows.t_ns = monotonic_ns();
            keep(&status, &self.source, rows);
        }
    }
}

/// Returns a command that asks for no more than is read, since some sections cost the server time.
pub(crate) fn command() -> Document {
    let mut command = doc! { "serverStatus": 1 };
    for section in UNWANTED {
        command.insert(section, 0);
    }
    command
}

impl Names {
    fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Beginning(beginnings) => beginnings.iter().any(|b| name.starts_with(b)),
        }
    }
}

/// Returns whether a number at this path of `serverStatus` is one of those that are kept.
pub(crate) fn is_kept(path: &[&str]) -> bool {
    // The same limit as in `keep_numbers`: diagnostic files are no more trustworthy than replies.
    let joined: usize = path.iter().map(|name| name.len() + 1).sum();
    let small = path.len() <= DEPTH_MAX && joined <= NAME_MAX_BYTES + 1;
    small
        && KEPT.iter().any(|(section, names)| {
            let below = path.strip_prefix(*section).and_then(<[&str]>::first);
            below.is_some_and(|name| names.contains(name))
        })
}

fn keep(status: &Document, source: &str, rows: &mut Rows) {
    for (path, names) in &KEPT {
        let section = path
            .iter()
            .try_fold(status, |d, name| d.get_document(name).ok());
        for (name, value) in section.into_iter().flatten() {
            if names.contains(name) {
                let mut path: Vec<&str> = path.to_vec();
                path.push(name);
                keep_numbers(&path, value, source, rows);
            }
        }
    }
}

fn keep_numbers(path: &[&str], value: &Bson, source: &str, rows: &mut Rows) {
    if let Bson::Document(inner) = value
        && path.len() < DEPTH_MAX
    {
        for (name, value) in inner {
            keep_numbers(&[path, &[name]].concat(), value, source, rows);
        }
    }
    let Some(number) = float(value) else {
        return;
    };
    let name = path.join(".");
    if rows.samples.len() < ROWS_MAX && name.len() <= NAME_MAX_BYTES {
        rows.push(source, name, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(status: &Document) -> Vec<(String, f64)> {
        let mut rows = Rows::now();
        keep(status, SOURCE, &mut rows);
        let samples = rows.samples.into_iter();
        samples.map(|s| (s.name, s.value)).collect()
    }

    #[test]
    fn a_reply_of_mongod_4_2() {
        let status = doc! {
            "host": "db1:27017", "version": "4.2.2", "uptimeMillis": 283_i64, "uptime": 0.0,
            "globalLock": { "totalTime": 280_000_i64, "currentQueue": { "total": 0, "writers": 3 } },
            "opLatencies": { "reads": { "latency": 7396_i64, "ops": 2_i64 } },
            "wiredTiger": {
                "uri": "statistics:",
                "cache": {
                    "bytes currently in the cache": 4_316_454, "hazard pointer check calls": 1,
                    "tracked dirty bytes in the cache": 266_454,
                },
                "transaction": { "transaction checkpoint most recent time (msecs)": 1, "set timestamp calls": 9 },
                "capacity": { "bytes written total": 1_258_265_856.0 },
            },
            "tcmalloc": {
                "generic": { "heap_size": 99_i64 },
                "tcmalloc": { "pageheap_free_bytes": 7_i64, "spinlock_total_delay_ns": 1_i64 },
            },
            "ok": 1.0,
        };
        let expected = [
            ("uptimeMillis", 283.0),
            ("opLatencies.reads.latency", 7396.0),
            ("opLatencies.reads.ops", 2.0),
            ("globalLock.currentQueue.total", 0.0),
            ("globalLock.currentQueue.writers", 3.0),
            ("tcmalloc.tcmalloc.pageheap_free_bytes", 7.0),
            ("wiredTiger.cache.bytes currently in the cache", 4_316_454.0),
            (
                "wiredTiger.cache.tracked dirty bytes in the cache",
                266_454.0,
            ),
            (
                "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
                1.0,
            ),
        ];
        let expected = expected.map(|(name, value)| (name.to_string(), value));
        assert_eq!(kept(&status), expected);
    }

    /// The place where WiredTiger 11.3 counts eviction by application threads.
    #[test]
    fn a_reply_of_mongod_8_0() {
        let names = [
            "application thread time evicting (usecs)",
            "page evict attempts by application threads",
        ];
        let cache = doc! { names[0]: 7_i64, names[1]: 7_i64 };
        let found = kept(&doc! { "wiredTiger": { "cache": cache } });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            names
                .iter()
                .all(|name| is_kept(&["wiredTiger", "cache", name]))
        );
    }

    #[test]
    fn the_same_names_are_kept_of_replies_and_diagnostic_files() {
        for (length, expected) in [(160, true), (200, false)] {
            let name = "x".repeat(length);
            assert_eq!(is_kept(&["connections", "deep", &name]), expected);
            let status = doc! { "connections": { "deep": { &name: 1 } } };
            assert_eq!(!kept(&status).is_empty(), expected);
        }
        assert!(is_kept(&["connections", "1", "2", "3", "4", "5"]));
        assert!(!is_kept(&["connections", "1", "2", "3", "4", "5", "6"]));
    }

    #[test]
    fn hostile_replies_are_survived() {
        let mut deep = doc! { "n": 1 };
        for _ in 0..50 {
            deep = doc! { "d": deep };
        }
        let many: Document = (0..5_000)
            .map(|n| (format!("n{n}"), Bson::Int32(n)))
            .collect();
        let status = doc! {
            "opcounters": deep, "connections": many,
            "wiredTiger": 5, "mem": { "resident": f64::NAN, "virtual": "x" },
            "opLatencies": { "x".repeat(10_000): 1 },
        };
        let kept = kept(&status);
        assert_eq!(kept.len(), ROWS_MAX);
        assert!(
            kept.iter()
                .all(|(name, _)| name.starts_with("connections."))
        );
    }
}
