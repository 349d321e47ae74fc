//! Walks the files one after the other and writes their records into the run.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_layout::order::scanned;
use seekscope_layout::{
    DataDirectory, LayoutError, TableFile, TreeSource, WalkOptions, WalkedFile, walk_lone,
};
use seekscope_run::units::format_list;
use seekscope_run::{
    DataState, FileRecord, FileRole, LayoutFile, LayoutMeasurement, LayoutMember, LeafRecord,
    LeafWriter, Limitation, NameSource, PathState, RunDocument,
};
use seekscope_server::data_files::has_table;
use seekscope_server::{FileMap, Server};
use seekscope_wiredtiger::Leaf;
use tokio::runtime::Handle;

use super::data_location::{OpenData, OpenedData};
use super::is_interruption;
use super::record::Recorder;
use super::scan_disk::ScanDisks;
use super::since::Since;
use super::watch;
use crate::args::LayoutArgs;
use crate::exit::message_of;
use crate::local_members::limitation_of;
use crate::progress::Progress;
use crate::session::{Session, limit};

/// How often results are saved, so that a killed run keeps them.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// The number of dropped files that are named, so that the message stays readable.
const DROPPED_NAMED_MAX: usize = 8;

/// Returns the options for reading files.
pub fn walk_options<'a>(
    args: &LayoutArgs,
    stop: &'a AtomicBool,
    keep_pages: bool,
) -> WalkOptions<'a> {
    WalkOptions {
        parallel_reads: usize::from(args.gentle.parallel_reads),
        reads_per_s: args.gentle.max_reads_per_s,
        stop,
        keep_pages,
    }
}

/// All that is needed to measure.
pub struct Measurement<'a> {
    pub args: &'a LayoutArgs,
    pub progress: Progress,
    pub stop: &'a AtomicBool,
    pub recorder: Recorder,
    data: OpenedData,
}

/// A file to be walked.
struct Chosen<'d> {
    /// The label of its member, where there may be several.
    member: Option<&'d str>,
    directory: &'d DataDirectory,
    names: &'d FileMap,
    server: Option<&'d Server>,
    table: &'d TableFile,
}

impl Chosen<'_> {
    /// Returns whether its file is gone because the running server dropped it since the last checkpoint, which alone
    /// names it still. Without a connection a server that runs is trusted not to lose files.
    fn was_dropped(&self, error: &LayoutError) -> bool {
        let is_gone = matches!(error, LayoutError::Vanished { .. });
        if !is_gone || self.directory.state != DataState::Live {
            return false;
        }
        let Some(server) = self.server else {
            return true;
        };
        let namespace = self.table.namespace.as_ref().and_then(|n| n.parse().ok());
        let (Some(namespace), Ok(runtime)) = (namespace, Handle::try_current()) else {
            return false;
        };
        runtime.block_on(has_table(server, &namespace, self.table.ident())) == Some(false)
    }

    /// Returns its name with that of its member.
    fn name(&self) -> String {
        let name = self.table.name();
        self.member
            .map_or(name.clone(), |member| format!("{member}/{name}"))
    }
}

impl<'a> Measurement<'a> {
    /// Prepares the measurement; nothing is read yet.
    pub fn new(
        args: &'a LayoutArgs,
        data: OpenedData,
        disks: ScanDisks,
        since: Option<Since>,
        memory_bytes: u64,
        progress: Progress,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            recorder: Recorder {
                disks,
                memory_bytes,
                updates_per_hour: args.decay.updates_per_hour,
                since,
            },
            args,
            progress,
            stop,
            data,
        }
    }

    /// Stores the records in the session, as far as it gets. The first file that could not be read is the
    /// error; the others are measured all the same.
    pub fn run(self, session: &mut Session) -> Result<()> {
        if let [(_, OpenData::Lone(path))] = self.data.parts.as_slice() {
            return self.lone(path, session);
        }
        session.document.layout = Some(self.about_directories());
        for (member, data) in &self.data.parts {
            if let OpenData::Directory { directory, .. } = data {
                let label = member.as_ref().map(|member| member.member.as_str());
                describe(&mut session.document, label, directory);
            }
        }
        let tables = self.chosen()?;
        let (leaves, outcome) = self.tables(session, &tables);
        let goes_on = !outcome.as_ref().is_err_and(is_interruption);
        if self.args.decay.watch && goes_on {
            let files = tables.iter().map(|t| t.table.file.clone()).collect();
            watch::follow(&self, session, self.data.path(), files, leaves)?;
        }
        outcome
    }

    /// Returns the files that are meant, of all directories.
    fn chosen(&self) -> Result<Vec<Chosen<'_>>> {
        let mut chosen = Vec::new();
        for (member, data) in &self.data.parts {
            let OpenData::Directory {
                directory,
                wanted,
                names,
                server,
                ..
            } = data
            else {
                continue;
            };
            let tables: Vec<&TableFile> = match wanted.as_slice() {
                [] => directory.tables().iter().collect(),
                some => some
                    .iter()
                    .map(|f| directory.find(f))
                    .collect::<Result<_, _>>()?,
            };
            chosen.extend(tables.into_iter().map(|table| Chosen {
                member: member.as_ref().map(|member| member.member.as_str()),
                directory,
                names,
                server: server.as_ref(),
                table,
            }));
        }
        Ok(chosen)
    }

    /// Returns what is known of the directory, or of those of all members, before anything is read.
    fn about_directories(&self) -> LayoutMeasurement {
        let members = self.data.parts.iter();
        let members = members.filter_map(|(member, _)| {
            let member = member.clone()?;
            let disk = self.recorder.disks.of(Some(&member.member));
            Some(LayoutMember {
                predicted_for: disk.model.disk.clone(),
                ..member
            })
        });
        let state = match self.data.parts.first() {
            Some((_, OpenData::Directory { directory, .. })) => directory.state,
            _ => DataState::Live,
        };
        let mut about = LayoutMeasurement {
            named: self.data.named.clone(),
            members: members.collect(),
            ..self.about(self.data.path(), state)
        };
        if let Some(uri) = self.data.uri.as_ref().filter(|_| !about.members.is_empty()) {
            about.path.clone_from(uri);
        }
        about
    }

    fn about(&self, path: &Path, state: DataState) -> LayoutMeasurement {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        LayoutMeasurement {
            path: path.display().to_string(),
            state,
            predicted_for: self.recorder.disks.in_words(),
            disk_measured: self.recorder.disks.measured(),
            ..LayoutMeasurement::default()
        }
    }

    fn lone(&self, path: &Path, session: &mut Session) -> Result<()> {
        let walked = {
            let _step = self.progress.step("looking for the tree in a lone file");
            walk_lone(path, &walk_options(self.args, self.stop, false))?
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        let mut file = LayoutFile {
            file_id: 1,
            file: name.to_string_lossy().into_owned(),
            ..LayoutFile::default()
        };
        self.recorder.fill(&mut file, &walked, path);
        if walked.source == TreeSource::Orphan {
            session.limit(Limitation {
                what: "which of the file's trees is the present one is a guess, and so is what is free".into(),
                why: "files of MongoDB up to 4.0 do not say it themselves: the newest whole tree was taken"
                    .into(),
                remedy: "keep the file in its data directory, whose metadata names the tree".into(),
            });
        }
        let mut writer = session.directory.leaf_writer()?;
        write_leaves(&mut writer, 1, &walked.tree.leaves)?;
        writer.finish()?;
        session.directory.save_files(&[file_record(&file, path)])?;
        session.document.layout = Some(LayoutMeasurement {
            files: vec![file],
            ..self.about(path, DataState::LoneFile)
        });
        Ok(())
    }

    /// Measures the tables. Returns the leaves by file if they will be needed again.
    fn tables(
        &self,
        session: &mut Session,
        tables: &[Chosen<'_>],
    ) -> (HashMap<u32, WalkedFile>, Result<()>) {
        let mut kept = HashMap::new();
        let outcome = self.each_table(session, tables, &mut kept);
        let document = &mut session.document;
        let layout = document.layout.get_or_insert_default();
        layout.files.sort_by(|a, b| {
            let gain = b.scan_saved_s().total_cmp(&a.scan_saved_s());
            gain.then_with(|| b.file_bytes.cmp(&a.file_bytes))
        });
        (kept, outcome)
    }

    fn each_table(
        &self,
        session: &mut Session,
        tables: &[Chosen<'_>],
        kept: &mut HashMap<u32, WalkedFile>,
    ) -> Result<()> {
        let step = self.progress.counted("reading trees", tables.len() as u64);
        let options = walk_options(self.args, self.stop, self.args.decay.watch);
        let mut writer = session.directory.leaf_writer()?;
        let mut records = Vec::new();
        let (mut failure, mut dropped) = (None, Vec::new());
        let mut saved = Instant::now();
        for (file_id, chosen) in (1u32..).zip(tables) {
            let Chosen {
                directory, table, ..
            } = chosen;
            step.at(u64::from(file_id - 1));
            let mut file = named_file(file_id, table, directory, chosen.names);
            file.member = chosen.member.map(String::from);
            let path = directory.path().join(&table.file);
            match directory.walk(table, &options) {
                Ok(walked) => {
                    self.recorder.fill(&mut file, &walked, &path);
                    write_leaves(&mut writer, file_id, &walked.tree.leaves)?;
                    if self.args.decay.watch {
                        kept.insert(file_id, walked);
                    }
                }
                Err(LayoutError::Interrupted) => {
                    failure = Some(LayoutError::Interrupted.into());
                    break;
                }
                Err(error) if !self.is_named() && chosen.was_dropped(&error) => {
                    dropped.push(chosen.name());
                    continue;
                }
                Err(error) => {
                    file.file_bytes = path.metadata().map_or(0, |m| m.len());
                    file.not_measured = Some(why(&error, directory.state));
                    if counts_as_failure(&error, self.is_named()) {
                        failure.get_or_insert(anyhow::Error::from(error));
                    }
                }
            }
            records.push(file_record(&file, &path));
            let layout = session.document.layout.get_or_insert_default();
            layout.files.push(file);
            if saved.elapsed() > SAVE_EVERY {
                session.directory.save(&session.document)?;
                saved = Instant::now();
            }
        }
        writer.finish()?;
        session.directory.save_files(&records)?;
        if !dropped.is_empty() {
            session.limit(Limitation {
                what: format!(
                    "left out: {}",
                    format_list(&dropped, DROPPED_NAMED_MAX, ", ")
                ),
                why: "they were dropped since the last checkpoint".into(),
                remedy: String::new(),
            });
        }
        failure.map_or(Ok(()), Err)
    }

    fn is_named(&self) -> bool {
        self.data.parts.iter().any(|(_, data)| match data {
            OpenData::Directory { wanted, .. } => !wanted.is_empty(),
            OpenData::Lone(_) => true,
        })
    }
}

/// Records what a directory says of itself. Of several members' directories, what they have in common.
fn describe(document: &mut RunDocument, label: Option<&str>, directory: &DataDirectory) {
    for error in &directory.unreadable_names {
        let limitation = Limitation {
            what: "names or counts of collections are missing".into(),
            why: error.to_string(),
            remedy: "name the server's connection string instead of its directory".into(),
        };
        limit(document, limitation_of(label, limitation));
    }
    let layout = document.layout.get_or_insert_default();
    let is_first = layout
        .members
        .first()
        .is_none_or(|first| Some(first.member.as_str()) == label);
    if is_first {
        layout.names = directory.names;
        layout
            .wiredtiger_version
            .clone_from(&directory.wiredtiger_version);
        return;
    }
    if directory.names != NameSource::Catalogue {
        layout.names = directory.names;
    }
    if layout.wiredtiger_version != directory.wiredtiger_version {
        layout.wiredtiger_version = None;
    }
}

/// Returns the error in words for a table of files.
fn why(error: &LayoutError, state: DataState) -> String {
    match (error, state) {
        (LayoutError::NotInMetadata { .. }, DataState::Live) => {
            "created since the last checkpoint: run this again after the next one, which a mongod takes \
             within 60 s, or at once when it is given the command {fsync: 1}"
                .into()
        }
        (LayoutError::NotInMetadata { .. }, _) => {
            "created after the last checkpoint: its server recovers it from the journal when it starts"
                .into()
        }
        (error, _) => error.to_string(),
    }
}

/// Returns whether an error is a failure. Encrypted or too new files are left out of an overview, but not if
/// they were named.
fn counts_as_failure(error: &LayoutError, named: bool) -> bool {
    match error {
        LayoutError::NotInMetadata { .. } => false,
        LayoutError::Config { .. } => named,
        error => named || !error.is_encrypted(),
    }
}

/// Returns a record without figures. If the tables have only their own names, the server may know better ones.
pub fn named_file(
    file_id: u32,
    table: &TableFile,
    directory: &DataDirectory,
    names: &FileMap,
) -> LayoutFile {
    let (mut namespace, mut index) = (table.namespace.clone(), table.index.clone());
    let path = Path::new(&table.file);
    let is_unsure = directory.names == NameSource::TableNames;
    match names.only_use(path) {
        Some((known, of_index)) if is_unsure || namespace.is_none() => {
            namespace = Some(known.to_owned());
            index = of_index.map(str::to_owned);
        }
        // Several collections share it.
        None if is_unsure => namespace = names.classify(path).1.or(namespace),
        _ => {}
    }
    LayoutFile {
        file_id,
        file: table.file.clone(),
        namespace,
        index,
        documents: table.documents,
        document_bytes: table.document_bytes,
        ..LayoutFile::default()
    }
}

/// Appends the leaves that a scan reads.
pub fn write_leaves(writer: &mut LeafWriter<'_>, file_id: u32, leaves: &[Leaf]) -> Result<()> {
    for (ordinal, leaf) in (0u64..).zip(scanned(leaves)) {
        writer.leaf(LeafRecord {
            file_id,
            ordinal,
            offset: leaf.offset,
            length: leaf.length,
        })?;
    }
    Ok(())
}

/// Returns the file's row in `files.parquet`.
pub fn file_record(file: &LayoutFile, path: &Path) -> FileRecord {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let metadata = path.metadata().ok();
    let device = metadata.as_ref().map_or(0, MetadataExt::dev);
    let namespace = file.namespace.as_ref().map(|namespace| match &file.index {
        Some(index) => format!("{namespace}/{index}"),
        None => namespace.clone(),
    });
    FileRecord {
        file_id: file.file_id,
        role: match file.index {
            Some(_) => FileRole::Index,
            None => FileMap::default().classify(&path).0,
        },
        path: path.display().to_string(),
        path_state: PathState::Known,
        device_major: rustix::fs::major(device),
        device_minor: rustix::fs::minor(device),
        inode: metadata.as_ref().map_or(0, MetadataExt::ino),
        size_bytes: file.file_bytes,
        namespace,
        member: file.member.clone(),
    }
}

/// Records errors that end a watch but not the run.
pub fn note_failure(document: &mut RunDocument, what: &str, error: &anyhow::Error) {
    let limitation = Limitation {
        what: what.into(),
        why: message_of(error),
        remedy: "run it again".into(),
    };
    limit(document, limitation);
}
