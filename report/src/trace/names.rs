//! Names files and times in tables and sentences.

use std::collections::{HashMap, HashSet};

use seekscope_pattern::{CacheCounts, TraceAnalysis, Transfers};
use seekscope_run::{DeviceFacts, FileRecord, PathState, labelled};

use crate::escape::shortened;

const SENTENCE_NAME_CHARS: usize = 80;

/// Names a disk by its number, with the name that the rest of the report calls it by where that is known: "vda (254:0)".
pub(crate) fn disk_name(device: Option<&DeviceFacts>, major: u32, minor: u32) -> String {
    let number = format!("{major}:{minor}");
    let device = device.filter(|device| device.counted_device() == number);
    match device.and_then(|device| device.disk.as_deref()) {
        Some(name) => format!("{name} ({number})"),
        None => number,
    }
}

/// The names of a trace's files. Those that would be shown alike have as much of their folders in front as tells them
/// apart.
pub(super) struct FileNames {
    /// The ends of these files' paths, by file id.
    ends: HashMap<u32, String>,
}

impl FileNames {
    pub(super) fn of(analysis: &TraceAnalysis) -> Self {
        Self::among(analysis.files.iter().map(|file| &file.file))
    }

    fn among<'a>(files: impl Iterator<Item = &'a FileRecord>) -> Self {
        let mut alike: HashMap<String, Vec<&FileRecord>> = HashMap::new();
        for file in files.filter(|file| file.path_state != PathState::Unresolved) {
            let name = file_name(file, file.name());
            alike.entry(name).or_default().push(file);
        }
        let ends = alike.values().flat_map(|files| told_apart(files));
        Self {
            ends: ends.collect(),
        }
    }

    /// Returns whether the name needs a folder.
    pub(super) fn has_folder(&self, file: &FileRecord) -> bool {
        self.ends.contains_key(&file.file_id)
    }

    /// Returns namespace and name, of several members' files with the member in front; marks a file that was deleted.
    pub(super) fn name(&self, file: &FileRecord) -> String {
        let end = self.ends.get(&file.file_id);
        file_name(file, end.map_or(file.name(), String::as_str))
    }

    /// Returns [`Self::name`], shortened for sentences.
    pub(super) fn short_name(&self, file: &FileRecord) -> String {
        shortened(&self.name(file), SENTENCE_NAME_CHARS)
    }
}

/// Returns the ends of the paths of files with the same name, as long as it takes for different paths to differ.
fn told_apart(files: &[&FileRecord]) -> Vec<(u32, String)> {
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    if paths.len() < 2 {
        return Vec::new();
    }
    let differ = |parts: &usize| {
        let ends: HashSet<&str> = paths.iter().map(|path| end_of(path, *parts)).collect();
        ends.len() == paths.len()
    };
    let longest = paths.iter().map(|path| path.split('/').count()).max();
    let longest = longest.unwrap_or(1);
    let parts = (2..longest).find(differ).unwrap_or(longest);
    let end = |file: &&FileRecord| (file.file_id, end_of(&file.path, parts).to_string());
    files.iter().map(end).collect()
}

/// Returns the last this many parts of a path.
fn end_of(path: &str, parts: usize) -> &str {
    let mut slashes = path.rmatch_indices('/').skip(parts.saturating_sub(1));
    let end = slashes.next().and_then(|(slash, _)| path.get(slash + 1..));
    end.unwrap_or(path)
}

fn file_name(file: &FileRecord, name: &str) -> String {
    let deleted = match file.path_state {
        PathState::Deleted => ", deleted",
        _ => "",
    };
    match file.labelled_namespace() {
        Some(namespace) => format!("{namespace} ({name}{deleted})"),
        None if deleted.is_empty() => labelled(file.member.as_deref(), name),
        None => format!("{} (deleted)", labelled(file.member.as_deref(), name)),
    }
}

/// Returns the number of reads for which the source of the bytes is known.
pub(super) fn known_outcomes(cache: &CacheCounts) -> u64 {
    cache.hits + cache.misses + cache.waited_for_others + cache.direct
}

/// Returns the share of reads that the page cache served; `None` where no outcome is known.
pub(super) fn hit_share(cache: &CacheCounts) -> Option<f64> {
    let known = known_outcomes(cache);
    (known > 0).then(|| cache.hits as f64 / known as f64)
}

/// Returns the sum of all latencies, ns; each of several parallel calls counts.
pub(super) fn time_in(transfers: &Transfers) -> u64 {
    transfers
        .latency_ns
        .mean
        .saturating_mul(transfers.latency_ns.count)
}

#[cfg(test)]
mod tests {
    use super::super::testing::file;
    use super::*;

    fn names(files: &[FileRecord]) -> Vec<String> {
        let names = FileNames::among(files.iter());
        files.iter().map(|file| names.name(file)).collect()
    }

    #[test]
    fn a_disk_has_the_name_that_the_rest_of_the_report_calls_it_by() {
        assert_eq!(disk_name(None, 254, 0), "254:0");
        let device = DeviceFacts {
            device: "254:1".into(),
            disk: Some("vda".into()),
            disk_device: Some("254:0".into()),
            ..DeviceFacts::default()
        };
        assert_eq!(disk_name(Some(&device), 254, 0), "vda (254:0)");
        assert_eq!(disk_name(Some(&device), 8, 0), "8:0");
    }

    #[test]
    fn files_with_the_same_name_have_as_much_of_their_folders_as_tells_them_apart() {
        let files = [
            file(1, "/data/a/sizeStorer.wt"),
            file(2, "/data/b/sizeStorer.wt"),
            file(3, "/data/a/collection-7.wt"),
        ];
        assert_eq!(
            names(&files),
            ["a/sizeStorer.wt", "b/sizeStorer.wt", "collection-7.wt"]
        );
        let deeper = [
            file(1, "/srv/a/db/WiredTiger.wt"),
            file(2, "/srv/b/db/WiredTiger.wt"),
            file(3, "/WiredTiger.wt"),
        ];
        assert_eq!(
            names(&deeper),
            ["a/db/WiredTiger.wt", "b/db/WiredTiger.wt", "/WiredTiger.wt"]
        );
    }

    #[test]
    fn what_already_differs_or_cannot_be_told_apart_has_its_name_alone() {
        let same = [file(1, "/data/a/x.wt"), file(2, "/data/a/x.wt")];
        assert_eq!(names(&same), ["x.wt", "x.wt"], "one path, two files");
        let of = |file_id, member: &str, path| FileRecord {
            member: Some(member.into()),
            namespace: Some("shop.orders".into()),
            ..file(file_id, path)
        };
        let members = [
            of(1, "shard0", "/data/a/x.wt"),
            of(2, "shard1", "/data/b/x.wt"),
        ];
        assert_eq!(
            names(&members),
            ["shard0/shop.orders (x.wt)", "shard1/shop.orders (x.wt)"]
        );
        let namespace = [
            of(1, "shard0", "/data/a/x.wt"),
            of(2, "shard0", "/data/b/x.wt"),
        ];
        assert_eq!(
            names(&namespace),
            ["shard0/shop.orders (a/x.wt)", "shard0/shop.orders (b/x.wt)"]
        );
        let unresolved = |file_id| FileRecord {
            path_state: PathState::Unresolved,
            ..file(file_id, "inode 17 on 254:1")
        };
        assert_eq!(
            names(&[unresolved(1), unresolved(2)]),
            ["inode 17 on 254:1", "inode 17 on 254:1"]
        );
    }
}
