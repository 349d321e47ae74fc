//! `advise --trace RUN`: what a trace saw the server read for the collection.

use std::path::Path;

use anyhow::Result;
use seekscope_pattern::FileTrace;
use seekscope_run::{Limitation, Phase, RunDirectory, RunDocument, TracedReads};
use seekscope_server::Namespace;

use super::earlier::other_servers;
use crate::exit::Usage;
use crate::trace::analyse;

/// What a run traced of the collection's file and those of its indexes.
pub struct Traced {
    document: RunDocument,
    pub reads: TracedReads,
}

impl Traced {
    /// Reads the run.
    pub fn load(run: &Path, namespace: &Namespace) -> Result<Self> {
        let (directory, document) = RunDirectory::open(run)?;
        let reads = reads(run, &directory, &document, namespace)?;
        Ok(Self { document, reads })
    }

    /// Returns what is to be said where `now` is a run on another server.
    pub fn caution(&self, now: &RunDocument) -> Option<Limitation> {
        other_servers(&self.reads.run, &self.document, now)
    }
}

fn reads(
    run: &Path,
    directory: &RunDirectory,
    document: &RunDocument,
    namespace: &Namespace,
) -> Result<TracedReads> {
    let refused = |why: &str| Usage(format!("--trace: {} {why}", run.display()));
    let traced = document.phases.iter().filter(|phase| phase.trace.is_some());
    let elapsed_ns: u64 = traced.map(Phase::duration_ns).sum();
    if elapsed_ns == 0 {
        return Err(refused("has no trace: make one with `seekscope trace`").into());
    }
    let trace = analyse(directory)?;
    let collection = namespace.to_string();
    let is_of_it = |file: &&FileTrace| {
        let of_index = |name: &str| {
            name.strip_prefix(&collection)?
                .starts_with('/')
                .then_some(())
        };
        let name = file.file.namespace.as_deref();
        name.is_some_and(|name| name == collection || of_index(name).is_some())
    };
    let files: Vec<&FileTrace> = trace.files.iter().filter(is_of_it).collect();
    if files.is_empty() {
        let why = format!(
            "saw no file of {namespace}: it was not used meanwhile, or the trace could not tell which file is whose"
        );
        return Err(refused(&why).into());
    }
    let reads = files.iter().map(|file| &file.reads.transfers);
    let (blocks, reads_ns) = reads.fold((0_u64, 0.0), |(blocks, ns), reads| {
        let latency = reads.latency_ns;
        (
            blocks + reads.calls,
            ns + latency.mean as f64 * latency.count as f64,
        )
    });
    let known = files.iter().map(|file| {
        let cache = &file.cache;
        let from_disk = cache.misses + cache.waited_for_others + cache.direct;
        (from_disk, cache.hits + from_disk)
    });
    let (from_disk, known) = known.fold((0, 0), |sum, of_file| {
        (sum.0 + of_file.0, sum.1 + of_file.1)
    });
    let name = directory.path().file_name().unwrap_or_default();
    Ok(TracedReads {
        run: name.to_string_lossy().into_owned(),
        elapsed_s: elapsed_ns as f64 / 1e9,
        blocks,
        disk_blocks: (known >= blocks).then_some(from_disk),
        reads_s: reads_ns / 1e9,
    })
}
