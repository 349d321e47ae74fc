//! What the disk under the data can do: measured now, measured earlier, or assumed from a typical disk.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{DiskAbility, Limitation, RunDirectory};

use super::subject::Subject;
use crate::args::{ExamineArgs, OutputArgs, SurveyArgs};
use crate::disk;
use crate::environment::Environment;
use crate::exit::{Interrupted, message_of};
use crate::layout::ScanDisk;
use crate::progress::Progress;
use crate::session::Session;

pub const PROBE_TIME: Duration = Duration::from_secs(10);
const PROBE_FILE_BYTES: u64 = 256 << 20;
/// The default folder for the runs of commands.
const RUNS: &str = "seekscope-runs";

/// Measures the disk for some seconds. Failures become limitations, except for a signal.
pub async fn probe(
    session: &mut Session,
    subject: &Subject,
    environment: &Environment,
    progress: Progress,
) -> Result<()> {
    let Some(folder) = probe_folder(session, subject) else {
        session.limit(Limitation {
            what: "the disk was not probed".into(),
            why: "there is no folder on the data's disk, outside of the data, that could be written to".into(),
            remedy: "run `seekscope disk DIR` on that disk and name its run with --disk-run".into(),
        });
        return Ok(());
    };
    let _step = progress.step("measuring the disk");
    let output = OutputArgs {
        json: false,
        quiet: true,
    };
    let mut args = SurveyArgs::within(folder, PROBE_TIME, output);
    args.place.size = Some(PROBE_FILE_BYTES);
    let arguments = session.document.arguments.clone();
    match disk::survey(&args, environment, arguments).await {
        Ok(survey) => {
            let run = survey.directory.path().to_path_buf();
            drop(survey);
            progress.say(format!(
                "The measurement of the disk is kept in {}",
                run.display()
            ));
            let (model, ..) = disk::load_model(&run)?;
            let ability = DiskAbility {
                model,
                measured: true,
                source: format!("measured during this run for {} s", PROBE_TIME.as_secs()),
                ..DiskAbility::default()
            };
            session.document.examination.get_or_insert_default().disk = Some(ability);
            Ok(())
        }
        Err(error) if error.is::<Interrupted>() => Err(error),
        Err(error) => {
            session.limit(Limitation {
                what: "the disk was not probed".into(),
                why: message_of(&error),
                remedy: "run `seekscope disk DIR` when the server is quiet, and name its run with --disk-run".into(),
            });
            Ok(())
        }
    }
}

/// Returns a folder on the data's disk outside of the database: the run's own, else one above the data.
fn probe_folder(session: &Session, subject: &Subject) -> Option<PathBuf> {
    let data = subject.data.as_deref()?;
    let device = data.metadata().ok()?.dev();
    let above = data.ancestors().skip(1);
    let candidates = std::iter::once(session.directory.path()).chain(above);
    let on_its_disk = |folder: &&Path| folder.metadata().is_ok_and(|m| m.dev() == device);
    candidates
        .filter(on_its_disk)
        .find(|folder| rustix::fs::access(*folder, rustix::fs::Access::WRITE_OK).is_ok())
        .map(Path::to_path_buf)
}

/// Records in the run what is known of the disk beforehand.
pub fn note(session: &mut Session, args: &ExamineArgs, subject: &Subject) -> Result<()> {
    let data = subject.data.as_deref();
    let (run, chosen) = match &args.disk_run {
        Some(run) => (Some(run.clone()), choose(Some(run), data.unwrap_or(run))?),
        // A run that nobody named may be in use or damaged, which is no reason to stop.
        None => {
            let found = newest_run(session)
                .and_then(|run| Some((choose(Some(&run), data.unwrap_or(&run)).ok()?, run)));
            match (found, data) {
                (Some((chosen, run)), _) => (Some(run), chosen),
                (None, Some(data)) => (None, choose(None, data)?),
                (None, None) => return Ok(()),
            }
        }
    };
    let source = match &run {
        Some(run) => source_of(run),
        None => chosen.model.disk.clone(),
    };
    session.document.examination.get_or_insert_default().disk = Some(DiskAbility {
        model: chosen.model,
        measured: chosen.measured,
        read_directly: chosen.read_directly,
        source,
        ..DiskAbility::default()
    });
    Ok(())
}

fn choose(run: Option<&PathBuf>, place: &Path) -> Result<ScanDisk> {
    ScanDisk::measured_or_typical(run.map(PathBuf::as_path), None, place)
}

/// Returns the disk for which scans are predicted while the server is watched; what it shows may change that
/// later.
pub fn scan_disk(session: &Session) -> Option<ScanDisk> {
    let disk = session.document.examination.as_ref()?.disk.as_ref()?;
    Some(ScanDisk {
        model: disk.model.clone(),
        device: session.document.device.clone(),
        measured: disk.measured,
        read_directly: disk.read_directly,
    })
}

/// Returns the newest run of `seekscope disk` on the data's disk without a throttle.
fn newest_run(session: &Session) -> Option<PathBuf> {
    let device = &session.document.device.as_ref()?.device;
    let folders = std::fs::read_dir(RUNS).ok()?.flatten();
    let measured = folders.filter_map(|entry| {
        let name = entry.file_name();
        name.to_str().filter(|name| name.starts_with("disk"))?;
        let path = entry.path();
        let document = RunDirectory::read_document(&path).ok()?;
        let measurement = document.disk.as_ref()?;
        let same = document
            .device
            .as_ref()
            .is_some_and(|d| d.device == *device);
        let usable = measurement.model.is_some() && !measurement.disk.is_emulated();
        (same && usable).then_some((document.started.realtime_ns, path))
    });
    measured.max().map(|(_, path)| path)
}

fn source_of(run: &Path) -> String {
    const DAY_NS: u64 = 24 * 3_600_000_000_000;
    let name = run.display();
    let now_ns = seekscope_run::ClockOffset::now().realtime_ns;
    match RunDirectory::read_document(run) {
        Ok(document) => match now_ns.saturating_sub(document.started.realtime_ns) / DAY_NS {
            0 => format!("{name}, of today"),
            1 => format!("{name}, of a day ago"),
            days => format!("{name}, of {days} days ago"),
        },
        Err(_) => name.to_string(),
    }
}
