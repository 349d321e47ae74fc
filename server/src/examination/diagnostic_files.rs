//! Reads the server's own diagnostic files: its history, second by second, from before seekscope started.
//!
//! Counters get the names that they have in `serverStatus`, and are the same ones that are sampled from there,
//! so that history and present can be compared.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use seekscope_ftdc::{Chunk, Entry, entries};
use seekscope_run::examination::COUNTERS_OF_FTDC;
use seekscope_run::units::nanoseconds;
use seekscope_run::{ClockOffset, CounterSample, FtdcFacts, MemberRecord};

use crate::sampling::server_status;

/// Servers begin a new file at 10 MB, unless configured otherwise.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// A folder has 200 MB of them.
const FILES_MAX: usize = 1_000;
/// About 300 counters at some hundred moments are wanted; this bounds the memory.
const ROWS_MAX: usize = 250_000;
/// A clock that was set back leaves samples from the future behind.
const FUTURE_MAX_NS: u64 = 60_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// The reason why the history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DiagnosticFilesError {
    #[error("cannot read {path}: {source}; run seekscope as root or as the server's user")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path} holds no diagnostic files; the server writes them only while its parameter \
         diagnosticDataCollectionEnabled is true"
    )]
    NoFiles { path: PathBuf },
}

/// Returns where a server keeps its files, as it sees the path itself: the folder named by its parameter,
/// otherwise the usual folder below its data directory.
pub fn folder_of(record: &MemberRecord) -> Option<PathBuf> {
    let named = record.parameter("diagnosticDataCollectionDirectoryPath");
    match named.filter(|path| path.starts_with('/')) {
        Some(path) => Some(path.into()),
        None => Some(Path::new(record.target.dbpath.as_deref()?).join("diagnostic.data")),
    }
}

/// Reads the last `history` of a folder's files ([`folder_of`]), thinned out to at most `points_max` moments,
/// in time order. Their source is [`COUNTERS_OF_FTDC`]; times are converted to the monotonic clock by `clock`,
/// so anything older than the host's start is left out.
///
/// Reads one file at a time into memory, the newest first. Damaged chunks are counted and left out.
pub fn read_history(
    folder: &Path,
    history: Duration,
    points_max: usize,
    clock: ClockOffset,
) -> Result<(FtdcFacts, Vec<CounterSample>), DiagnosticFilesError> {
    let files = newest_first(folder)?;
    let mut taken = History::new(history, points_max, clock);
    let mut first_failure = None;
    let mut read = 0;
    for path in files {
        match read_whole(&path) {
            Ok(bytes) => {
                read += 1;
                if taken.add_file(&bytes) || taken.is_full() {
                    break;
                }
            }
            // Servers may delete old files meanwhile.
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                first_failure.get_or_insert(DiagnosticFilesError::Io { path, source });
            }
        }
    }
    match first_failure {
        Some(failure) if read == 0 => Err(failure),
        _ => Ok(taken.finish(folder, read)),
    }
}

/// Returns the wall-clock time of the newest sample, ns since 1970. For files that were copied from elsewhere
/// this is the end of the history, to be used in the `clock` that [`read_history`] takes as the present. `None`
/// if no file has an intact sample.
pub fn newest_realtime_ns(folder: &Path) -> Result<Option<u64>, DiagnosticFilesError> {
    let files = newest_first(folder)?;
    let newest = files.iter().find_map(|path| {
        let bytes = read_whole(path).ok()?;
        let chunks: Vec<&[u8]> = entries(&bytes)
            .filter_map(|entry| match entry {
                Ok(Entry::Metrics { data, .. }) => Some(data),
                _ => None,
            })
            .collect();
        let last_ms = |data: &&[u8]| {
            let chunk = Chunk::decode(data, |path| path == ["start"]).ok()?;
            chunk.series.first()?.values.last().copied()
        };
        let ms = chunks.iter().rev().find_map(last_ms)?;
        u64::try_from(ms).ok()?.checked_mul(NS_PER_MS)
    });
    Ok(newest)
}

/// Returns the files, the newest first. The interim file holds what is not yet in the others, whose names begin
/// with their date.
fn newest_first(folder: &Path) -> Result<Vec<PathBuf>, DiagnosticFilesError> {
    let failed = |source| DiagnosticFilesError::Io {
        path: folder.into(),
        source,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && name.starts_with("metrics.") && !name.ends_with(".temp") {
            names.push(name);
        }
    }
    names.sort_unstable();
    let newest = names.into_iter().rev().take(FILES_MAX);
    let files: Vec<PathBuf> = newest.map(|name| folder.join(name)).collect();
    if files.is_empty() {
        return Err(DiagnosticFilesError::NoFiles {
            path: folder.into(),
        });
    }
    Ok(files)
}

/// Reads a whole file. Growth beyond the limit while it is read is left for the next time.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(FILE_MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file without leaving a trace: not even the access time is written. A link or pipe that has
/// replaced it since the folder was listed is refused without waiting for it.
fn open(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    // NOATIME is granted only to the owner and to CAP_FOWNER (open(2)).
    let opened = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
        other => other,
    };
    let file = File::from(opened?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    Ok(file)
}

/// The history read so far.
struct History {
    clock: ClockOffset,
    /// Start of the history: wall clock, ns since 1970.
    from_ns: u64,
    /// One moment is taken from each stretch of this length.
    stride_ns: u64,
    /// Stretches that already have their moment.
    taken: HashSet<u64>,
    facts: FtdcFacts,
    rows: Vec<CounterSample>,
}

impl History {
    fn new(history: Duration, points_max: usize, clock: ClockOffset) -> Self {
        let history_ns = nanoseconds(history);
        let points = u64::try_from(points_max).unwrap_or(u64::MAX).max(1);
        Self {
            clock,
            from_ns: clock.realtime_ns.saturating_sub(history_ns),
            stride_ns: history_ns.div_ceil(points).max(1),
            taken: HashSet::new(),
            facts: FtdcFacts::default(),
            rows: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX
    }

    /// Adds a file. Returns whether it reaches back to the beginning of what is wanted.
    fn add_file(&mut self, bytes: &[u8]) -> bool {
        let from_ms = i64::try_from(self.from_ns / NS_PER_MS).unwrap_or(i64::MAX);
        let mut chunks = Vec::new();
        for entry in entries(bytes) {
            match entry {
                Ok(Entry::Metrics { started_ms, data }) => chunks.push((started_ms, data)),
                Ok(_) => {}
                Err(_) => self.facts.damaged_chunks += 1,
            }
        }
        for (index, (_, data)) in chunks.iter().enumerate() {
            // A chunk ends where the next one begins.
            let ends_ms = chunks.get(index + 1).map(|(started_ms, _)| *started_ms);
            if ends_ms.is_none_or(|ends_ms| ends_ms >= from_ms) && !self.is_full() {
                self.add_chunk(data);
            }
        }
        chunks.first().is_some_and(|(first, _)| *first <= from_ms)
    }

    fn add_chunk(&mut self, data: &[u8]) {
        let wanted = |path: &[&str]| path == ["start"] || counter_path(path).is_some();
        let Ok(chunk) = Chunk::decode(data, wanted) else {
            self.facts.damaged_chunks += 1;
            return;
        };
        let Some(starts) = chunk.series.iter().find(|series| series.path == ["start"]) else {
            self.facts.damaged_chunks += 1;
            return;
        };
        let moments: Vec<(usize, u64)> = starts
            .values
            .iter()
            .enumerate()
            .filter_map(|(index, start_ms)| Some((index, self.take(*start_ms)?)))
            .collect();
        for series in &chunk.series {
            let path: Vec<&str> = series.path.iter().map(String::as_str).collect();
            let Some(name) = counter_path(&path).map(|path| path.join(".")) else {
                continue;
            };
            let values = moments.iter().filter_map(|(index, t_ns)| {
                let value = *series.values.get(*index)?;
                Some((*t_ns, value as f64))
            });
            self.rows.extend(values.map(|(t_ns, value)| CounterSample {
                t_ns,
                source: COUNTERS_OF_FTDC.into(),
                name: name.clone(),
                value,
            }));
        }
    }

    /// Returns the moment on the monotonic clock, if it is wanted and its stretch has none yet.
    fn take(&mut self, start_ms: i64) -> Option<u64> {
        let at_ns = u64::try_from(start_ms).ok()?.checked_mul(NS_PER_MS)?;
        let since_ns = at_ns.checked_sub(self.from_ns)?;
        if at_ns > self.clock.realtime_ns.saturating_add(FUTURE_MAX_NS) {
            return None;
        }
        let t_ns = self
            .clock
            .monotonic_ns
            .checked_add(at_ns)?
            .checked_sub(self.clock.realtime_ns)?;
        if !self.taken.insert(since_ns / self.stride_ns) {
            return None;
        }
        let facts = &mut self.facts;
        facts.first_realtime_ns = match facts.first_realtime_ns {
            0 => at_ns,
            first => first.min(at_ns),
        };
        facts.last_realtime_ns = facts.last_realtime_ns.max(at_ns);
        facts.samples += 1;
        Some(t_ns)
    }

    fn finish(mut self, folder: &Path, files: u32) -> (FtdcFacts, Vec<CounterSample>) {
        self.facts.folder = folder.to_string_lossy().into_owned();
        self.facts.files = files;
        self.rows.sort_by_key(|row| row.t_ns);
        (self.facts, self.rows)
    }
}

/// Returns a metric's path below `serverStatus`, if it is one of the counters that are kept. From MongoDB 8.0
/// on, a member of a cluster puts the section into another one, named by its role.
fn counter_path<'a, 'b>(path: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let below = match path {
        ["serverStatus", below @ ..] => below,
        ["common" | "shard" | "router", "serverStatus", below @ ..] => below,
        _ => return None,
    };
    server_status::is_kept(below).then_some(below)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{DateTime, Document, doc};
    use seekscope_ftdc::writing;

    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;
    const CLOCK: ClockOffset = ClockOffset {
        monotonic_ns: 5_000 * 1_000_000_000,
        realtime_ns: 1_700_000_000_000 * NS_PER_MS,
    };

    /// Returns a sample from this many seconds ago.
    fn sample(ago_s: i64) -> Document {
        let start = DateTime::from_millis(NOW_MS - ago_s * 1_000);
        let status = doc! {
            "host": "db1", "opcounters": { "insert": 10_000 - ago_s }, "locks": { "x": 5 },
            "wiredTiger": { "cache": { "bytes currently in the cache": 7.0 } },
        };
        doc! { "start": start, "serverStatus": status, "systemMetrics": { "cpu": 1 }, "end": start }
    }

    /// Writes a file with a chunk for each range of seconds ago, the oldest first.
    fn write(folder: &Path, name: &str, chunks: &[(i64, i64)]) {
        let metadata = writing::bytes(&doc! { "_id": DateTime::now(), "type": 0, "doc": {} });
        let chunks = chunks.iter().map(|&(from_s, to_s)| {
            let samples: Vec<Document> = (to_s..=from_s).rev().map(sample).collect();
            writing::bytes(&writing::entry(&samples))
        });
        let file = [metadata].into_iter().chain(chunks).collect::<Vec<_>>();
        fs::write(folder.join(name), file.concat()).unwrap();
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "metrics.2023-11-14T20-00-00Z-00000", &[(9_000, 8_900)]);
        write(
            at,
            "metrics.2023-11-14T21-00-00Z-00000",
            &[(4_000, 3_701), (3_700, 3_401)],
        );
        write(
            at,
            "metrics.2023-11-14T22-00-00Z-00000",
            &[(3_400, 3_101), (310, 11)],
        );
        write(at, "metrics.interim", &[(10, 1)]);
        fs::write(at.join("metrics.interim.temp"), "x").unwrap();
        folder
    }

    #[test]
    fn the_last_hour() {
        let folder = folder();
        let hour = Duration::from_secs(3_600);
        let (facts, rows) = read_history(folder.path(), hour, 3_600, CLOCK).unwrap();
        // From 3600 to 3101 s and 310 to 1 s ago; the oldest file is not needed.
        assert_eq!((facts.files, facts.samples), (3, 500 + 310));
        assert_eq!(facts.damaged_chunks, 0);
        assert_eq!(facts.last_realtime_ns, CLOCK.realtime_ns - 1_000_000_000);
        assert_eq!(
            facts.first_realtime_ns,
            CLOCK.realtime_ns - 3_600_000_000_000
        );
        assert_eq!(rows.len(), 2 * 810, "locks, host and system are not kept");
        assert!(rows.is_sorted_by_key(|row| row.t_ns));
        let inserts = rows.iter().filter(|row| row.name == "opcounters.insert");
        let last = inserts.max_by_key(|row| row.t_ns).unwrap();
        assert_eq!((last.t_ns, last.value), (4_999 * 1_000_000_000, 9_999.0));
        assert!(rows.iter().all(|row| row.source == COUNTERS_OF_FTDC));
    }

    #[test]
    fn nobody_notices_the_reading() {
        let folder = folder();
        let path = folder.path().join("metrics.interim");
        // An old access time, which relatime would update.
        let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let times = fs::FileTimes::new().set_accessed(long_ago);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_times(times)
            .unwrap();
        assert!(!read_whole(&path).unwrap().is_empty());
        assert_eq!(fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
    }

    #[test]
    fn neither_pipes_nor_links_are_read() {
        let folder = folder();
        let pipe = folder.path().join("metrics.pipe");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, Mode::RUSR, 0).unwrap();
        let link = folder.path().join("metrics.link");
        std::os::unix::fs::symlink(folder.path().join("metrics.interim"), &link).unwrap();
        for path in [pipe.as_path(), &link, folder.path()] {
            assert!(read_whole(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn where_the_history_ends() {
        let folder = folder();
        let newest = || newest_realtime_ns(folder.path()).unwrap();
        let ago = |s: u64| Some(CLOCK.realtime_ns - s * 1_000_000_000);
        assert_eq!(newest(), ago(1));
        fs::write(folder.path().join("metrics.interim"), "damaged").unwrap();
        assert_eq!(newest(), ago(11), "the newest that is whole");
    }

    #[test]
    fn thinned_out() {
        let folder = folder();
        let (facts, rows) =
            read_history(folder.path(), Duration::from_secs(3_600), 60, CLOCK).unwrap();
        // One per minute: of the 60 minutes, 3600..3101 s ago touch 9, 310..1 s ago 6.
        assert_eq!(facts.samples, 15);
        assert_eq!(rows.len(), 30);
    }

    #[test]
    fn before_the_hosts_start() {
        let folder = folder();
        let clock = ClockOffset {
            monotonic_ns: 300 * 1_000_000_000,
            ..CLOCK
        };
        let day = Duration::from_secs(86_400);
        let (facts, rows) = read_history(folder.path(), day, 100_000, clock).unwrap();
        assert_eq!(facts.samples, 300);
        assert_eq!(rows.first().unwrap().t_ns, 0);
    }

    #[test]
    fn damage_is_counted() {
        let folder = folder();
        let path = folder.path().join("metrics.2023-11-14T22-00-00Z-00000");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle..middle + 40].fill(0xaa);
        bytes.truncate(bytes.len() - 1);
        fs::write(&path, bytes).unwrap();
        let hour = Duration::from_secs(3_600);
        let (facts, _) = read_history(folder.path(), hour, 3_600, CLOCK).unwrap();
        assert_eq!(facts.damaged_chunks, 2);
        assert_eq!(facts.samples, 200 + 10);
    }

    #[test]
    fn nothing_to_read() {
        let empty = tempfile::tempdir().unwrap();
        let read = |path: &Path| read_history(path, Duration::from_secs(60), 60, CLOCK);
        let error = read(empty.path()).unwrap_err();
        assert!(matches!(error, DiagnosticFilesError::NoFiles { .. }));
        let error = read(&empty.path().join("none")).unwrap_err();
        assert!(matches!(error, DiagnosticFilesError::Io { .. }));
    }

    #[test]
    fn where_they_are() {
        let mut record = MemberRecord::default();
        assert_eq!(folder_of(&record), None);
        record.target.dbpath = Some("/data/db".into());
        assert_eq!(folder_of(&record), Some("/data/db/diagnostic.data".into()));
        record.parameters.push(seekscope_run::NamedValue {
            name: "diagnosticDataCollectionDirectoryPath".into(),
            value: "/var/log/mongos.diagnostic.data".into(),
        });
        let named = Some("/var/log/mongos.diagnostic.data".into());
        assert_eq!(folder_of(&record), named);
    }

    #[test]
    fn the_sections_of_a_shard() {
        let kept = ["common", "serverStatus", "opcounters", "insert"];
        assert_eq!(counter_path(&kept), Some(&["opcounters", "insert"][..]));
        assert_eq!(counter_path(&["serverStatus", "locks", "x"]), None);
        assert_eq!(counter_path(&["serverStatus"]), None);
    }
}
