//! Counters of the examined server, its host and its fellows, every second, into `server.parquet`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures_util::future::try_join_all;
use seekscope_run::directory::CounterWriter;
use seekscope_server::{ProcFs, Sampler};

use super::subject::Subject;

/// One for all: lines of several writers would mix.
pub type SharedWriter = Arc<Mutex<CounterWriter>>;

/// Until it fails: `serverStatus`, the process, the host, the disk under the data.
pub async fn of_examined(
    subject: &Subject,
    device: Option<&str>,
    writer: &SharedWriter,
) -> Result<Infallible> {
    let sampler = Sampler::new(&subject.server, &ProcFs::host(), subject.pid, device);
    every_second(sampler, writer).await
}

/// Until one fails: `serverStatus` of each of the others. Without others it waits.
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
