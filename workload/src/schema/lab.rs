//! Measures one variant: fills it, makes it cold, reads series for a year, and determines its size on disk.

use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, doc};
use seekscope_run::units::nanoseconds;
use seekscope_run::{Disk, Limitation, ProcessIo, SchemaShape};
use seekscope_server::process::io_between;
use seekscope_server::{Server, storage::storage_facts};

use super::filling::{Filled, Filling};
use super::lab_server::{LabServer, probe};
use super::query;
use super::samples::{Answer, Samples};
use super::variant::{Shape, Variant};
use crate::{IndexKeys, NoCheckpoint, Progress, WorkloadError, checkpoint};

/// Rows per round trip: a year is returned in one.
const CURSOR_BATCH: u32 = 1_000_000;
const INDEX_NAME: &str = "series";

/// How variants are measured.
#[derive(Debug, Clone)]
pub struct LabOptions {
    pub database: String,
    /// Samples per command, at least 1.
    pub batch_samples: u32,
    /// Number of series that are read for a year, each with cold caches, at least 1.
    pub queries: u32,
    /// Longest time for which the emulated disk is active in each tenth of the load.
    pub slow_stretch: Duration,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            database: "seekscope_bench".into(),
            batch_samples: 1000,
            queries: 5,
            slow_stretch: Duration::from_secs(6),
        }
    }
}

/// The result of reading a year on one disk.
#[derive(Debug, Default)]
struct Reading {
    year_ns: Vec<u64>,
    io: Vec<ProcessIo>,
    wrong_answers: u64,
}

/// Measures one variant; returns one result for each disk of the server. A variant that the server rejects
/// has a result without figures, and the server's reason among its limitations.
pub async fn measure(
    lab_server: &mut LabServer,
    samples: &Samples,
    variant: &Variant,
    options: &LabOptions,
    progress: Progress<'_>,
) -> Result<Vec<SchemaShape>, WorkloadError> {
    let collection = variant.collection();
    let empty = empty_result(variant, samples);
    if let Some(why) = variant.unfit(samples) {
        return Ok(vec![refused(empty, &why, "")]);
    }
    let server = lab_server.fresh(&options.database, &collection).await?;
    if let Err(error) = create(&server, variant, options).await {
        lab_server.clear(&options.database, &collection).await?;
        return Ok(vec![refused(
            empty,
            &error.to_string(),
            "ask a server that has it",
        )]);
    }
    let empty_bytes = lab_server.data_file_bytes();
    let mut filling = Filling {
        lab_server,
        server: &server,
        variant,
        samples,
        options,
        evicted: None,
    };
    let preallocation = if variant.preallocated {
        Some(filling.preallocate().await?)
    } else {
        None
    };
    let filled = filling.fill(progress).await?;
    let mut filled_shape = SchemaShape {
        samples: filled.samples,
        preallocation_ns: preallocation.map(nanoseconds),
        ..empty
    };
    match checkpoint(&server).await {
        Ok(()) => {
            let storage = storage_facts(&server, &options.database, &[&collection]).await?;
            filled_shape.storage = Some(storage);
        }
        Err(error) => {
            let unknown = NoCheckpoint::from(error).limitation();
            filled_shape.limitations.push(unknown);
        }
    }
    let mut shapes = Vec::new();
    for (number, disk) in lab_server.disks().into_iter().enumerate() {
        let reading = read_years(lab_server, &disk, samples, variant, options).await?;
        shapes.push(result(
            &filled_shape,
            &disk,
            lab_server.is_private(),
            &filled,
            number,
            &reading,
        ));
    }
    lab_server.clear(&options.database, &collection).await?;
    let bytes = lab_server.data_file_bytes();
    for storage in shapes.iter_mut().filter_map(|shape| shape.storage.as_mut()) {
        storage.directory_bytes = bytes.map(|b| b.saturating_sub(empty_bytes.unwrap_or(0)));
    }
    Ok(shapes)
}

fn empty_result(variant: &Variant, samples: &Samples) -> SchemaShape {
    SchemaShape {
        name: variant.name(),
        index: variant.index_json().into(),
        preallocated: variant.preallocated,
        year_samples: samples.year_slots(),
        ..SchemaShape::default()
    }
}

fn refused(mut shape: SchemaShape, why: &str, remedy: &str) -> SchemaShape {
    shape.limitations.push(Limitation {
        what: format!("{} was not measured", shape.name),
        why: why.into(),
        remedy: remedy.into(),
    });
    shape
}

fn result(
    shape: &SchemaShape,
    disk: &Disk,
    cold: bool,
    filled: &Filled,
    number: usize,
    reading: &Reading,
) -> SchemaShape {
    let per_query = |of: fn(&ProcessIo) -> u64| {
        let sum: u64 = reading.io.iter().map(of).sum();
        (!reading.io.is_empty()).then(|| sum as f64 / reading.io.len() as f64)
    };
    let mut shape = SchemaShape {
        disk: disk.label(),
        cold,
        insert_per_s: filled.insert_per_s.get(number).cloned().unwrap_or_default(),
        year_read_ns: reading.year_ns.clone(),
        reads_per_query: per_query(|io| io.read_calls),
        read_bytes_per_query: per_query(|io| io.device_read_bytes),
        wrong_answers: reading.wrong_answers,
        ..shape.clone()
    };
    if !cold {
        shape.limitations.push(Limitation {
            what: "series were read with warm caches only".into(),
            why: "the caches of somebody's server cannot be emptied without stopping it and being root on its host".into(),
            remedy: "run the lab without a connection string: it then starts a server of its own".into(),
        });
    }
    shape
}

async fn create(
    server: &Server,
    variant: &Variant,
    options: &LabOptions,
) -> Result<(), WorkloadError> {
    let collection = variant.collection();
    if variant.shape == Shape::Native {
        let time_series = doc! { "timeField": "date", "metaField": "meta", "granularity": "hours" };
        let create = doc! { "create": &collection, "timeseries": time_series };
        server.command(&options.database, create).await?;
    }
    let keys = IndexKeys::parse(variant.index_json())?;
    let index = doc! { "key": keys.document().clone(), "name": INDEX_NAME };
    let create = doc! { "createIndexes": &collection, "indexes": [index] };
    server.command(&options.database, create).await?;
    Ok(())
}

/// Reads several series for a year, far apart from each other, each with cold caches.
async fn read_years(
    lab_server: &mut LabServer,
    disk: &Disk,
    samples: &Samples,
    variant: &Variant,
    options: &LabOptions,
) -> Result<Reading, WorkloadError> {
    let mut reading = Reading::default();
    let queries = options.queries.clamp(1, samples.series());
    let index = IndexKeys::parse(variant.index_json())?;
    for number in 0..queries {
        // The middle of its share of all series.
        let series =
            (u64::from(samples.series()) * u64::from(2 * number + 1)) / u64::from(2 * queries);
        let series = u32::try_from(series).unwrap_or(0);
        let to = samples.year_slots();
        let probe = probe(&variant.collection(), index.document().clone());
        let server = lab_server.cold(disk, &options.database, probe).await?;
        if !lab_server.is_private() {
            ask(&server, samples, variant, options, series, to).await?;
        }
        let before = lab_server.io();
        let start = Instant::now();
        let answer = ask(&server, samples, variant, options, series, to).await?;
        reading.year_ns.push(nanoseconds(start.elapsed()));
        if let (Some(before), Some(after)) = (before, lab_server.io()) {
            reading.io.push(io_between(&before, &after));
        }
        reading.wrong_answers += u64::from(answer != samples.answer(series, 0, to));
    }
    Ok(reading)
}

async fn ask(
    server: &Server,
    samples: &Samples,
    variant: &Variant,
    options: &LabOptions,
    series: u32,
    to: u64,
) -> Result<Answer, WorkloadError> {
    let failed = |error| server.error("find", &error);
    let collection = server.database(&options.database);
    let collection = collection.collection::<RawDocumentBuf>(&variant.collection());
    let filter = query::filter(variant, samples, series, 0, to);
    let mut cursor = collection
        .find(filter)
        .batch_size(CURSOR_BATCH)
        .await
        .map_err(failed)?;
    let mut answer = Answer::default();
    while cursor.advance().await.map_err(failed)? {
        query::read(variant, samples, cursor.current(), 0, to, &mut answer);
    }
    Ok(answer)
}
