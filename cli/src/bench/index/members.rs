//! Looks at the servers that keep the documents, as far as they run on this host: how the collection lies in the file of
//! each, and how a build reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::{DataDirectory, LayoutError, WalkOptions};
use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_run::{
    BuildReads, FileRecord, FileRole, IndexedFile, IoEvent, IoKind, Limitation, TraceFacts,
};
use seekscope_server::{Namespace, ProcFs, Server};
use seekscope_trace::{
    EventSink, Followed, LiveSource, Recording, SinkError, TraceError, TraceOptions,
};

use crate::bench::stage::Stage;
use crate::bench::target::Target;
use crate::exit::message_of;
use crate::file_names::FileNames;
use crate::layout::seen_from_here;
use crate::local_members::{LocalMembers, limitation_of};
use crate::member_files::MemberFiles;

/// Gentle on hard disks, yet quick on SSDs.
const PARALLEL_READS: usize = 8;
const NOT_LOOKED_AT: &str = "pattern and order of the reads are not known";

/// The servers with data of one target that run on this host.
#[derive(Debug, Default)]
pub struct Members {
    all: Vec<Member>,
    files: MemberFiles,
    namespace: String,
}

#[derive(Debug)]
struct Member {
    /// The shard's name, or `host:port`.
    name: String,
    pid: u32,
    /// Its data directory as this process sees it.
    data: Option<PathBuf>,
}

/// The reads of one build, while they are recorded.
pub struct BuildTrace {
    recording: Recording,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    analyser: TraceAnalyser,
    files: BTreeMap<u32, FileRecord>,
}

/// Passes what is recorded on to the analysis.
struct Sink(Arc<Mutex<Seen>>);

impl Members {
    /// Finds them; limitations of the run name the others.
    pub async fn find(stage: &mut Stage, target: &Target, namespace: &Namespace) -> Result<Self> {
        let mut members = Self {
            namespace: namespace.to_string(),
            ..Self::default()
        };
        for (name, pid, server) in here(stage, target)? {
            let facts = server.facts(&ProcFs::host()).await;
            let told = facts.target.dbpath.map(PathBuf::from);
            let data = told
                .as_deref()
                .and_then(|path| seen_from_here(pid, path).ok());
            let namespaces = [namespace.clone()];
            let names = FileNames::find(Some(&server), data.as_deref(), &namespaces).await;
            if let Some(limitation) = names.limitation {
                stage.limit(limitation_of(Some(&name), limitation));
            }
            let files = &mut members.files;
            files.add(&name, pid, told.as_deref(), names.map);
            members.all.push(Member { name, pid, data });
        }
        Ok(members)
    }

    /// Reads how the leaves of the collection's file lie, as of its newest checkpoint.
    pub async fn read_order(&self, stage: &Stage, variant: &str) -> Result<Vec<IndexedFile>> {
        let mut files = Vec::new();
        for member in &self.all {
            let (data, namespace) = (member.data.clone(), self.namespace.clone());
            let walk = move |stop: &AtomicBool| match data {
                Some(data) => walk(&data, &namespace, stop).map_err(|error| error.to_string()),
                None => Err("its data directory cannot be read from here".into()),
            };
            let (walked, _) = stage.interruption.cancelling(walk).await;
            stage.interruption.check()?;
            let file = walked?.unwrap_or_else(|why| IndexedFile {
                not_measured: Some(why),
                ..IndexedFile::default()
            });
            files.push(IndexedFile {
                variant: variant.into(),
                member: member.name.clone(),
                ..file
            });
        }
        Ok(files)
    }

    /// Begins to record what all of them read; `None` if there are none.
    pub fn trace(&self) -> Result<Option<BuildTrace>, TraceError> {
        let pids: Vec<u32> = self.all.iter().map(|member| member.pid).collect();
        if pids.is_empty() {
            return Ok(None);
        }
        let source = LiveSource::attach(&TraceOptions {
            kinds: vec![IoKind::Read],
            ..TraceOptions::of(Followed::Processes {
                pids,
                children: false,
            })
        })?;
        let seen = Arc::new(Mutex::new(Seen::new()));
        let sink = Sink(Arc::clone(&seen));
        Ok(Some(BuildTrace {
            recording: Recording::start(Box::new(source), Box::new(sink)),
            seen,
        }))
    }

    /// Ends recording, and returns how each of them read the collection's file.
    pub fn end(&self, trace: BuildTrace) -> Result<(Vec<BuildReads>, TraceFacts), TraceError> {
        let (facts, _) = trace.recording.stop()?;
        let seen = std::mem::replace(
            &mut *trace.seen.lock().unwrap_or_else(PoisonError::into_inner),
            Seen::new(),
        );
        let files: Vec<FileRecord> = seen.files.into_values().collect();
        let analysis = seen.analyser.finish(&files, &[]);
        let mut reads: Vec<BuildReads> = self.all.iter().map(Member::without_reads).collect();
        for traced in analysis.files {
            let mut file = traced.file;
            self.files.name(&mut file);
            let is_collection = file.role == FileRole::Collection
                && file.namespace.as_deref() == Some(&self.namespace);
            let of_member = reads
                .iter_mut()
                .find(|one| Some(&one.member) == file.member.as_ref());
            if let (true, Some(of_member)) = (is_collection, of_member) {
                let pattern = traced.reads.pattern;
                of_member.reads = traced.reads.transfers.calls;
                of_member.bytes = traced.reads.transfers.bytes;
                of_member.pattern = pattern.as_ref().map(|found| found.kind.name().into());
                of_member.sequential_share = pattern.map(|found| found.sequential_share);
            }
        }
        Ok((reads, facts))
    }
}

impl Member {
    fn without_reads(&self) -> BuildReads {
        BuildReads {
            member: self.name.clone(),
            ..BuildReads::default()
        }
    }
}

impl Seen {
    fn new() -> Self {
        Self {
            analyser: TraceAnalyser::new(AnalysisOptions::default()),
            files: BTreeMap::new(),
        }
    }
}

impl Sink {
    fn with(&self, work: impl FnOnce(&mut Seen)) -> Result<(), SinkError> {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

impl EventSink for Sink {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.with(|seen| seen.analyser.push(event))
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.with(|seen| {
            seen.files.insert(file.file_id, file.clone());
        })
    }
}

/// Returns name, process and connection of each server with data on this host.
fn here(stage: &mut Stage, target: &Target) -> Result<Vec<(String, u32, Server)>> {
    let Some(routed) = target.routed() else {
        let server = target.server()?;
        let Some(pid) = target.facts.pid else {
            stage.limit(Limitation {
                what: format!("{}: {NOT_LOOKED_AT}", target.facts.uri),
                why: "its process is not seen on this host".into(),
                remedy: "run seekscope on its host".into(),
            });
            return Ok(Vec::new());
        };
        let address = server.addresses().first();
        let name = address.map_or_else(|| "server".into(), |(host, port)| format!("{host}:{port}"));
        return Ok(vec![(name, pid, server.clone())]);
    };
    let local = LocalMembers::of(&routed.found, &target.uri);
    let elsewhere = local.elsewhere("looked at");
    elsewhere.into_iter().for_each(|told| stage.limit(told));
    let members = local.members.into_iter();
    let named = members.map(|member| (member.shown().to_string(), member.pid, member.server));
    Ok(named.collect())
}

fn walk(data: &Path, namespace: &str, stop: &AtomicBool) -> Result<IndexedFile, LayoutError> {
    let directory = DataDirectory::open(data, stop)?;
    let table = directory.find(namespace)?;
    let options = WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop,
        keep_pages: false,
    };
    let walked = directory.walk(table, &options)?;
    let bytes = data.join(&table.file).metadata();
    Ok(IndexedFile {
        file_bytes: bytes.ok().map(|metadata| metadata.len()),
        order: scan_order(&walked.tree.leaves, WINDOW_BYTES),
        ..IndexedFile::default()
    })
}

/// Returns the limitation of builds that could not be traced.
pub fn untraced(error: TraceError) -> Limitation {
    let remedy = match &error {
        TraceError::NoPermission { remedy, .. } => remedy.clone(),
        _ => String::new(),
    };
    Limitation {
        what: "how the builds read their collection was not traced".into(),
        why: message_of(&error.into()),
        remedy,
    }
}
