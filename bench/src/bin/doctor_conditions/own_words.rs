//! What the server itself says of the time in which it was examined: an account that the doctor has no
//! part in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::{Bson, Document, doc};
use seekscope_server::Server;
use tokio::task::JoinHandle;

/// Less than the shortest checkpoint that is worth a finding, so that none is missed.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(500);

/// What the server itself reported between [`Listening::begin`] and [`Listening::end`].
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnWords {
    /// Time that operations took, all together, per second.
    pub(crate) operations_s_per_s: f64,
    /// The durations of the checkpoints that ended meanwhile, s.
    pub(crate) checkpoints_s: Vec<f64>,
}

/// Asks the server twice a second.
pub(crate) struct Listening {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<OwnWords>>,
}

impl Listening {
    pub(crate) fn begin(uri: String) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let server = Server::connect(&uri).await?;
            let (begun, first) = (Instant::now(), status(&server).await?);
            let (mut last, mut words) = (first.clone(), OwnWords::default());
            while !stopped.load(Ordering::Relaxed) {
                tokio::time::sleep(BETWEEN_SAMPLES).await;
                let now = status(&server).await?;
                if checkpoints_ms(&now) > checkpoints_ms(&last) {
                    words.checkpoints_s.extend(last_checkpoint_s(&now));
                }
                last = now;
            }
            let took_us = operations_us(&last) - operations_us(&first);
            words.operations_s_per_s = took_us / 1e6 / begun.elapsed().as_secs_f64();
            Ok(words)
        });
        Self { stop, task }
    }

    pub(crate) async fn end(self) -> Result<OwnWords> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.context("listening panicked")?
    }
}

async fn status(server: &Server) -> Result<Document> {
    Ok(server.command("admin", doc! { "serverStatus": 1 }).await?)
}

/// How long all checkpoints took; it rises when one has ended, and their number when one begins. `None` where
/// the server has no such counter.
fn checkpoints_ms(status: &Document) -> Option<f64> {
    let name = "transaction checkpoint total time (msecs)";
    number(status, &["wiredTiger", "transaction", name])
}

fn last_checkpoint_s(status: &Document) -> Option<f64> {
    let name = "transaction checkpoint most recent time (msecs)";
    number(status, &["wiredTiger", "transaction", name]).map(|ms| ms / 1e3)
}

fn operations_us(status: &Document) -> f64 {
    let kinds = ["reads", "writes", "commands"];
    let us = kinds.map(|kind| number(status, &["opLatencies", kind, "latency"]).unwrap_or(0.0));
    us.iter().sum()
}

fn number(status: &Document, path: &[&str]) -> Option<f64> {
    let (last, above) = path.split_last()?;
    let mut document = status;
    for name in above {
        document = document.get_document(name).ok()?;
    }
    match document.get(last)? {
        Bson::Int32(value) => Some(f64::from(*value)),
        Bson::Int64(value) => Some(*value as f64),
        Bson::Double(value) => Some(*value),
        _ => None,
    }
}
