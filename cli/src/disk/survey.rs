//! `seekscope disk DIR`: runs the whole survey.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_disk::survey::{EXTRA_BYTES, Profile, Survey, SurveyEnd, SurveyOptions};
use seekscope_disk::uring_is_available;
use seekscope_run::units::format_bytes;
use seekscope_run::{EngineKind, Limitation};

use super::measurement::{self, Ended};
use super::records::Records;
use super::target::DiskTarget;
use crate::args::{ProfileName, SurveyArgs, SurveyEngine};
use crate::environment::Environment;
use crate::exit::Usage;
use crate::progress::Progress;
use crate::session::Session;

/// Time for a tenth of a second per question, and for the file.
const BUDGET_MIN: Duration = Duration::from_secs(10);
/// Room for 128 requests of every size.
const FILE_BYTES_MIN: u64 = 16 << 20;
const BUDGET_QUICK: Duration = Duration::from_secs(90);
/// Share of the budget that filling the file may take.
const FILL_SHARE: f64 = 0.17;

/// Runs the command. Returns the session.
pub async fn run(
    args: &SurveyArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<Session> {
    let target = DiskTarget::check(&args.directory, &args.place, EXTRA_BYTES)?;
    check(args, &target)?;
    let progress = Progress::new(args.place.output.quiet);
    let budget = args
        .budget
        .or((args.profile == ProfileName::Quick).then_some(BUDGET_QUICK));
    let (engine, limitation) = engine(args.engine);
    let options = SurveyOptions {
        profile: match args.profile {
            ProfileName::Quick => Profile::Quick,
            ProfileName::Full => Profile::Full,
            ProfileName::Sustained => Profile::Sustained,
        },
        budget,
        engine,
        buffered: args.buffered,
        limits: target.limits(),
        sustained: args.sustained_for,
        seed: args.place.seed,
    };
    progress.say(target.announcement(
        ", two more for journal writes (128 MiB, and 512 MiB at most at a time), and for some 16 s \
         of a quick survey overwrites parts of them as fast as the disk takes it",
    ));
    let profile = options.profile.name();
    let measure = move |session: &mut Session, target: DiskTarget, cancel: &AtomicBool| {
        if let Some(limitation) = limitation {
            session.limit(limitation);
        }
        survey(session, target, &options, progress, cancel)
    };
    measurement::run(
        &args.place,
        target,
        arguments,
        profile,
        environment,
        measure,
    )
    .await
}

/// Refuses what a survey cannot measure, before anything is created.
fn check(args: &SurveyArgs, target: &DiskTarget) -> Result<()> {
    if target.file_bytes() < FILE_BYTES_MIN {
        let why = format!(
            "a file of {} is too small for a survey, which needs {}; `seekscope disk run` measures single jobs",
            format_bytes(target.file_bytes()),
            format_bytes(FILE_BYTES_MIN)
        );
        return Err(Usage(why).into());
    }
    match args.budget {
        Some(budget) if budget < BUDGET_MIN => {
            let why = format!(
                "--budget must be at least {BUDGET_MIN:?}: there are some 58 questions to ask"
            );
            Err(Usage(why).into())
        }
        _ => Ok(()),
    }
}

/// Chooses io_uring if this process may use it.
fn engine(asked: Option<SurveyEngine>) -> (EngineKind, Option<Limitation>) {
    match (asked, uring_is_available()) {
        (Some(SurveyEngine::Sync), _) => (EngineKind::Sync, None),
        (Some(SurveyEngine::Uring), _) | (None, Ok(())) => (EngineKind::Uring, None),
        (None, Err(error)) => {
            let limitation = Limitation {
                what: "reads were made by one thread per request in flight, which costs more CPU time than rings".into(),
                why: error.to_string(),
                remedy: "sysctl -w kernel.io_uring_disabled=0, or in a container a seccomp profile that permits io_uring".into(),
            };
            (EngineKind::Sync, Some(limitation))
        }
    }
}

fn survey(
    session: &mut Session,
    target: DiskTarget,
    options: &SurveyOptions,
    progress: Progress,
    cancel: &AtomicBool,
) -> Result<Ended> {
    seekscope_disk::end_process_on_bus_error();
    let started = Instant::now();
    let until = options
        .budget
        .map(|budget| started + budget.mul_f64(FILL_SHARE));
    let file = target.file(session, until, !options.buffered, progress, cancel)?;
    let mut survey = Survey::new(options, &file);
    let mut records = Records::new(&session.directory, &mut session.document, progress)?;
    let ended = survey.run(started, &mut records, cancel);
    Ok(match ended? {
        SurveyEnd::Complete => Ended::Complete,
        SurveyEnd::Interrupted => Ended::Interrupted,
        SurveyEnd::HeldBack(pressure) => Ended::HeldBack(pressure),
    })
}
