//! `seekscope report`: a run shown again, from its directory alone.

use anyhow::Result;
use seekscope_run::{RunDirectory, RunDocument};

use crate::args::ReportArgs;
use crate::progress::Progress;
use crate::session::{Session, measured_nothing};
use crate::{bench, disk, doctor, layout, prefetch, reorder, replay, trace, tune};

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<()> {
    let (directory, mut document) = RunDirectory::open(&args.run)?;
    if document.command == "disk" {
        return show_disk(args, directory, document);
    }
    if document.command == "replay" {
        return replay::show(&Session::reopen(directory, document), &args.output);
    }
    if document.reorder.is_some() {
        let mut session = Session::reopen(directory, document);
        return reorder::show(&mut session, &args.output, Progress::new(args.output.quiet));
    }
    if document.prefetch.is_some() {
        let session = Session::reopen(directory, document);
        return prefetch::show_run(&session, &args.output, Progress::new(args.output.quiet));
    }
    if document.tune.is_some() {
        let mut session = Session::reopen(directory, document);
        return tune::show(&mut session, &args.output, Progress::new(args.output.quiet));
    }
    if document.bench.is_some() {
        let mut session = Session::reopen(directory, document);
        let results = bench::Results::derive(&mut session)?;
        let progress = Progress::new(args.output.quiet);
        return results.show(&session, &args.output, progress, bench::Show::Tables);
    }
    if document.layout.is_some() && document.examination.is_none() {
        let mut session = Session::reopen(directory, document);
        let results = layout::Results::derive(&mut session)?;
        return results.show(&session, &args.output, Progress::new(args.output.quiet));
    }
    if document.phases.is_empty() {
        return Err(measured_nothing(&args.run, &document).into());
    }
    if document.command == "trace" {
        let progress = Progress::new(args.output.quiet);
        return trace::show(&directory, &mut document, &args.output, progress);
    }
    doctor::show_run(Session::reopen(directory, document), &args.output)
}

fn show_disk(args: &ReportArgs, directory: RunDirectory, document: RunDocument) -> Result<()> {
    if document
        .disk
        .as_ref()
        .is_none_or(|disk| disk.steps.is_empty())
    {
        return Err(measured_nothing(&args.run, &document).into());
    }
    let mut session = Session::reopen(directory, document);
    let results = disk::Results::derive(&mut session)?;
    results.show(&session, &args.output, Progress::new(args.output.quiet))
}
