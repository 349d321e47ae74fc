//! `seekscope prefetch`: reads ahead of a scan, in disk order.
//!
//! `target` finds server, directory and file; `content` describes the results.

mod content;
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
use seekscope_run::{DeviceModel, HostFacts, Limitation};
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
use target::Target;

const BROKE_OFF: &str = "the work broke off unexpectedly; please report this";

/// Runs the command.
pub async fn run(args: PrefetchArgs, arguments: Vec<String>) -> Result<()> {
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let model = model(&args)?;
    let target = Target::find(&args, progress).await?;
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
                args,
                session,
                command,
                progress,
            };
            let done = work.ahead(target, model, stop);
            (work.session, done)
        })
        .await;
    let (session, done) = worked.context(BROKE_OFF)?;
    finish(session, output, progress, done, signal)
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
}

impl Work {
    /// Reads ahead to the end; returns how the command ended, if there is one.
    fn ahead(
        &mut self,
        target: Target,
        model: Option<DeviceModel>,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>> {
        let prefetch = {
            let _step = self.progress.step("looking at the tree and the disk");
            Prefetch::prepare(self.request(&target, model), stop)?
        };
        for limitation in &prefetch.limitations {
            self.session.limit(limitation.clone());
        }
        let meanwhile = content::Meanwhile {
            tries_disk: prefetch.tries_disk_meanwhile(),
            attaches_tracer: prefetch.is_attaching(),
        };
        self.progress
            .say(content::announcement(&prefetch.record, meanwhile));
        self.session.document.prefetch = Some(prefetch.record.clone());
        self.session.save()?;
        let step = match prefetch.record.cannot_help.is_empty() {
            true => self.progress.step("reading ahead"),
            false => self.progress.step("leaving the scan alone"),
        };
        let command = RefCell::new(self.command.as_mut());
        let mut refused = None;
        let mut server = Watch::new(target.pid);
        let (progress, mut attaches) = (self.progress, meanwhile.attaches_tracer);
        let mut begin = || {
            let begun = command.borrow().as_ref().map(|c| c.go_on());
            refused = begun.and_then(Result::err);
        };
        let finished = prefetch.run(Control {
            begin: self.args.command.is_some().then_some(&mut begin),
            has_ended: &mut || {
                let mut command = command.borrow_mut();
                let has_ended = |c: &mut &mut StartedCommand| c.ended().is_some();
                command.as_mut().is_some_and(has_ended) || server.sees_its_end()
            },
            idle: self.args.command.is_none().then_some(self.args.pace.idle),
            duration: self.args.pace.duration,
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
        self.session.document.prefetch = Some(finished.record);
        match (server.told(), &self.command) {
            (Some(why), None) => {
                let namespace = &self.args.name;
                return Err(Elsewhere(format!("no more scans of {namespace}: {why}")).into());
            }
            (Some(why), Some(_)) => self.session.limit(Limitation {
                what: "nothing was read ahead to the end of the scan".into(),
                why,
                remedy: String::new(),
            }),
            (None, _) => {}
        }
        Ok(self.wait_for_command(stop))
    }

    fn request(&self, target: &Target, model: Option<DeviceModel>) -> Request {
        let args = &self.args;
        Request {
            directory: target.directory.clone(),
            table: target.file.clone(),
            named: args.name.clone(),
            pid: target.pid,
            window_bytes: args.pace.window,
            disk_measured: args.disk.disk_run.is_some(),
            model,
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
    session.document.summary = serde_json::to_value(&session.document.prefetch)?;
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

/// Writes the page of a finished run, and prints text or JSON.
pub fn show(session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    let (document, directory) = (&session.document, &session.directory);
    if let Some(record) = &document.prefetch {
        directory.save_report(&report(document, content::page(document, record)))?;
    }
    let text = |width| {
        let record = document.prefetch.as_ref();
        Ok(record.map_or_else(String::new, |record| content::text(document, record, width)))
    };
    let json = |run_dir: &str| output::print_json(&RunOutput::of("prefetch", document, run_dir));
    ending::print(directory, args, progress, json, text)
}
