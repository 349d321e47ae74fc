//! `seekscope prefetch`: reads ahead of a scan, in disk order.
//!
//! `target` finds server, directory and file; `for_sync` follows the copies of an initial sync; `content`
//! describes the results.

mod content;
mod for_sync;
mod target;

use std::cell::RefCell;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use seekscope_layout::typical_disks;
use seekscope_prefetch::{Control, Prefetch, Request, Status};
use seekscope_report::page::html::report;
use seekscope_run::units::format_bytes;
use seekscope_run::{
    DeviceModel, HostFacts, Limitation, PrefetchRecord, PrefetchSummary, RunDocument,
};
use seekscope_server::{ProcFs, ProcessIdentity};

use crate::args::{OutputArgs, PrefetchArgs};
use crate::disk::load_model;
use crate::ending;
use crate::exit::{CommandFailed, Elsewhere, Interrupted, Usage};
use crate::interruption::Interruption;
use crate::output::{self, RunOutput};
use crate::progress::{Progress, Step};
use crate::session::Session;
use crate::trace::StartedCommand;
use for_sync::SyncWatch;
use target::{Target, TargetFile};

const BROKE_OFF: &str = "the work broke off unexpectedly; please report this";

/// Runs the command.
pub async fn run(args: PrefetchArgs, arguments: Vec<String>) -> Result<()> {
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let model = model(&args)?;
    let target = Target::find(&args, progress).await?;
    let task = match (&args.for_sync, &args.name) {
        (Some(member), _) => Task::Sync(SyncWatch::begin(&target, member).await?),
        (None, name) => {
            let name = name.clone().unwrap_or_default();
            let file = target.file(&name)?;
            Task::Scan { name, file }
        }
    };
    // Before anything is created: a command that cannot be started should leave nothing behind.
    let command = args.command.as_deref().map(StartedCommand::start);
    let command = command.transpose()?;
    let mut session = Session::begin("prefetch", arguments, args.out.as_deref())?;
    session.document.host = Some(HostFacts::read(std::path::Path::new("/")));
    session.document.device.clone_from(&target.device);
    session.document.target.clone_from(&target.facts);
    session.document.limitations.clone_from(&target.limitations);
    session.save()?;
    let output = args.output;
    let (worked, signal) = interruption
        .cancelling(move |stop| {
            let mut work = Work {
                server: Watch::new(target.pid),
                args,
                session,
                command,
                progress,
                target,
                model,
            };
            let done = match task {
                Task::Scan { name, file } => work.ahead_of_scan(&name, file, stop),
                Task::Sync(sync) => work.ahead_of_sync(&sync, stop).map(|()| None),
            };
            (work.session, done)
        })
        .await;
    let (session, done) = worked.context(BROKE_OFF)?;
    finish(session, output, progress, done, signal)
}

/// What is read ahead of.
enum Task {
    /// Scans of one collection or index, by the name that was typed.
    Scan {
        name: String,
        file: TargetFile,
    },
    Sync(SyncWatch),
}

/// Returns the disk's model; `None` if the disk is to be tested.
fn model(args: &PrefetchArgs) -> Result<Option<DeviceModel>> {
    if let Some(run) = &args.disk.disk_run {
        return Ok(Some(load_model(run)?.0));
    }
    let Some(name) = args.disk.typical.map(|typical| typical.name()) else {
        return Ok(None);
    };
    let typical = typical_disks::by_name(name);
    let typical = typical.ok_or_else(|| Usage(format!("there is no typical disk {name}")))?;
    Ok(Some(typical.model))
}

/// Looks now and then whether the server's process still runs.
struct Watch {
    process: Option<ProcessIdentity>,
    looked: Instant,
    is_gone: bool,
}

impl Watch {
    /// Tells of the process no more than this often: what is asked is asked each few milliseconds.
    const EVERY: Duration = Duration::from_millis(250);

    fn new(pid: Option<u32>) -> Self {
        Self {
            process: pid.and_then(|pid| ProcFs::host().identity(pid).ok()),
            looked: Instant::now(),
            is_gone: false,
        }
    }

    /// Returns whether the process has ended. False where it is not known which it is.
    fn sees_its_end(&mut self) -> bool {
        if let Some(process) = &self.process
            && self.looked.elapsed() > Self::EVERY
        {
            self.looked = Instant::now();
            self.is_gone |= !ProcFs::host().is_alive(process);
        }
        self.is_gone
    }

    /// Returns what to say of a server that has ended.
    fn told(&self) -> Option<String> {
        let process = self.process.as_ref().filter(|_| self.is_gone)?;
        Some(format!("the server's process ({}) ended", process.pid))
    }
}

/// State needed while the prefetch runs.
struct Work {
    args: PrefetchArgs,
    session: Session,
    command: Option<StartedCommand>,
    progress: Progress,
    target: Target,
    /// The disk; `None` if it is to be tried.
    model: Option<DeviceModel>,
    server: Watch,
}

/// The scans of one file that are read ahead of, and when they are over.
struct Scans<'a> {
    /// What the file is called.
    name: &'a str,
    file: TargetFile,
    /// Called every few milliseconds; true ends it.
    has_ended: &'a mut dyn FnMut() -> bool,
    idle: Option<Duration>,
    duration: Option<Duration>,
    /// Puts what is known so far where the document has it.
    keep: &'a mut dyn FnMut(&mut RunDocument, PrefetchRecord),
}

impl Work {
    /// Reads ahead of scans of one file to the end; returns how the command ended, if there is one.
    fn ahead_of_scan(
        &mut self,
        name: &str,
        file: TargetFile,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>> {
        let has_command = self.command.is_some();
        let scans = Scans {
            name,
            file,
            has_ended: &mut || false,
            idle: (!has_command).then_some(self.args.pace.idle),
            duration: self.args.pace.duration,
            keep: &mut |document, record| document.prefetch = Some(record),
        };
        self.read_ahead(scans, stop)?;
        match (self.server.told(), has_command) {
            (Some(why), false) => {
                return Err(Elsewhere(format!("no more scans of {name}: {why}")).into());
            }
            (Some(why), true) => self.session.limit(Limitation {
                what: "nothing was read ahead to the end of the scan".into(),
                why,
                remedy: String::new(),
            }),
            (None, _) => {}
        }
        Ok(self.wait_for_command(stop))
    }

    /// Reads ahead of the scans of one file until they, the command or the server have ended.
    fn read_ahead(&mut self, scans: Scans<'_>, stop: &AtomicBool) -> Result<()> {
        let prefetch = {
            let _step = self.progress.step("looking at the tree and the disk");
            Prefetch::prepare(self.request(&scans), stop)?
        };
        if let Some(shared) = &scans.file.shared {
            self.session.limit(shared.clone());
        }
        for limitation in &prefetch.limitations {
            self.session.limit(limitation.clone());
        }
        let meanwhile = content::Meanwhile {
            tries_disk: prefetch.tries_disk_meanwhile(),
            attaches_tracer: prefetch.is_attaching(),
        };
        self.progress
            .say(content::announcement(&prefetch.record, meanwhile));
        (scans.keep)(&mut self.session.document, prefetch.record.clone());
        self.session.save()?;
        let step = match prefetch.record.cannot_help.is_empty() {
            true => self.progress.step("reading ahead"),
            false => self.progress.step("leaving the scan alone"),
        };
        let has_command = self.command.is_some();
        let command = RefCell::new(self.command.as_mut());
        let (mut refused, server) = (None, &mut self.server);
        let (progress, mut attaches) = (self.progress, meanwhile.attaches_tracer);
        let mut begin = || {
            let begun = command.borrow().as_ref().map(|c| c.go_on());
            refused = begun.and_then(Result::err);
        };
        let finished = prefetch.run(Control {
            begin: has_command.then_some(&mut begin),
            has_ended: &mut || {
                let mut command = command.borrow_mut();
                let has_ended = |c: &mut &mut StartedCommand| c.ended().is_some();
                let is_over = command.as_mut().is_some_and(has_ended);
                is_over || (scans.has_ended)() || server.sees_its_end()
            },
            idle: scans.idle,
            duration: scans.duration,
            progress: &mut |status| {
                if attaches && !status.is_attaching {
                    attaches = false;
                    progress.say(content::followed(status.pace));
                }
                note(&step, status);
            },
            stop,
        })?;
        drop(step);
        refused.map_or(Ok(()), Err)?;
        for limitation in finished.limitations {
            self.session.limit(limitation);
        }
        (scans.keep)(&mut self.session.document, finished.record);
        Ok(())
    }

    fn request(&self, scans: &Scans<'_>) -> Request {
        let (args, target) = (&self.args, &self.target);
        Request {
            directory: target.directory.clone(),
            table: scans.file.path.clone(),
            named: scans.name.into(),
            pid: target.pid,
            window_bytes: args.pace.window,
            disk_measured: args.disk.disk_run.is_some(),
            model: self.model.clone(),
            depth: args.disk.depth,
            trace: !args.pace.no_trace,
            guard: !args.pace.no_guard,
            measure_gain: !args.pace.no_gain,
        }
    }

    /// Waits for the command, which goes on alone if prefetch ended first.
    fn wait_for_command(&mut self, stop: &AtomicBool) -> Option<ExitStatus> {
        let command = self.command.as_mut()?;
        loop {
            if let Some(status) = command.ended() {
                return Some(status);
            }
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                command.end();
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn note(step: &Step, status: &Status) {
    step.note(format!(
        "page {} of {}, {} read, {} ahead of the scan",
        status.position,
        status.leaves,
        format_bytes(status.bytes_read),
        format_bytes(status.held_bytes)
    ));
}

/// Ends the run and shows it; a run that broke off has no figures worth showing.
fn finish(
    mut session: Session,
    args: OutputArgs,
    progress: Progress,
    done: Result<Option<ExitStatus>>,
    signal: Option<&'static str>,
) -> Result<()> {
    session.document.summary = serde_json::to_value(summary(&session.document))?;
    let is_done = done.is_ok();
    let worked = done.and_then(|status| match (signal, status) {
        (Some(signal), _) => Err(Interrupted(signal).into()),
        (None, Some(status)) if !status.success() => Err(CommandFailed(status).into()),
        _ => Ok(()),
    });
    ending::end(&mut session, worked, progress, |session| match is_done {
        true => show(session, &args, progress),
        false => Ok(()),
    })
}

fn summary(document: &RunDocument) -> Option<PrefetchSummary> {
    let of_sync = document.prefetch_for_sync.clone();
    let of_file = document
        .prefetch
        .clone()
        .map(|record| PrefetchSummary::File(record.into()));
    of_sync.map(PrefetchSummary::Sync).or(of_file)
}

/// Writes the page of a finished run, and prints text or JSON.
pub fn show(session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    let document = &session.document;
    let summary = summary(document);
    let saved = summary.as_ref().map_or(Ok(()), |summary| {
        session.save_page(&report(document, content::page(document, summary)))
    });
    let text = |width| {
        let summary = summary.as_ref();
        Ok(summary.map_or_else(String::new, |all| content::text(document, all, width)))
    };
    let json = |run_dir: &str| output::print_json(&RunOutput::of("prefetch", document, run_dir));
    ending::print(&session.directory, saved, args, progress, json, text)
}
