//! `doctor FOLDER` of a server's diagnostic files (FTDC): turns their counters into a run without a trace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{ClockOffset, Disk, ExaminationRecord, Limitation, Outcome};
use seekscope_server::examination::diagnostic_files::{newest_realtime_ns, read_history};

use super::measurement::observed;
use crate::exit::Usage;
use crate::session::Session;

/// The most recent part, as a sick server's owner asks about that.
const HISTORY: Duration = Duration::from_secs(3_600);
/// Limits the points to one every two seconds.
const POINTS_MAX: usize = 1_800;
/// The sampler's name for these counters when it queries them itself.
const SOURCE: &str = "serverStatus";

/// Returns the folder with the files, if `path` is one or is a data directory that contains one.
pub fn find(path: &Path) -> Option<PathBuf> {
    let candidates = [path.to_path_buf(), path.join("diagnostic.data")];
    candidates.into_iter().find(|folder| has_metrics(folder))
}

fn has_metrics(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .any(|name| name.to_string_lossy().starts_with("metrics."))
}

/// Makes a run of the files.
pub fn run_of(folder: &Path, arguments: Vec<String>, out: Option<&Path>) -> Result<Session> {
    // Such a run uses wall-clock time and is dated to the end of the files: they may be older than this host's
    // start, or come from another host.
    let newest_ns = newest_realtime_ns(folder).map_err(|error| Usage(error.to_string()))?;
    let now_ns = newest_ns.unwrap_or_else(|| ClockOffset::now().realtime_ns);
    let clock = ClockOffset {
        monotonic_ns: now_ns,
        realtime_ns: now_ns,
    };
    let (facts, mut samples) = read_history(folder, HISTORY, POINTS_MAX, clock)
        .map_err(|error| Usage(error.to_string()))?;
    let mut session = Session::begin("doctor", arguments, out)?;
    session.document.started = clock;
    let times = || samples.iter().map(|sample| sample.t_ns);
    let activity = "its own work, by its diagnostic files".into();
    let mut phase = observed(activity, None, Disk::Plain);
    phase.started_ns = times().min().unwrap_or(now_ns);
    phase.ended_ns = times().max().unwrap_or(now_ns);
    for sample in &mut samples {
        sample.source = SOURCE.into();
    }
    session.directory.counter_writer()?.write(&samples)?;
    session.document.phases.push(phase);
    session.document.examination = Some(ExaminationRecord {
        ftdc: Some(facts),
        ..ExaminationRecord::default()
    });
    session.limit(Limitation {
        what: "only the server's counters are known: no trace, no layout, nothing of host and disk"
            .into(),
        why: "diagnostic files were given, no server".into(),
        remedy: "run `seekscope doctor URI` on the server's host".into(),
    });
    session.end(Outcome::Ok, None)?;
    session.document.ended_ns = Some(now_ns);
    session.save()?;
    Ok(session)
}
