//! `seekscope layout`: shows the order of the leaf pages of collections and indexes, and its cost to a scan.
//!
//! `data_location` finds the files, `measurement` walks them and fills in the records, `watch` follows
//! checkpoints; `results` interprets the records.

mod collection;
mod data_location;
pub mod gentle;
mod leaf_list;
mod measurement;
mod record;
mod results;
mod scan_disk;
mod since;
mod summary;
mod watch;

pub use collection::CollectionLayout;
pub use data_location::{DataLocation, OPEN_WHILE_RUNNING, find_file, seen_from_here};
pub use measurement::{file_record, named_file, write_leaves};
pub use record::Recorder;
pub use scan_disk::{ScanDisk, ScanDisks};
pub use since::{layout_of, leaves_by_file};
pub use summary::{FileSummary, LayoutSummary, PredictedScanS};

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use seekscope_layout::LayoutError;
use seekscope_run::HostFacts;

use crate::args::{LayoutArgs, OutputArgs};
use crate::environment::Environment;
use crate::exit::{BrokenOff, Interrupted, Usage};
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::Session;
use crate::{disk, ending};
use data_location::{DataLocations, OpenedData};
use measurement::Measurement;
use results::Results;
use since::Since;

/// Runs the command.
pub async fn run(
    mut args: LayoutArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    disk::measure_first(&mut args.disk, args.output, environment, &arguments).await?;
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let location = DataLocations::find(&args.place, args.pid, progress).await?;
    check_members(&args, &location)?;
    if args.leaves {
        let (printed, signal) = interruption
            .cancelling(move |stop| leaf_list::print(&args, &location, stop))
            .await;
        return interrupted_by(printed.context(BROKE_OFF)?, signal);
    }
    let (worked, signal) = interruption
        .cancelling(move |stop| measure(&args, location, arguments, progress, stop))
        .await;
    interrupted_by(worked.context(BROKE_OFF)?, signal)
}

const BROKE_OFF: &str = "the work broke off unexpectedly; please report this";

/// Replaces an interruption with one that names the signal.
fn interrupted_by(result: Result<()>, signal: Option<&'static str>) -> Result<()> {
    result.map_err(|error| match signal {
        Some(name) if is_interruption(&error) => Interrupted(name).into(),
        _ => error,
    })
}

fn is_interruption(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>() || matches!(error.downcast_ref(), Some(LayoutError::Interrupted))
}

/// Measures once the location is known; nothing is created before the data could be opened.
fn measure(
    args: &LayoutArgs,
    location: DataLocations,
    arguments: Vec<String>,
    progress: Progress,
    stop: &AtomicBool,
) -> Result<()> {
    let data = OpenedData::open(args, &location, stop)?;
    let disks = ScanDisks::choose(&args.disk, &data)?;
    let since = args.decay.since.as_deref().map(Since::load).transpose()?;
    let mut session = Session::begin("layout", arguments, args.out.as_deref())?;
    let host = HostFacts::read(Path::new("/"));
    let memory_bytes = host.memory_bytes;
    session.document.host = Some(host);
    session.document.device = disks.device();
    session.document.target = location.target;
    session.document.limitations = location.limitations;
    session.save()?;
    let measurement = Measurement::new(args, data, disks, since, memory_bytes, progress, stop);
    let measured = measurement.run(&mut session);
    let measured = measured.map_err(|error| match has_figures(&session) {
        _ if is_interruption(&error) => Interrupted("a signal").into(),
        true if !error.is::<BrokenOff>() => error.context(BrokenOff(BROKEN_OFF.into())),
        _ => error,
    });
    // A directory without data is shown as such; a failure that found nothing is not.
    let is_shown = measured.is_ok() || has_figures(&session);
    ending::end(&mut session, measured, progress, |session| match is_shown {
        true => show(session, &args.output, progress),
        false => Ok(()),
    })
}

/// Refuses what is of one server where there are several members.
fn check_members(args: &LayoutArgs, location: &DataLocations) -> Result<()> {
    let option = match (args.leaves, args.decay.watch) {
        _ if location.parts.len() == 1 => return Ok(()),
        (true, _) => "--leaves",
        (_, true) => "--watch",
        _ => return Ok(()),
    };
    let labels = location
        .parts
        .iter()
        .filter_map(|(label, _)| label.as_ref());
    let labels: Vec<&str> = labels.map(|label| label.label.as_str()).collect();
    Err(Usage(format!(
        "{option} is of one server, and several members are on this host: name the address or the data directory of one \
         ({})",
        labels.join(", ")
    ))
    .into())
}

/// Reason if some files could not be read, but others were.
const BROKEN_OFF: &str = "not all files could be read";

/// Prints tables or JSON of a run, and writes its page.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    Results::derive(session)?.show(session, args, progress)
}

fn has_figures(session: &Session) -> bool {
    let layout = session.document.layout.as_ref();
    layout.is_some_and(|layout| !layout.files.is_empty())
}
