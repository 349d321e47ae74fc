//! How fast `reorder` copies, against a plain copy by the official driver with its best settings: batches
//! of 10,000, unordered, raw documents, one and four writers. Both read and write the same documents on
//! the same server, in turn.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use bson::{Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_bench::gains::{Pairs, aged::namespace};
use seekscope_bench::replica_server::{ReplicaServer, ReplicaServerOptions};
use seekscope_server::Server;
use seekscope_stats::SplitMix64;
use tokio::sync::mpsc;

use crate::rewriting::rewrite_on;

const BATCH_DOCUMENTS: usize = 10_000;
/// Batches read ahead of the writers.
const AHEAD: usize = 2;
const WRITERS: [usize; 2] = [1, 4];
const COPY: &str = "plain_copy";

/// Compares `rounds` times; which goes first is drawn.
pub(crate) async fn compare(
    options: &ReplicaServerOptions,
    seekscope: &Path,
    rounds: u32,
) -> Result<()> {
    let mut local = ReplicaServer::start(options.clone()).await?;
    let server = Server::connect(&local.uri()).await?;
    let mut random = SplitMix64::new(7);
    // Seconds per megabyte, of each number of writers.
    let mut pairs = [Pairs::default(), Pairs::default()];
    for _ in 0..rounds {
        let mut reordered = None;
        let mut plain = [0.0; 2];
        let first = usize::try_from(random.below(3))?;
        for turn in 0..3 {
            match (first + turn) % 3 {
                2 => {
                    let rewriting = rewrite_on(&local, seekscope).await?;
                    println!("reorder --apply: {rewriting}");
                    reordered = Some(1e6 / rewriting.copied_bytes_per_s());
                }
                which => plain[which] = copy(&server, WRITERS[which]).await?,
            }
        }
        for (pairs, plain) in pairs.iter_mut().zip(plain) {
            pairs.push(plain, reordered.unwrap_or(f64::NAN));
        }
    }
    println!(
        "\n{:22}  {:28}  {:28}  reorder's rate / driver's (95 %)",
        "", "driver s per MB", "reorder s per MB"
    );
    for (writers, pairs) in WRITERS.iter().zip(&pairs) {
        println!("copy, {writers} writers        {pairs}");
    }
    local.stop().await
}

/// Seconds per megabyte of documents.
async fn copy(server: &Server, writers: usize) -> Result<f64> {
    let namespace = namespace()?;
    let database = server.database(namespace.database());
    let from = database.collection::<RawDocumentBuf>(namespace.collection());
    database.create_collection(COPY).await?;
    let begun = Instant::now();
    let (send, receive) = mpsc::channel::<Vec<RawDocumentBuf>>(AHEAD);
    let receive = std::sync::Arc::new(tokio::sync::Mutex::new(receive));
    let mut tasks = Vec::new();
    for _ in 0..writers {
        let to = database.collection::<RawDocumentBuf>(COPY);
        let receive = receive.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let batch = receive.lock().await.recv().await;
                let Some(batch) = batch else {
                    return Ok::<(), mongodb::error::Error>(());
                };
                to.insert_many(batch).ordered(false).await?;
            }
        }));
    }
    let (mut batch, mut documents, mut bytes) = (Vec::new(), 0_u64, 0);
    let mut cursor = from.find(doc! {}).await?;
    while let Some(document) = cursor.try_next().await? {
        documents += 1;
        bytes += document.as_bytes().len();
        batch.push(document);
        if batch.len() == BATCH_DOCUMENTS {
            send.send(std::mem::take(&mut batch)).await?;
        }
    }
    if !batch.is_empty() {
        send.send(batch).await?;
    }
    drop(send);
    for task in tasks {
        task.await??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let copied = server.count(namespace.database(), COPY).await?;
    ensure!(copied == documents, "{copied} of {documents} were copied");
    database.collection::<Document>(COPY).drop().await?;
    Ok(seconds / (bytes as f64 / 1e6))
}
