//! What others notice: the time of point reads of another collection while the scan runs, with prefetch
//! against without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::{RawDocumentBuf, doc};
use seekscope_bench::gains::{Activity, Conditions, DiskLimits, Pairs};
use seekscope_bench::replica_server::{ReplicaServer, ReplicaServerOptions};
use seekscope_server::{Namespace, Server};
use seekscope_stats::{SplitMix64, median, quantile_sorted};
use seekscope_workload::{LoadOptions, Sdu, SduOptions, load};

use crate::trial::Bed;

const DOCUMENTS: u64 = 20_000;
/// The pause between the end of one read and the start of the next.
const PAUSE: Duration = Duration::from_millis(3);
/// How many times as long the slowest hundredth of them may take with prefetch.
const SLOWER_MAX: f64 = 1.2;

fn others() -> Result<Namespace> {
    Ok(Namespace::new("others", "read")?)
}

/// Documents to be read while the scan runs, in a table of their own.
pub(crate) async fn load_others(options: &ReplicaServerOptions) -> Result<()> {
    let mut local = ReplicaServer::start(options.clone()).await?;
    let server = Server::connect(&local.uri()).await?;
    let sdu = Sdu::new(SduOptions::default());
    load(
        &server,
        &others()?,
        &sdu,
        &LoadOptions::new(DOCUMENTS),
        &|_| {},
    )
    .await?;
    local.stop().await
}

/// Interleaved pairs on both disks; on how many of them reads are held up.
pub(crate) async fn compare(bed: &mut Bed, pairs: u32) -> Result<u32> {
    let mut missed = 0;
    println!(
        "\n{:30}  {:28}  {:28}  without / with (95 %)",
        "point reads meanwhile", "without ms", "with ms"
    );
    for disk in [DiskLimits::PLAIN, DiskLimits::HARD_DISK] {
        let conditions = Conditions {
            disk,
            ..Conditions::default()
        };
        let mut p99 = Pairs::default();
        let mut high = [Vec::new(), Vec::new()];
        let mut middle = Pairs::default();
        let mut random = SplitMix64::new(3);
        for number in 0..pairs {
            let mut pair = [[0.0; 2]; 2];
            let with_first = random.below(2) == 1;
            for prefetching in [with_first, !with_first] {
                let times = latencies(bed, conditions, prefetching, u64::from(number)).await?;
                let at = |q| quantile_sorted(&times, q).unwrap_or(f64::NAN);
                pair[usize::from(prefetching)] = [at(0.5), at(0.99)];
            }
            middle.push(pair[0][0], pair[1][0]);
            p99.push(pair[0][1], pair[1][1]);
            for (all, [_, one]) in high.iter_mut().zip(pair) {
                all.push(one);
            }
        }
        let [without, with] = high.map(|all| median(&all).unwrap_or(f64::NAN));
        let is_held_up = with > without * SLOWER_MAX;
        missed += u32::from(is_held_up);
        println!("{:9}  median              {middle}", conditions.disk.name());
        println!(
            "{:9}  99th percentile     {p99}{}",
            conditions.disk.name(),
            if is_held_up { "  HELD UP" } else { "" }
        );
    }
    Ok(missed)
}

/// Returns the latencies of all reads during a scan, ms, sorted.
async fn latencies(
    bed: &mut Bed,
    conditions: Conditions,
    prefetching: bool,
    seed: u64,
) -> Result<Vec<f64>> {
    let cold = bed.hosts.start(&bed.data, conditions).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read(cold.local.uri(), stop.clone(), seed));
    let scanned = bed.run(&cold, Activity::Scan, prefetching).await;
    stop.store(true, Ordering::Relaxed);
    let times = reader.await.context("the reader failed")??;
    scanned?;
    bed.hosts.end(cold, Activity::Scan).await?;
    Ok(times)
}

async fn read(uri: String, stop: Arc<AtomicBool>, seed: u64) -> Result<Vec<f64>> {
    let server = Server::connect(&uri).await?;
    let namespace = others()?;
    let database = server.database(namespace.database());
    let collection = database.collection::<RawDocumentBuf>(namespace.collection());
    let mut random = SplitMix64::new(seed);
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let id = random.below(DOCUMENTS).cast_signed();
        let begun = Instant::now();
        collection
            .find_one(doc! { "_id": id })
            .await?
            .context("a document is missing")?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(PAUSE).await;
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
