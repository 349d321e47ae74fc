//! What the server does while it is examined, and what others do to its page cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::doc;
use seekscope_bench::examined::ycsb_load::RunningLoad;
use seekscope_bench::gains::{Activity, ColdServer, aged};
use seekscope_server::{Server, page_cache};
use seekscope_workload::DEFAULT_DATABASE;
use tokio::task::{JoinHandle, block_in_place};

use crate::cases::{Case, Work};

/// YCSB's collection.
const ROWS: &str = "usertable";
/// The time between two evictions: short enough that few pages are read twice in it.
const BETWEEN_EVICTIONS: Duration = Duration::from_millis(250);

/// Work that goes on until [`Self::stop`].
pub(crate) enum Working {
    Ycsb(RunningLoad),
    Repeated(Arc<AtomicBool>, JoinHandle<Result<Vec<f64>>>),
}

/// Begins what the case says.
pub(crate) fn begin(case: &Case, cold: &ColdServer, data: &Path) -> Result<Working> {
    let uri = cold.local.uri();
    Ok(match &case.work {
        Work::Ycsb { task, options } => Working::Ycsb(task.start(&(uri + options))?),
        &Work::Repeated {
            activity,
            cold,
            every,
        } => {
            let stop = Arc::new(AtomicBool::new(false));
            let files = cold.then(|| data.to_owned());
            let stopped = stop.clone();
            let repeating = tokio::spawn(async move {
                let server = Server::connect(&uri).await?;
                // Not by seekscope's own name, whose operations the doctor leaves out.
                let client = mongodb::Client::with_uri_str(&uri).await?;
                let database = client.database(aged::namespace()?.database());
                let mut seconds = Vec::new();
                while !stopped.load(Ordering::Relaxed) {
                    let next = Instant::now() + every;
                    if let Some(files) = &files {
                        page_cache::evict(files)?;
                    }
                    seconds.push(activity.run(&database).await?);
                    activity.undo(&server).await?;
                    tokio::time::sleep_until(next.into()).await;
                }
                Ok(seconds)
            });
            Working::Repeated(stop, repeating)
        }
    })
}

/// Makes the server look at every row of YCSB's.
pub(crate) async fn read_all_rows(cold: &ColdServer) -> Result<()> {
    let count = doc! { "count": ROWS, "query": { "absent": true } };
    cold.server.command(DEFAULT_DATABASE, count).await?;
    Ok(())
}

impl Working {
    /// How long each repetition took, s; empty of YCSB.
    pub(crate) async fn stop(self) -> Result<Vec<f64>> {
        match self {
            Self::Ycsb(load) => {
                block_in_place(|| load.stop())?;
                Ok(Vec::new())
            }
            Self::Repeated(stop, repeating) => {
                stop.store(true, Ordering::Relaxed);
                repeating.await.context("the work panicked")?
            }
        }
    }
}

/// Takes a server's files out of the page cache until it is dropped.
pub(crate) struct WithoutPageCache(Arc<AtomicBool>);

impl WithoutPageCache {
    /// Begins, where the case is to have none.
    pub(crate) fn begin(case: &Case, data: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(!case.without_page_cache));
        let (stopped, data) = (Arc::clone(&stop), data.to_owned());
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // Files come and go meanwhile; the next round finds those that are there.
                let _ = page_cache::evict(&data);
                std::thread::sleep(BETWEEN_EVICTIONS);
            }
        });
        Self(stop)
    }
}

impl Drop for WithoutPageCache {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns whether it is what the collection's scan time can be compared with.
pub(crate) fn is_cold_scan(work: &Work) -> bool {
    matches!(
        work,
        Work::Repeated {
            activity: Activity::Scan,
            cold: true,
            ..
        }
    )
}
