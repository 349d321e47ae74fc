//! Selects what is played: the events of the chosen files and phase of a run.

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_disk::replay::{FileTotals, Plan, Planner, Recording, Regions, THREADS_MAX};
use seekscope_report::numbers::counted;
use seekscope_run::{FileRecord, IoEvent, Phase, RunDirectory, visible};
use serde::{Deserialize, Serialize};

use crate::args::ReplayArgs;
use crate::exit::Usage;

/// A file whose events are played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlayedFile {
    pub file_id: u32,
    pub path: String,
    /// Size of the file; 0 if unknown.
    pub size_bytes: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
}

/// The files and the phase of a recording that are played.
pub struct Selection {
    directory: RunDirectory,
    /// Only events that began in this phase are played.
    phase: Option<Phase>,
    /// Description of the recorded run, for people.
    pub about: String,
    pub files: Vec<PlayedFile>,
    pub regions: Regions,
    pub notes: Vec<String>,
}

impl Selection {
    /// Opens the run and reads through its events once.
    pub fn read(args: &ReplayArgs) -> Result<Self> {
        let (directory, document) = RunDirectory::open(&args.run)?;
        let phase = args.phase.as_deref();
        let phase = phase
            .map(|name| find_phase(&document.phases, name))
            .transpose()?;
        let mut notes = Vec::new();
        if phase.is_none() && document.phases.len() > 1 {
            notes.push(format!(
                "the run has {} phases, and all of them are replayed with the time between them; \
                 --phase replays one of them",
                document.phases.len()
            ));
        }
        if let Some(filters) = document.calls_left_out() {
            notes.push(format!(
                "the recording holds {filters}: just these calls are replayed, so that the disk is \
                 less busy than it was"
            ));
        }
        let mut recording = Recording::default();
        directory.for_each_event(|event| {
            if is_in(phase.as_ref(), event) {
                recording.add(event);
            }
        })?;
        let records = directory.files()?;
        let ids = chosen(&args.of, &recording, &records, &args.run)?;
        let mut files: Vec<PlayedFile> = ids
            .iter()
            .map(|id| played(*id, recording.files.get(id), &records))
            .collect();
        let of_phase = phase.as_ref().map(|p| format!(", phase \"{}\"", p.name));
        let about = format!("{}{}", args.run.display(), of_phase.unwrap_or_default());
        let sizes = files.iter().map(|file| {
            let end_bytes = recording
                .files
                .get(&file.file_id)
                .map_or(0, |totals| totals.end_bytes);
            (file.file_id, file.size_bytes.max(end_bytes))
        });
        let regions = Regions::lay_out(sizes);
        if regions.files() < files.len() {
            notes.push(format!(
                "of {} files, only the {} that were read most are replayed",
                files.len(),
                regions.files()
            ));
            files.truncate(regions.files());
        }
        Ok(Self {
            regions,
            directory,
            phase,
            about,
            files,
            notes,
        })
    }

    /// Reads through the events again and makes the plan for a target of `target_bytes`.
    pub fn plan(&self, target_bytes: u64, writes: bool) -> Result<Plan> {
        let mut planner = Planner::new(&self.regions, target_bytes, writes);
        self.directory.for_each_event(|event| {
            if is_in(self.phase.as_ref(), event) {
                planner.add(event);
            }
        })?;
        let plan = planner.finish(THREADS_MAX);
        if plan.facts.operations == 0 {
            let why = if writes {
                ""
            } else {
                "; writes are not replayed on an existing file"
            };
            return Err(Usage(format!(
                "{} holds nothing that can be replayed of {}{why}",
                self.about,
                self.files_in_words()
            ))
            .into());
        }
        Ok(plan)
    }

    /// Returns the files in words: "/data/a.wt", or "/data/a.wt and 3 more files".
    fn files_in_words(&self) -> String {
        files_in_words(&self.files)
    }
}

/// Returns the files in words: "/data/a.wt", or "/data/a.wt and 3 more files".
pub fn files_in_words(files: &[PlayedFile]) -> String {
    match files {
        [] => "no file".into(),
        [file] => visible(&file.path),
        [file, rest @ ..] => {
            let more = counted(rest.len() as u64, "more file");
            format!("{} and {more}", visible(&file.path))
        }
    }
}

fn find_phase(phases: &[Phase], name: &str) -> Result<Phase> {
    let found = phases.iter().find(|phase| phase.name == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<String> = phases.iter().map(|p| format!("\"{}\"", p.name)).collect();
        Usage(format!(
            "no phase \"{name}\"; the run has {}",
            names.join(", ")
        ))
        .into()
    })
}

fn is_in(phase: Option<&Phase>, event: &IoEvent) -> bool {
    phase.is_none_or(|phase| (phase.started_ns..phase.ended_ns).contains(&event.t_ns))
}

fn played(file_id: u32, totals: Option<&FileTotals>, records: &[FileRecord]) -> PlayedFile {
    let record = records.iter().find(|record| record.file_id == file_id);
    let totals = totals.copied().unwrap_or_default();
    PlayedFile {
        file_id,
        path: record.map_or_else(|| format!("file {file_id}"), |r| r.path.clone()),
        size_bytes: record.map_or(0, |r| r.size_bytes),
        reads: totals.reads,
        read_bytes: totals.read_bytes,
        writes: totals.writes,
        write_bytes: totals.write_bytes,
    }
}

/// Returns the ids of the files to be played, in the order of their regions.
fn chosen(
    wanted: &[String],
    recording: &Recording,
    records: &[FileRecord],
    run: &Path,
) -> Result<Vec<u32>> {
    let by_read_bytes = recording.by_read_bytes();
    let Some(most_read) = by_read_bytes.first() else {
        return Err(Usage(format!(
            "{} holds no reads or writes of files at known offsets; a trace with \
             --aggregate only counts calls",
            run.display()
        ))
        .into());
    };
    if wanted.is_empty() {
        return Ok(vec![*most_read]);
    }
    if wanted.iter().any(|name| name == "all") {
        return Ok(by_read_bytes);
    }
    let mut ids = Vec::new();
    for name in wanted {
        for id in find_file(name, &by_read_bytes, records)? {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

/// Finds a file by path, by name, by what it holds, or by id. A file that was replaced during the recording has
/// several ids.
fn find_file(name: &str, ids: &[u32], records: &[FileRecord]) -> Result<Vec<u32>> {
    let with_events = || {
        records
            .iter()
            .filter(|record| ids.contains(&record.file_id))
    };
    let same = |matches: &dyn Fn(&FileRecord) -> bool| -> Vec<&FileRecord> {
        with_events().filter(|record| matches(record)).collect()
    };
    let mut found = same(&|record| record.is_at(name));
    if found.is_empty() {
        found = same(&|record| record.name() == name);
    }
    if found.is_empty() {
        found = same(&|record| {
            let labelled = record.labelled_namespace();
            record.namespace.as_deref() == Some(name) || labelled.as_deref() == Some(name)
        });
    }
    if found.is_empty() {
        return match name.parse::<u32>() {
            Ok(id) if ids.contains(&id) => Ok(vec![id]),
            _ => Err(not_found(name, ids, records)),
        };
    }
    if found.iter().any(|record| record.path != found[0].path) {
        let paths: Vec<&str> = found.iter().map(|record| record.path.as_str()).collect();
        return Err(Usage(format!(
            "--of {name} is ambiguous: it may be {}",
            paths.join(" or ")
        ))
        .into());
    }
    Ok(found.iter().map(|record| record.file_id).collect())
}

fn not_found(name: &str, ids: &[u32], records: &[FileRecord]) -> anyhow::Error {
    const SHOWN: usize = 5;
    let known: Vec<String> = ids
        .iter()
        .take(SHOWN)
        .map(|id| {
            let path = played(*id, None, records).path;
            let record = records.iter().find(|record| record.file_id == *id);
            match record.and_then(FileRecord::labelled_namespace) {
                Some(namespace) => format!("{namespace} ({path})"),
                None => path,
            }
        })
        .collect();
    Usage(format!(
        "--of {name}: no reads or writes of such a file were recorded; most were of these: {}",
        visible(&known.join(", "))
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_run::{FileRole, PathState};

    fn record(file_id: u32, path: &str) -> FileRecord {
        FileRecord {
            file_id,
            path: path.into(),
            path_state: PathState::Known,
            device_major: 0,
            device_minor: 0,
            inode: 1,
            size_bytes: 0,
            role: FileRole::Other,
            namespace: None,
            member: None,
        }
    }

    #[test]
    fn one_more_file_is_one() {
        let file = |file_id: u32| PlayedFile {
            path: "/a\n/x".into(),
            ..played(file_id, None, &[])
        };
        let words = |files: u32| files_in_words(&(0..files).map(file).collect::<Vec<_>>());
        assert_eq!(words(1), r"/a\n/x");
        assert_eq!(words(2), r"/a\n/x and 1 more file");
        assert_eq!(words(3), r"/a\n/x and 2 more files");
    }

    #[test]
    fn files_are_found_by_path_name_content_and_id() {
        let holds = |namespace: &str, record: FileRecord| FileRecord {
            namespace: Some(namespace.into()),
            ..record
        };
        let records = [
            holds("shop.orders", record(1, "/a/x")),
            holds("shop.orders/a_1", record(2, "/b/x")),
            record(3, "/b/y"),
            record(4, "/b/y"),
            record(5, "/b/silent"),
        ];
        let find = |name: &str| find_file(name, &[1, 2, 3, 4, 9], &records).ok();
        assert_eq!(find("/a/x"), Some(vec![1]));
        assert_eq!(find("y"), Some(vec![3, 4]));
        assert_eq!(find("shop.orders"), Some(vec![1]));
        assert_eq!(find("shop.orders/a_1"), Some(vec![2]));
        assert_eq!(find("2"), Some(vec![2]));
        assert_eq!(find("9"), Some(vec![9]), "without a record");
        for wrong in ["x", "silent", "5", "7", "", "z", "shop"] {
            assert_eq!(find(wrong), None, "{wrong}");
        }
    }
}
