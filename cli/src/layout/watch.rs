//! `--watch`: follows each new checkpoint of a running server.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_layout::decay::{LeafChanges, from_snapshots};
use seekscope_layout::{DataDirectory, LayoutError, WalkedFile};
use seekscope_report::layout::moment_line;
use seekscope_run::{DataState, LayoutFile, LayoutMoment, monotonic_ns};
use seekscope_wiredtiger::{Checkpoint, Leaf};

use super::measurement::{Measurement, note_failure, walk_options, write_leaves};
use crate::environment;
use crate::exit::BrokenOff;
use crate::output;
use crate::session::Session;

/// How soon a signal is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// How often to look whether the server still runs.
const LOOK_FOR_SERVER: Duration = Duration::from_millis(500);
/// How long a server may take to be back after a restart.
const BACK_LIMIT: Duration = Duration::from_secs(5);
/// Number of checkpoints shown in the course of a file.
const COURSE: usize = 24;

/// Longest time between two checkpoints of a server that writes, with its default settings and some of patience, s.
const CHECKPOINT_S: f64 = 120.0;

/// One watched file.
struct Watched {
    file: String,
    /// Snapshots at the first checkpoint that was seen and at the latest.
    first: Snapshot,
    latest: Snapshot,
    /// Sequential shares so far.
    shares: Vec<f64>,
}

struct Snapshot {
    leaves: Vec<Leaf>,
    /// Unix time; 0 if not recorded.
    time_s: u64,
    order: u64,
    t_ns: u64,
}

/// The server that was running when the watch began.
struct WatchedServer {
    looked: Instant,
    /// When it was first seen to be gone, unless it is back.
    gone: Option<Instant>,
}

impl WatchedServer {
    fn now() -> Self {
        Self {
            looked: Instant::now(),
            gone: None,
        }
    }

    /// Looks for it now and then.
    fn look(&mut self, directory: &DataDirectory) {
        if self.looked.elapsed() >= LOOK_FOR_SERVER {
            let now = Instant::now();
            self.looked = now;
            let gone = self.gone.or(Some(now));
            self.gone = gone.filter(|_| !directory.has_server());
        }
    }

    /// Returns when it ended, if it has been gone for too long to be back after a restart, or if nobody waits for
    /// that any more.
    fn ended(&self, is_over: bool) -> Option<Instant> {
        let is_final = |gone: &Instant| is_over || gone.elapsed() >= BACK_LIMIT;
        self.gone.filter(is_final)
    }
}

impl Snapshot {
    fn of(walked: WalkedFile, t_ns: u64) -> Self {
        let checkpoint = walked.checkpoint.as_ref();
        Self {
            time_s: checkpoint.map_or(0, |c| c.time_s),
            order: checkpoint.map_or(0, |c| c.order),
            leaves: walked.tree.leaves,
            t_ns,
        }
    }

    /// Returns the time between snapshots, s: by the server's clock, else by ours.
    fn seconds_since(&self, first: &Self) -> f64 {
        match (first.time_s, self.time_s) {
            (1.., 1..) => self.time_s.saturating_sub(first.time_s) as f64,
            _ => self.t_ns.saturating_sub(first.t_ns) as f64 / 1e9,
        }
    }
}

/// Follows the files of the directory at `path`, whose first walks were just made, until the time is up or a
/// signal comes: both are a regular end.
///
/// # Errors
/// The server that was running has ended ([`BrokenOff`]; what was seen until then is kept), or the run could not be
/// written.
pub fn follow(
    measurement: &Measurement<'_>,
    session: &mut Session,
    path: &Path,
    files: Vec<String>,
    mut first: HashMap<u32, WalkedFile>,
) -> Result<()> {
    let started = Instant::now();
    let t_ns = monotonic_ns();
    if !is_live(session) {
        let text = "No server seems to have this open; waiting for its checkpoints anyway.";
        measurement.progress.say(text);
    }
    let mut watched = HashMap::new();
    for (file_id, file) in (1u32..).zip(files) {
        let Some(walked) = first.remove(&file_id) else {
            continue;
        };
        let mut entry = Watched {
            file,
            first: Snapshot::of(walked.clone(), t_ns),
            latest: Snapshot::of(walked, t_ns),
            shares: Vec::new(),
        };
        if let Some(record) = record_of(session, file_id) {
            let moment = moment_of(record, t_ns, 0);
            note(measurement, session, &mut entry, moment, started)?;
        }
        watched.insert(file_id, entry);
    }
    session.save()?;
    let result = each_checkpoint(measurement, session, path, &mut watched, started);
    match result {
        Err(error) if matches!(error.downcast_ref(), Some(LayoutError::Interrupted)) => {}
        Err(error) if error.is::<BrokenOff>() => {
            finish(session, &watched)?;
            return Err(error);
        }
        Err(error) => note_failure(&mut session.document, "the watch broke off", &error),
        Ok(()) => {}
    }
    finish(session, &watched)
}

fn each_checkpoint(
    measurement: &Measurement<'_>,
    session: &mut Session,
    path: &Path,
    watched: &mut HashMap<u32, Watched>,
    started: Instant,
) -> Result<()> {
    let duration = measurement.args.decay.duration;
    let mut server = is_live(session).then(WatchedServer::now);
    let mut directory = DataDirectory::open(path, measurement.stop)?;
    // A checkpoint may have come between the first walk and the opening.
    let mut changed = true;
    loop {
        let left = duration.map(|time| time.saturating_sub(started.elapsed()));
        let has_ended = || {
            server.as_mut().is_some_and(|server| {
                server.look(&directory);
                server.ended(false).is_some()
            })
        };
        if !sleep(measurement, left, has_ended) {
            return Ok(());
        }
        let is_over = duration.is_some_and(|time| started.elapsed() >= time);
        if let Some(ended) = server.as_ref().and_then(|server| server.ended(is_over)) {
            let after = ended.saturating_duration_since(started);
            return Err(BrokenOff::ended_early("the server", after, duration).into());
        }
        changed |= directory.refresh(measurement.stop)?;
        if changed {
            look_at_all(measurement, session, &directory, watched, started)?;
            session.save()?;
        }
        changed = false;
        if duration.is_some_and(|time| started.elapsed() >= time) {
            return Ok(());
        }
    }
}

fn look_at_all(
    measurement: &Measurement<'_>,
    session: &mut Session,
    directory: &DataDirectory,
    watched: &mut HashMap<u32, Watched>,
    started: Instant,
) -> Result<()> {
    let t_ns = monotonic_ns();
    let mut ids: Vec<u32> = watched.keys().copied().collect();
    ids.sort_unstable();
    for file_id in ids {
        if let Some(entry) = watched.get_mut(&file_id) {
            look_again(
                measurement,
                session,
                directory,
                file_id,
                entry,
                t_ns,
                started,
            )?;
        }
    }
    Ok(())
}

/// Sleeps until the next look or until the server has ended; returns false if a signal came.
fn sleep(
    measurement: &Measurement<'_>,
    left: Option<Duration>,
    mut has_ended: impl FnMut() -> bool,
) -> bool {
    let every = measurement.args.decay.every.max(SLEEP_MAX);
    let until = Instant::now() + left.map_or(every, |left| left.min(every));
    loop {
        if measurement.stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || has_ended() {
            return true;
        }
        std::thread::sleep(left.min(SLEEP_MAX));
    }
}

/// Walks a file if it has a new checkpoint.
fn look_again(
    measurement: &Measurement<'_>,
    session: &mut Session,
    directory: &DataDirectory,
    file_id: u32,
    entry: &mut Watched,
    t_ns: u64,
    started: Instant,
) -> Result<()> {
    // The file was dropped meanwhile: what was seen of it is kept.
    let Ok(table) = directory.find(&entry.file) else {
        return Ok(());
    };
    let newest = table
        .config
        .as_ref()
        .ok()
        .and_then(|c| c.newest_checkpoint());
    if newest.is_none_or(|newest: &Checkpoint| newest.order == entry.latest.order) {
        return Ok(());
    }
    let options = walk_options(measurement.args, measurement.stop, true);
    let walked = match directory.walk(table, &options) {
        Ok(walked) => walked,
        Err(LayoutError::Interrupted) => return Err(LayoutError::Interrupted.into()),
        Err(error) => {
            note_failure(
                &mut session.document,
                "a checkpoint could not be read",
                &error.into(),
            );
            return Ok(());
        }
    };
    let Some(record) = record_of(session, file_id) else {
        return Ok(());
    };
    let mut record = record.clone();
    record.not_measured = None;
    let path = directory.path().join(&entry.file);
    measurement.recorder.fill(&mut record, &walked, &path);
    let snapshot = Snapshot::of(walked, t_ns);
    let moved = LeafChanges::between(&entry.latest.leaves, &snapshot.leaves).new_places();
    entry.latest = snapshot;
    let moment = moment_of(&record, t_ns, moved);
    let layout = session.document.layout.get_or_insert_default();
    if let Some(old) = layout.files.iter_mut().find(|f| f.file_id == file_id) {
        *old = record;
    }
    note(measurement, session, entry, moment, started)
}

fn is_live(session: &Session) -> bool {
    let layout = session.document.layout.as_ref();
    layout.is_some_and(|layout| layout.state == DataState::Live)
}

fn record_of(session: &Session, file_id: u32) -> Option<&LayoutFile> {
    let layout = session.document.layout.as_ref()?;
    layout.files.iter().find(|file| file.file_id == file_id)
}

fn moment_of(file: &LayoutFile, t_ns: u64, moved_leaf_pages: u64) -> LayoutMoment {
    let order = file.order.clone().unwrap_or_default();
    LayoutMoment {
        t_ns,
        file_id: file.file_id,
        checkpoint: file.checkpoint.clone(),
        leaf_pages: file.leaf_pages,
        file_bytes: file.file_bytes,
        free_bytes: file.free_bytes,
        contiguous_share: order.contiguous_share,
        sequential_share: order.sequential_share,
        seeks: order.seeks,
        score: order.score,
        moved_leaf_pages,
    }
}

/// Records a moment and prints it: a line on stdout, or on stderr if stdout is for JSON.
fn note(
    measurement: &Measurement<'_>,
    session: &mut Session,
    entry: &mut Watched,
    moment: LayoutMoment,
    started: Instant,
) -> Result<()> {
    entry.shares.push(moment.sequential_share);
    let from = entry.shares.len().saturating_sub(COURSE);
    let course = course(&entry.shares[from..], environment::has_unicode());
    let said = record_of(session, moment.file_id)
        .map(|file| moment_line(file, &moment, started.elapsed().as_secs_f64(), &course));
    let layout = session.document.layout.get_or_insert_default();
    layout.history.push(moment);
    let Some(line) = said else { return Ok(()) };
    if measurement.args.output.json {
        measurement.progress.say(line);
        Ok(())
    } else {
        output::print(&format!("{line}\n"))
    }
}

/// Returns a character for each share, 0 to 1: eighths, or digits of tenths.
fn course(shares: &[f64], unicode: bool) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const TENTHS: [char; 10] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    let steps: &[char] = if unicode { &EIGHTHS } else { &TENTHS };
    let step = |share: &f64| {
        let upto = (1..steps.len()).take_while(|n| *share * steps.len() as f64 >= *n as f64);
        steps[upto.count()]
    };
    shares.iter().map(step).collect()
}

/// Records the observed decay, and the leaves as they are now.
fn finish(session: &mut Session, watched: &HashMap<u32, Watched>) -> Result<()> {
    let layout = session.document.layout.get_or_insert_default();
    for file in &mut layout.files {
        let (Some(entry), Some(order)) = (watched.get(&file.file_id), &file.order) else {
            continue;
        };
        let changes = LeafChanges::between(&entry.first.leaves, &entry.latest.leaves);
        let elapsed_s = entry.latest.seconds_since(&entry.first);
        // A server with anything to write makes a checkpoint each minute: what was older when the watch began had
        // not changed until then.
        let watched_s = entry.latest.t_ns.saturating_sub(entry.first.t_ns) as f64 / 1e9;
        let elapsed_s = match elapsed_s > watched_s + CHECKPOINT_S {
            true => watched_s.max(1.0),
            false => elapsed_s,
        };
        if let Some(seen) = from_snapshots(order.contiguous_share, &changes, elapsed_s) {
            file.decay = Some(seen);
        }
    }
    let mut ids: Vec<(&u32, &Watched)> = watched.iter().collect();
    ids.sort_unstable_by_key(|(file_id, _)| **file_id);
    let mut writer = session.directory.leaf_writer()?;
    for (file_id, entry) in ids {
        write_leaves(&mut writer, *file_id, &entry.latest.leaves)?;
    }
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_course_falls_as_order_is_lost() {
        assert_eq!(course(&[1.0, 0.6, 0.05, 0.0], true), "█▅▁▁");
        assert_eq!(course(&[1.0, 0.6, 0.05], false), "960");
        assert_eq!(course(&[f64::NAN, -1.0, 7.0], false), "009");
    }
}
