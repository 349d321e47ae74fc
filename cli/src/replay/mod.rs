//! `seekscope replay`: plays a recorded I/O pattern on another file or disk.

mod content;
mod prediction;
mod records;
mod selection;
pub mod summary;
mod target;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_disk::DiskError;
use seekscope_disk::replay::{Caching, Ended, Loop, Plan, PlayOptions, play};
use seekscope_report::page::html::report;
use seekscope_run::RunDirectory;

use crate::args::{LoopName, OutputArgs, ReplayArgs, Speed};
use crate::disk::{LIMITS_BESIDE_DATABASE, held_back};
use crate::ending;
use crate::exit::{BrokenOff, Interrupted, Usage};
use crate::interruption::Interruption;
use crate::output::{self, DiskRunOutput};
use crate::progress::Progress;
use crate::session::Session;
use prediction::Predictor;
use records::Records;
use selection::Selection;
use summary::{EndKind, ReplaySummary};
use target::Target;

/// Runs the command.
pub async fn run(args: &ReplayArgs, arguments: Vec<String>) -> Result<()> {
    let predictor = args.model.as_deref().map(Predictor::load).transpose()?;
    if args.pacing == LoopName::Open && args.speed == Speed::Max {
        return Err(
            Usage("--loop open requires start times, and --speed max has none".into()).into(),
        );
    }
    let selection = Selection::read(args)?;
    let target = Target::check(args, selection.regions.total_bytes())?;
    let plan = selection.plan(target.bytes(), target.may_be_written())?;
    target.check_direct(caching(args), &plan)?;
    let progress = Progress::new(args.output.quiet);
    progress.say(target.announcement());
    let interruption = Interruption::listen();
    let mut session = Session::begin("replay", arguments, args.out.as_deref())?;
    session.document.seed = Some(args.seed);
    target.describe(&mut session);
    session.save()?;
    let replay = Replay {
        caching: caching(args),
        options: options(args),
        recording: selection.about,
        files: selection.files,
        notes: selection.notes,
        predictor,
        target,
        plan,
        progress,
    };
    let run = session.directory.path().to_path_buf();
    let work = move |cancel: &AtomicBool| {
        let ended = replay.play(&mut session, cancel);
        (session, ended)
    };
    let (worked, signal) = interruption.cancelling(work).await;
    let (session, ended) = match worked {
        Ok(worked) => worked,
        Err(panic) => {
            let (directory, document) = RunDirectory::open(&run)?;
            let error = anyhow::anyhow!(
                "the replay thread ended unexpectedly ({panic}); please report this"
            );
            (Session::reopen(directory, document), Err(error))
        }
    };
    if signal.is_none() {
        interruption.end_at_once();
    }
    finish(session, args, progress, ended, signal)
}

fn caching(args: &ReplayArgs) -> Caching {
    match (args.direct, args.buffered) {
        (true, _) => Caching::Direct,
        (_, true) => Caching::Buffered,
        _ => Caching::AsRecorded,
    }
}

fn options(args: &ReplayArgs) -> PlayOptions {
    PlayOptions {
        speed: args.speed.factor(),
        pacing: match args.pacing {
            LoopName::Closed => Loop::Closed,
            LoopName::Open => Loop::Open,
        },
        time_limit: args.time_limit,
        limits: args.next_to_database.then_some(LIMITS_BESIDE_DATABASE),
        seed: args.seed,
    }
}

/// All that is needed to play.
struct Replay {
    caching: Caching,
    options: PlayOptions,
    recording: String,
    files: Vec<selection::PlayedFile>,
    notes: Vec<String>,
    predictor: Option<Predictor>,
    target: Target,
    plan: Plan,
    progress: Progress,
}

impl Replay {
    /// Creates the target, plays, and stores the figures in the session, however the replay ends.
    fn play(mut self, session: &mut Session, cancel: &AtomicBool) -> Result<Ended> {
        let (file, target) =
            self.target
                .prepare(self.caching, &mut self.plan, self.progress, cancel)?;
        let plan = &self.plan;
        let speed = self.options.speed;
        let bar = self
            .progress
            .counted("playing, operations", plan.facts.operations);
        let mut records = Records::new(session, bar)?;
        let (outcome, ended) = play(
            plan,
            &file,
            &self.options,
            &mut |second| records.second(second),
            cancel,
        )?;
        let kept = records.finish();
        // After an interruption, don't make the user wait for a simulation.
        let wanted = matches!(ended, Ended::Complete | Ended::TimeLimit);
        let predictor = self.predictor.filter(|_| wanted);
        let predict = |predictor: Predictor| predictor.predict(plan, target.bytes, speed);
        let summary = ReplaySummary {
            recording: self.recording,
            files: self.files,
            speed,
            pacing: match self.options.pacing {
                Loop::Closed => "closed".into(),
                Loop::Open => "open".into(),
            },
            plan: plan.facts,
            ended: match &ended {
                Ended::Complete => EndKind::Complete,
                Ended::TimeLimit => EndKind::TimeLimit,
                Ended::Interrupted => EndKind::Interrupted,
                Ended::HeldBack(_) => EndKind::HeldBack,
                Ended::Failed(_) => EndKind::Failed,
            },
            outcome,
            prediction: predictor.map(predict),
            target,
            held_to_per_s: self
                .options
                .limits
                .as_ref()
                .map(|limits| limits.requests_per_s),
            notes: self.notes,
        };
        session.document.summary = serde_json::to_value(summary)?;
        kept?;
        Ok(ended)
    }
}

fn finish(
    mut session: Session,
    args: &ReplayArgs,
    progress: Progress,
    ended: Result<Ended>,
    signal: Option<&'static str>,
) -> Result<()> {
    let interrupted = || anyhow::Error::from(Interrupted(signal.unwrap_or("a signal")));
    let worked = match ended {
        Ok(Ended::Complete | Ended::TimeLimit) => Ok(()),
        Ok(Ended::Interrupted) => Err(interrupted()),
        Ok(Ended::HeldBack(pressure)) => Err(BrokenOff(held_back(pressure)).into()),
        Ok(Ended::Failed(error)) => Err(error.into()),
        Err(error) if matches!(error.downcast_ref(), Some(DiskError::Interrupted)) => {
            Err(interrupted())
        }
        Err(error) => Err(error),
    };
    ending::end(&mut session, worked, progress, |session| {
        show(session, &args.output, progress)
    })
}

/// Writes the page of a run's records, and prints tables or JSON.
pub fn show(session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    let document = &session.document;
    let summary = ReplaySummary::of(document)?;
    let directory = &session.directory;
    let page = content::page(document, &summary, &directory.latency_histograms()?);
    let saved = session.save_page(&report(document, page));
    let json = |run_dir: &str| {
        output::print_json(&DiskRunOutput::with_summary(
            "replay", document, run_dir, &summary,
        ))
    };
    let text = |width| Ok(content::text(document, &summary, width));
    ending::print(directory, saved, args, progress, json, text)
}
