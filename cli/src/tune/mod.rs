//! `seekscope tune`: finds better settings by trials, proves them in a duel, and restores the original ones at
//! the end.
//!
//! `knobs` decides what may be changed, `arena` where trials happen, `measurement` what is run; `tuner` is the
//! loop, which follows the decisions of [`seekscope_tune::session`]. `definition` stores a session so that it
//! can be resumed.

pub mod apply;
mod arena;
mod asked;
mod command_load;
mod definition;
mod init;
mod knobs;
mod local_arena;
mod measurement;
mod memory_watch;
mod metric;
mod partial;
mod plan;
mod progress_lines;
mod putting_back;
mod record;
mod restore;
mod results;
mod rolling;
mod server_arena;
mod tuner;
mod undoing;

pub use results::show;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_run::tune::{TrialPurpose, TuneRecord, TuneTrial};
use seekscope_run::{Limitation, Outcome, RunDirectory};
use seekscope_settings::exports;
use seekscope_tune::optimiser::Goal;
use seekscope_tune::session::{Next, Outline, Plan, Session as TuningSession};
use seekscope_workload::OwnedDatabase;

use self::arena::{Arena, Place};
use self::asked::Asked;
use self::definition::Definition;
use self::knobs::Choice;
use self::local_arena::LocalArena;
use self::measurement::Load;
use self::progress_lines::ProgressLines;
use self::putting_back::{PutBack, Resumed};
use self::server_arena::ServerArena;
use self::tuner::Tuner;
use crate::args::{TuneArgs, TuneSessionArgs, TuneVerb};
use crate::bench::{Stage, Target};
use crate::ending;
use crate::environment::Environment;
use crate::exit::Usage;
use crate::misspelt;
use crate::unrestored;

/// The target that stands for a private server.
const LOCAL: &str = "local";
/// Time limit for asking a server whether it is a mongos, where something else is refused otherwise.
const ASKING_LIMIT: Duration = Duration::from_secs(5);

/// Runs the command.
pub async fn run(args: TuneArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    match args.verb {
        Some(TuneVerb::Init(args)) => init::run(&args, environment).await,
        Some(TuneVerb::Show(args)) => results::show_run(&args),
        Some(TuneVerb::Apply(args)) => apply::run(&args, environment).await,
        None => match &args.session.restore {
            Some(run) => restore::run(run, &args.session, environment).await,
            None => tune(args.session, environment, arguments).await,
        },
    }
}

/// Runs a session, new or resumed. Its budget counts from here: connecting and loading are part of it.
async fn tune(
    args: TuneSessionArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let began = Instant::now();
    let target = args.target.as_deref();
    if let Some(word) = target.filter(|target| !target.contains(':'))
        && let Some(meant) = misspelt::meant("tune", word)
    {
        let text = format!("{word} is not a connection string; did you mean `{meant}`?");
        return Err(Usage(text).into());
    }
    let earlier = args
        .resume
        .as_deref()
        .map(|run| Earlier::read(run, &args))
        .transpose()?;
    let measured = earlier
        .as_ref()
        .map_or(&args.measured, |e| &e.definition.measured);
    let asked = Asked::new(measured)?;
    if earlier.is_none()
        && let Err(small) = refuse_small_budget(&args, &asked.load)
    {
        // No budget is large enough for a mongos.
        refuse_mongos(args.target.as_deref()).await?;
        return Err(small);
    }
    let mut stage = begin(&args, &asked, arguments)?;
    let mut record = TuneRecord::default();
    let working = whole(
        &args,
        environment,
        &mut stage,
        asked,
        earlier,
        began,
        &mut record,
    );
    let worked = working.await;
    end(stage, record, worked, &args)
}

/// Refuses a mongos; what does not answer in time is not known to be one.
async fn refuse_mongos(target: Option<&str>) -> Result<()> {
    let Some(uri) = target.filter(|target| *target != LOCAL) else {
        return Ok(());
    };
    match tokio::time::timeout(ASKING_LIMIT, Target::connect(uri, "", None)).await {
        Ok(Ok(target)) => server_arena::refuse_router(&target),
        _ => Ok(()),
    }
}

/// Refuses a budget in which runs of this length decide nothing, before anything is started.
fn refuse_small_budget(args: &TuneSessionArgs, load: &Load) -> Result<()> {
    let outline = Outline {
        baseline_pairs: args.search.baseline_pairs as usize,
        also: args.knobs.also.len(),
        trials: args.search.trials as usize,
    };
    let known = args.search.budget.zip(load.runs().length);
    match known.and_then(|(budget, run)| outline.refused(budget, run)) {
        Some(stopped) => Err(Usage(stopped.to_string()).into()),
        None => Ok(()),
    }
}

/// The state of an interrupted session.
struct Earlier {
    run: PathBuf,
    definition: Definition,
    trials: Vec<TuneTrial>,
}

impl Earlier {
    fn read(run: &Path, args: &TuneSessionArgs) -> Result<Self> {
        let definition = Definition::read(run)?.with_secrets([
            args.target.as_deref(),
            args.measured.command.as_deref(),
            args.measured.prepare.as_deref(),
            args.knobs.restart_command.as_deref(),
        ])?;
        let (directory, document) = RunDirectory::open(run)?;
        // A duel that was broken off has a verdict of what was fought.
        let is_decided = document.tune.is_some_and(|record| record.verdict.is_some());
        if is_decided && document.outcome == Outcome::Ok {
            let why = "is over: its duel was fought; begin a new one, with --begin-with if it is to go further";
            return Err(Usage(format!("{} {why}", run.display())).into());
        }
        Ok(Self {
            run: run.into(),
            definition,
            trials: directory.read_trials()?,
        })
    }

    /// Returns the time that its runs took.
    fn elapsed(&self) -> Duration {
        let seconds = self
            .trials
            .iter()
            .map(|trial| trial.prepare_s + trial.measure_s)
            .sum();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Returns whether its search has ended, and a run of its duel is next.
    fn is_at_duel(&self) -> Result<bool> {
        let mut session = session_of(&self.definition)?;
        for trial in &self.trials {
            session.record(trial.clone());
        }
        session.retry();
        let next = session.next(self.elapsed());
        Ok(matches!(next, Next::Run(request) if request.purpose == TrialPurpose::Duel))
    }

    /// Repeats its duel on the set's present primary: one duel is of one member. Its runs of before stay in the
    /// journal, without a block and so without a say.
    fn begin_duel_anew(&mut self, stage: &mut Stage, former: &str, now: &str) {
        let duel = self.trials.iter_mut();
        let duel = duel.filter(|trial| trial.purpose == TrialPurpose::Duel);
        duel.for_each(|trial| trial.block = None);
        stage.limit(Limitation {
            what: format!("the search was made on {former}, and the duel on {now}"),
            why: "the set has elected another primary since".into(),
            remedy: String::new(),
        });
    }
}

fn begin(args: &TuneSessionArgs, asked: &Asked, arguments: Vec<String>) -> Result<Stage> {
    let (out, quiet) = (args.out.as_deref(), args.output.quiet);
    Stage::begin_as("tune", out, quiet, arguments, |document| {
        document.seed = Some(args.search.seed);
        if let Load::Workload(workload) = &asked.load {
            document.bench = Some(workload.measurement());
        }
        document.tune = Some(TuneRecord::default());
    })
}

/// Runs the whole session, from finding the knobs to restoring them. `record` is filled in whatever happens.
async fn whole(
    args: &TuneSessionArgs,
    environment: &Environment,
    stage: &mut Stage,
    asked: Asked,
    earlier: Option<Earlier>,
    began: Instant,
    record: &mut TuneRecord,
) -> Result<()> {
    let mut place = find_place(args, environment, stage, earlier.as_ref()).await?;
    if let Some(target) = place.target() {
        stage.note_target(target)?;
    }
    let mut is_at_duel = false;
    let (definition, trials, took) = match earlier {
        Some(mut earlier) => {
            let took = earlier.elapsed();
            if let Some((former, now)) = place.other_than_before(&earlier.run) {
                is_at_duel = earlier.is_at_duel()?;
                if is_at_duel {
                    earlier.begin_duel_anew(stage, &former, &now);
                }
            }
            (earlier.definition, earlier.trials, took)
        }
        None => {
            let choice = knobs::choose(args, &place, &asked.load, stage, environment).await?;
            plan::tell(stage.progress, &choice);
            let definition = define(args, choice, asked.metric.goal);
            (definition, Vec::new(), Duration::ZERO)
        }
    };
    let session = session_of(&definition)?;
    let entries = definition.knob_file()?.knobs;
    record::fill(record, &definition, &asked, &entries);
    definition.save(stage.session.directory.path())?;
    // For `tune show` of a session that is running or was killed, which names what it measures.
    stage.session.document.tune = Some(record.clone());
    stage.session.save()?;
    let resumed = args
        .resume
        .as_deref()
        .map(|run| Resumed { run, is_at_duel });
    let readying = Instant::now();
    let ready = place
        .make_ready(stage, &asked.load, &entries, &definition, resumed)
        .await;
    let database = &definition.measured.database;
    let loads = matches!(place, Place::Server(_)) && definition.measured.workload.is_some();
    if loads && (ready.is_ok() || is_loaded(&place, database).await) {
        record.left_database = Some(database.clone());
        // A killed session leaves the documents, too.
        stage.session.document.tune = Some(record.clone());
        stage.session.save()?;
    }
    ready?;
    let mut tuner = Tuner {
        session,
        progress_lines: ProgressLines {
            figure: asked.metric.figure.clone(),
            budget: definition.plan.budget,
            baseline: definition.plan.space.default_configuration().0,
        },
        arena: Arena {
            place,
            prepare: definition.measured.prepare.clone(),
            entries,
        },
        load: asked.load,
        metric: asked.metric,
        constraints: asked.constraints,
        ledger: record.ledger,
        journal: stage.session.directory.trial_journal()?,
        earlier: took,
        began,
        readying: readying.elapsed(),
    };
    // From here on, one line per trial is enough.
    stage.progress = stage.progress.without_step_lines();
    let worked = match tuner.take(trials) {
        Ok(()) => tuner.work(stage).await,
        taken => taken,
    };
    finish(tuner, stage, &definition, record, worked).await
}

fn session_of(definition: &Definition) -> Result<TuningSession> {
    let session = TuningSession::new(definition.plan.clone());
    session.map_err(|error| Usage(error.to_string()).into())
}

/// Returns whether the server has documents of ours, and no others, in this database. Only such a one may be dropped.
async fn is_loaded(place: &Place<'_>, database: &str) -> bool {
    let Some(Ok(server)) = place.target().map(Target::server) else {
        return false;
    };
    let owned = OwnedDatabase::open(server, database).await;
    owned.is_ok_and(|owned| !owned.data_sets().is_empty())
}

/// Returns the place of the trials: that of the earlier session, if there is one.
async fn find_place<'a>(
    args: &TuneSessionArgs,
    environment: &'a Environment,
    stage: &Stage,
    earlier: Option<&Earlier>,
) -> Result<Place<'a>> {
    let (target, local, measured, restarts) = match earlier.map(|earlier| &earlier.definition) {
        Some(was) => (
            &was.target,
            &was.local,
            &was.measured,
            (was.restart(), was.allow_stepdown),
        ),
        None => (
            &args.target,
            &args.local,
            &args.measured,
            (
                server_arena::restart(
                    args.knobs.config_file.as_ref(),
                    args.knobs.restart_command.as_ref(),
                ),
                args.knobs.allow_stepdown,
            ),
        ),
    };
    let fresh = measured.fresh_data;
    Ok(match target.as_deref() {
        Some(LOCAL) => {
            let local = LocalArena::start(stage, local, fresh, environment).await?;
            Place::Local(Box::new(local))
        }
        Some(uri) => {
            let locks = unrestored::lock_folder(&environment.lease_folder)?;
            let server = ServerArena::connect(stage, uri, args, restarts, fresh, &locks).await?;
            Place::Server(Box::new(server))
        }
        None => Place::Nowhere(None),
    })
}

/// Restores what was changed, whatever happened, and draws the conclusion.
async fn finish(
    mut tuner: Tuner<'_>,
    stage: &Stage,
    definition: &Definition,
    record: &mut TuneRecord,
    worked: Result<()>,
) -> Result<()> {
    record.ledger.think_s = tuner.ledger.think_s;
    record.ledger.total_s = tuner.elapsed().as_secs_f64();
    // First, because the conclusion takes a while, in which a second signal would leave settings changed.
    let entries = std::mem::take(&mut tuner.arena.entries);
    let closed = tuner.arena.close(stage).await;
    tuner.session.conclude(record);
    record.ledger.prepare_s += tuner.readying.as_secs_f64();
    record.exports = exports(
        &entries,
        &definition.configured,
        &tuner.progress_lines.baseline,
        &record.recommended,
    );
    match closed {
        Ok(put_back) => {
            note_put_back(record, put_back);
            worked
        }
        // The first error is the cause.
        Err(error) => worked.and(Err(error)),
    }
}

/// Records how putting settings back has ended.
fn note_put_back(record: &mut TuneRecord, put_back: PutBack) {
    record.restored = put_back.is_complete();
    record.left_to_others = put_back == PutBack::ButForOthers;
}

/// Returns the session's definition for storage.
fn define(args: &TuneSessionArgs, choice: Choice, goal: Goal) -> Definition {
    let knobs = choice.file().to_toml();
    let plan = Plan {
        space: choice.space,
        goal,
        seed: args.search.seed,
        presets: choice.presets,
        also: choice.also,
        trials: args.search.trials as usize,
        baseline_pairs: args.search.baseline_pairs as usize,
        duel_pairs: args.search.pairs as usize,
        budget: args.search.budget,
    };
    let mut definition = Definition::new(args.target.as_deref(), &args.measured, &args.local, plan);
    definition.config_file.clone_from(&args.knobs.config_file);
    definition
        .restart_command
        .clone_from(&args.knobs.restart_command);
    definition.allow_stepdown = args.knobs.allow_stepdown;
    definition.left_out = choice.left_out;
    definition.cautions = choice.cautions;
    definition.configured = choice.configured;
    definition.knobs = knobs;
    definition
}

/// Ends the run; its records are complete whatever happened.
fn end(
    mut stage: Stage,
    record: TuneRecord,
    worked: Result<()>,
    args: &TuneSessionArgs,
) -> Result<()> {
    let progress = stage.progress;
    let not_restored = || restore::not_restored(stage.session.directory.path());
    let worked = match (record.restored, worked) {
        (Some(false), Ok(())) => Err(not_restored()),
        (Some(false), Err(error)) => {
            progress.say(not_restored().to_string());
            Err(error)
        }
        (_, worked) => worked,
    };
    stage.session.document.tune = Some(record);
    ending::end(&mut stage.session, worked, progress, |session| {
        show(session, &args.output, progress)
    })
}
