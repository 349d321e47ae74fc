//! What the server does while it is examined, and what others do to its page cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_bench::examined::ycsb_load::RunningLoad;
use seekscope_bench::gains::{Activity, ColdServer};
use seekscope_server::{Server, page_cache};
use tokio::task::{JoinHandle, block_in_place};

use crate::cases::{Case, Work};

/// In which few pages are read a second time.
const BETWEEN_EVICTIONS: Duration = Duration::from_millis(250);

/// Work that goes on until [`Self::stop`].
pub(crate) enum Working {
    Ycsb(RunningLoad),
    Scans(Arc<AtomicBool>, JoinHandle<Result<u32>>),
}

/// Begins what the case says.
pub(crate) fn begin(case: &Case, cold: &ColdServer, data: &Path) -> Result<Working> {
    Ok(match &case.work {
        Work::Ycsb(task) => Working::Ycsb(task.start(&cold.local.uri())?),
        Work::ColdScans => {
            let stop = Arc::new(AtomicBool::new(false));
            let (stopped, uri, data) = (stop.clone(), cold.local.uri(), data.to_owned());
            let scans = tokio::spawn(async move {
                let server = Server::connect(&uri).await?;
                let mut count = 0;
                while !stopped.load(Ordering::Relaxed) {
                    page_cache::evict(&data)?;
                    Activity::Scan.run(&server).await?;
                    count += 1;
                }
                Ok(count)
            });
            Working::Scans(stop, scans)
        }
    })
}

impl Working {
    pub(crate) async fn stop(self) -> Result<()> {
        match self {
            Self::Ycsb(load) => {
                block_in_place(|| load.stop())?;
            }
            Self::Scans(stop, scans) => {
                stop.store(true, Ordering::Relaxed);
                let count = scans.await.context("the scans panicked")??;
                println!("{count} scans");
            }
        }
        Ok(())
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
