//! `seekscope disk DIR`: the whole survey.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_disk::survey::{Profile, Survey, SurveyEnd, SurveyOptions};
use seekscope_disk::uring_is_available;
use seekscope_run::{EngineKind, Limitation};

use super::measurement::{self, Ended};
use super::place::Place;
use super::records::Records;
use crate::args::{ProfileName, SurveyArgs, SurveyEngine};
use crate::environment::Environment;
use crate::progress::Progress;
use crate::session::Session;

const BUDGET_QUICK: Duration = Duration::from_secs(90);
/// Part of the budget that filling the file may take.
const FILL_SHARE: f64 = 0.17;

/// Runs the command.
pub async fn run(
    args: &SurveyArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let place = Place::check(&args.directory, &args.place)?;
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
        rate_per_s_max: place.rate_per_s_max(),
        sustained: args.sustained_for,
        seed: args.place.seed,
    };
    progress.say(place.announcement(" and overwrites parts of it while measuring writes"));
    let profile = options.profile.name();
    let measure = move |session: &mut Session, place: Place, cancel: &AtomicBool| {
        if let Some(limitation) = limitation {
            session.limit(limitation);
        }
        survey(session, place, &options, progress, cancel)
    };
    measurement::run(&args.place, place, arguments, profile, environment, measure).await?;
    Ok(())
}

/// io_uring where this process may use it.
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
    place: Place,
    options: &SurveyOptions,
    progress: Progress,
    cancel: &AtomicBool,
) -> Result<Ended> {
    seekscope_disk::end_process_on_bus_error();
    let started = Instant::now();
    let until = options
        .budget
        .map(|budget| started + budget.mul_f64(FILL_SHARE));
    let mut measurement = session.document.disk.take().unwrap_or_default();
    let file = place.file(&mut measurement, until, progress, cancel)?;
    let filled_bytes = measurement.written_bytes;
    session.document.disk = Some(measurement);
    session.save()?;
    let mut survey = Survey::new(options, &file);
    let mut records = Records::new(&session.directory, &mut session.document, progress)?;
    let ended = survey.run(started, &mut records, cancel);
    if let Some(measurement) = &mut session.document.disk {
        measurement.written_bytes = filled_bytes + survey.written_bytes();
    }
    Ok(match ended? {
        SurveyEnd::Complete => Ended::Complete,
        SurveyEnd::Interrupted => Ended::Interrupted,
        SurveyEnd::HeldBack(why) => Ended::HeldBack(why),
    })
}
