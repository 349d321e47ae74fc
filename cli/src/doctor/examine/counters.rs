//! Writes counters of the examined server, its host and the other members to `server.parquet`, every second.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures_util::future::try_join_all;
use seekscope_run::directory::CounterWriter;
use seekscope_server::{ProcFs, Sampler, Server};

/// One writer for all: rows of several writers would be interleaved.
pub type SharedWriter = Arc<Mutex<CounterWriter>>;

/// Samples until it fails: `serverStatus`, the process, the host and the disk under the data.
pub async fn of_examined(
    server: &Server,
    pid: Option<u32>,
    device: Option<&str>,
    writer: &SharedWriter,
) -> Result<Infallible> {
    let sampler = Sampler::new(server, &ProcFs::host(), pid, device);
    every_second(sampler, writer).await
}

/// Samples `serverStatus` of each of the other members until one fails. Waits forever if there are none.
pub async fn of_others(samplers: Vec<Sampler>, writer: &SharedWriter) -> Result<Infallible> {
    let sampled = samplers
        .into_iter()
        .map(|sampler| every_second(sampler, writer));
    try_join_all(sampled).await?;
    std::future::pending().await
}

async fn every_second(mut sampler: Sampler, writer: &SharedWriter) -> Result<Infallible> {
    let write = |samples: &[_]| {
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write(samples)
    };
    Ok(sampler.every_second(write).await?)
}
