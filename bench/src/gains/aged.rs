//! Data directories with one collection in them: loaded in order, aged by random updates, copied.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::{DataDirectory, WalkOptions, WalkedFile};
use seekscope_server::{Namespace, Server, page_cache};
use seekscope_workload::{LoadOptions, Sdu, SduOptions, UpdateOptions, load, update};

use crate::replica_server::{ReplicaServer, ReplicaServerOptions};

const DATABASE: &str = "sdu";
const COLLECTION: &str = "aged";
/// secantusd-rs, which has no catalogue, keeps collections in tables of this name with a number.
const TABLE_PREFIX: &str = "secantus_documents_";
const PARALLEL_READS: usize = 16;

pub fn namespace() -> Result<Namespace> {
    Ok(Namespace::new(DATABASE, COLLECTION)?)
}

/// Loads `documents` SDU documents (about 3 KiB each) in the order of their keys, and leaves them on disk
/// with a checkpoint.
pub async fn make(options: &ReplicaServerOptions, documents: u64) -> Result<()> {
    let mut local = ReplicaServer::start(options.clone()).await?;
    let server = Server::connect(&local.uri()).await?;
    let sdu = Sdu::new(SduOptions::default());
    let report = load(
        &server,
        &namespace()?,
        &sdu,
        &LoadOptions::new(documents),
        &|_| {},
    )
    .await?;
    ensure!(
        report.errors == 0,
        "loading failed: {:?}",
        report.first_error
    );
    local.stop().await
}

/// Updates a share of the documents at random, each to new text of the same length. `revision` says
/// which text: another than that of earlier ageing.
pub async fn age(
    options: &ReplicaServerOptions,
    documents: u64,
    share: f64,
    revision: u64,
) -> Result<()> {
    let mut local = ReplicaServer::start(options.clone()).await?;
    let server = Server::connect(&local.uri()).await?;
    let sdu = Sdu::new(SduOptions::default());
    let updates = UpdateOptions {
        revision,
        ..UpdateOptions::new(documents, share, revision)
    };
    let report = update(&server, &namespace()?, &sdu, &updates, &|_| {}).await?;
    let failed = report.errors + report.missing;
    ensure!(
        failed == 0,
        "{failed} updates failed: {:?}",
        report.first_error
    );
    local.stop().await
}

/// Copies a stopped server's files.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in page_cache::files_below(from)? {
        let copied = to.join(file.strip_prefix(from)?);
        std::fs::create_dir_all(copied.parent().unwrap_or(to))?;
        std::fs::copy(&file, &copied).with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

/// The collection's leaves in a stopped server's directory: where no catalogue names it, the largest table
/// of documents is it.
pub fn walk(data: &Path) -> Result<WalkedFile> {
    let stop = AtomicBool::new(false);
    let directory = DataDirectory::open(data, &stop)?;
    let name = namespace()?.to_string();
    let mut tables = directory.tables().iter();
    let named = tables.find(|table| table.name() == name);
    let tables = directory.tables().iter();
    let documents = tables.filter(|table| table.file.starts_with(TABLE_PREFIX));
    let bytes = |file: &str| data.join(file).metadata().map_or(0, |m| m.len());
    let largest = || documents.max_by_key(|table| bytes(&table.file));
    let options = WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop: &stop,
        keep_pages: false,
    };
    Ok(directory.walk(
        named.or_else(largest).context("no table of documents")?,
        &options,
    )?)
}

/// Returns the share of all steps between leaves in key order that read-ahead bridges.
pub fn sequential_share(data: &Path) -> Result<f64> {
    let order = scan_order(&walk(data)?.tree.leaves, WINDOW_BYTES);
    Ok(order.context("too few leaves")?.sequential_share)
}
