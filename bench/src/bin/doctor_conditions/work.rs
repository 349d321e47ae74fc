//! What the server does while it is examined, and how little page cache it gets.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use seekscope_bench::examined::ycsb_load::RunningLoad;
use seekscope_bench::gains::{Activity, ColdServer};
use seekscope_server::{Server, page_cache};
use tokio::task::{JoinHandle, block_in_place};

use crate::cases::{Case, Work};

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

/// Once it works: limits the server to the memory that it takes by then, and the page cache of the case.
pub(crate) fn limit_page_cache(case: &Case, cold: &ColdServer) -> Result<()> {
    let Some(page_cache_bytes) = case.page_cache_bytes else {
        return Ok(());
    };
    let group = cold.memory.as_ref().context("not in a group of its own")?;
    let own_bytes = group.charged()?.own_bytes;
    println!(
        "{}: {:.0} MB are its own, page cache limited to {:.0} MB",
        case.name,
        own_bytes as f64 / 1e6,
        page_cache_bytes as f64 / 1e6
    );
    group.limit(own_bytes + page_cache_bytes)
}
