//! `seekscope bench ycsb`: load and run, on one server or on several in turn.

mod expected;
mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use seekscope_client::Retries;
use seekscope_report::bench::FIGURES_OF_A_WORKLOAD;
use seekscope_run::units::format_count;
use seekscope_run::{BenchMeasurement, Limitation};
use seekscope_workload::ExpectedData;
use seekscope_workload::ownership::DataSet;
use seekscope_workload::ycsb::expected::YcsbExpected;
use seekscope_workload::ycsb::{ClientSlice, Edition, YcsbLoad, YcsbRun, YcsbSettings, rows};

use self::expected::AfterGaps;
use self::plan::{Letter, Part, Plan};
use super::ending::Demands;
use super::repeatable::operation_names;
use super::results::Show;
use super::rounds::{Repeated, Rounds, Stretch};
use super::sharding::{self, Expected, Sharding};
use super::stage::{Stage, StepDone, StepPlan};
use super::target::Target;
use super::{data, variants};
use crate::args::{YcsbArgs, YcsbPhase};
use crate::environment::Environment;
use crate::exit::Usage;

/// Name of the data set's entry in the database.
const DATA_SET: &str = "ycsb";
/// Settings that affect the contents of documents.
const OF_DOCUMENTS: [&str; 8] = [
    "table",
    "fieldcount",
    "fieldlength",
    "fieldorder",
    "values",
    "insertorder",
    "keyhash",
    "zeropadding",
];
/// Time limit for the other clients' loads, after this one is done.
const BARRIER_LIMIT: Duration = Duration::from_secs(600);

/// Runs the command.
pub async fn run(args: &YcsbArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    let plan = Plan::new(args)?;
    let mut stage = Stage::begin(&args.keep, arguments, measurement(args, &plan))?;
    stage.session.document.seed = Some(args.send.seed);
    stage.ends_with_primary = !args.send.allow_errors;
    for limitation in plan.limitations.clone() {
        stage.limit(limitation);
    }
    let mut bench = Ycsb::new(args, plan);
    let worked = bench.work(&mut stage, environment).await;
    let show = match args.ycsb_output {
        true => Show::YcsbLines,
        false => Show::Tables,
    };
    stage.end(worked, &bench.demands, &args.keep.output, show)
}

/// Returns the operations of a run; refuses a workload that cannot be loaded once and run many times.
pub fn operations(args: &YcsbArgs) -> Result<Vec<String>> {
    let letter = only_letter(&Plan::new(args)?)?;
    let run = YcsbRun::new(letter.settings, ClientSlice::default())?;
    Ok(operation_names(&run))
}

/// Loads the data for later runs.
pub async fn load_once(
    args: &YcsbArgs,
    stage: &mut Stage,
    target: &Target,
    name: &str,
) -> Result<()> {
    Ycsb::new(args, Plan::new(args)?)
        .load(stage, target, name)
        .await
}

/// Runs one stretch on loaded data.
pub async fn run_once(
    args: &YcsbArgs,
    stage: &mut Stage,
    target: &Target,
    stretch: Stretch,
) -> Result<StepDone> {
    let plan = Plan::new(args)?;
    let letter = only_letter(&plan)?;
    Ycsb::new(args, plan)
        .run_letter(stage, target, &letter, stretch)
        .await
}

fn only_letter(plan: &Plan) -> Result<Letter> {
    let letters = plan.parts.iter().filter_map(|part| match part {
        Part::Run(letter) => Some(letter.as_ref()),
        Part::Load(_) => None,
    });
    match letters.collect::<Vec<_>>().as_slice() {
        [only] => Ok((*only).clone()),
        _ => Err(Usage("one workload of YCSB is expected, such as ycsb:a".into()).into()),
    }
}

fn measurement(args: &YcsbArgs, plan: &Plan) -> BenchMeasurement {
    let letters = plan.parts.iter().filter_map(|part| match part {
        Part::Run(letter) => Some(letter.name.as_str()),
        Part::Load(_) => None,
    });
    let letters: Vec<&str> = letters.collect();
    let mut settings: BTreeMap<String, String> = plan
        .data
        .resolved()
        .into_iter()
        // Settings of single workloads, or of this client alone, are in the steps.
        .filter(|(name, _)| !name.ends_with("proportion") && *name != "requestdistribution")
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    settings.insert(
        "operationcount".into(),
        plan.operations.unwrap_or(0).to_string(),
    );
    settings.insert(
        "duration_s".into(),
        plan.duration.map_or(0.0, |d| d.as_secs_f64()).to_string(),
    );
    if let Some((name, values)) = &args.versus.vs_config {
        settings.insert(format!("server {name}"), values.join(","));
    }
    for (name, value) in &args.target.server_setting {
        settings.insert(format!("server {name}"), value.clone());
    }
    BenchMeasurement {
        workload: match letters.as_slice() {
            [] => "ycsb-load".into(),
            [only] if *only == "ycsb" => "ycsb".into(),
            [only] => format!("ycsb-{only}"),
            _ => "ycsb".into(),
        },
        edition: plan.edition.name().into(),
        settings,
        database: args.target.database.clone(),
        client_number: args.send.clients,
        sharding: plan.sharding.as_ref().map(Sharding::record),
        ..BenchMeasurement::default()
    }
}

/// The running command.
struct Ycsb<'a> {
    args: &'a YcsbArgs,
    plan: Plan,
    demands: Demands,
}

impl<'a> Ycsb<'a> {
    fn new(args: &'a YcsbArgs, plan: Plan) -> Self {
        let demands = Demands {
            allow_errors: args.send.allow_errors,
            ..Demands::default()
        };
        Self {
            args,
            plan,
            demands,
        }
    }

    async fn work(&mut self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        let (uri, target, versus) = (self.plan.uri.clone(), &self.args.target, &self.args.versus);
        let runs = self
            .plan
            .parts
            .iter()
            .filter(|part| matches!(part, Part::Run(_)));
        variants::say_if_too_few(stage, versus, runs.count() * FIGURES_OF_A_WORKLOAD);
        let sharding = self.plan.sharding.as_ref();
        let mut targets = variants::open(
            stage,
            uri.as_deref(),
            target,
            Some(versus),
            sharding,
            environment,
        )
        .await?;
        let worked = self.parts(stage, &mut targets).await;
        let (sharding, target) = (self.plan.sharding.as_ref(), &self.args.target);
        sharding::end(sharding, stage, &targets, target, DATA_SET, worked).await?;
        variants::close(stage, targets, target.keep).await
    }

    /// Loads and runs.
    async fn parts(&mut self, stage: &mut Stage, targets: &mut [Target]) -> Result<()> {
        let (target, versus) = (&self.args.target, &self.args.versus);
        if !self.args.phase.contains(&YcsbPhase::Load) {
            let (database, tables) = (&target.database, [self.plan.data.table.clone()]);
            let sharding = self.plan.sharding.as_ref();
            for target in &*targets {
                sharding::check_loaded(sharding, stage, target, database, &tables).await?;
            }
        }
        for part in self.plan.parts.clone() {
            match part {
                Part::Load(name) => {
                    for target in targets.iter().filter(|target| !target.shares_data) {
                        self.load(stage, target, name).await?;
                    }
                }
                Part::Run(letter) => {
                    let (send, duration) = (&self.args.send, self.plan.duration);
                    let rounds = Rounds::new(&letter.name, target, send, versus, duration);
                    let mut repeated = LetterRun {
                        ycsb: self,
                        letter: *letter,
                    };
                    let judgement = rounds.run(stage, targets, &mut repeated).await?;
                    self.demands.judgement.extend(judgement);
                }
            }
        }
        Ok(())
    }

    async fn load(&mut self, stage: &mut Stage, target: &Target, name: &str) -> Result<()> {
        let slice = self.slice();
        let mut settings = self.plan.data.clone();
        if slice.count > 1 {
            (settings.insert_start, settings.load_count) = slice.load(settings.record_count);
        }
        let database = self.args.target.database.clone();
        let clients = u32::try_from(slice.count).unwrap_or(1);
        let wanted = data_set(&settings);
        let sharding = self.plan.sharding.as_ref();
        let loaded = [rows::loaded(&settings)];
        let beginning = sharding::begin_load(
            sharding, stage, target, &database, &wanted, clients, &loaded,
        );
        beginning.await?;
        let load = YcsbLoad::new(&settings);
        let retries = Retries {
            count: settings.insert_retries,
            pause: settings.insert_retry_pause,
        };
        let sending = &mut self.plan.sending;
        let job = sending.load_job(sending.in_flight, retries);
        let plan = StepPlan {
            name: target.step_name(name, 1, 1),
            kind: "load",
            workload_name: "ycsb-load".into(),
            repetition: 1,
            expected: Some(settings.load_count.div_ceil(load.batch())),
            workload: Arc::new(load.clone()),
            database: database.clone(),
            collections: vec![settings.table.clone()],
            client: sending.client,
            job,
            arrivals: seekscope_run::Arrivals::Closed,
            warm_up: crate::args::WarmUpName::None,
            stop: None,
            keep_seconds: None,
        };
        let done = stage.step(target, plan).await?;
        let acknowledged = load.acknowledged();
        // The server may have done a part of a batch that it did not acknowledge as a whole.
        let in_doubt = done.ended.in_doubt + acknowledged.uncertain();
        let expected = YcsbExpected::after_load(&settings).with_acknowledged(acknowledged);
        data::verify_step(stage, target, &database, done.index, &[&expected], in_doubt).await?;
        data::ensure_complete(stage, &done)?;
        data::end_load(target, &database, DATA_SET).await?;
        if clients > 1 {
            let count = settings.record_count;
            data::await_documents(
                stage,
                target,
                &database,
                &settings.table,
                count,
                BARRIER_LIMIT,
            )
            .await?;
        }
        let loaded = [Expected {
            collection: settings.table.clone(),
            documents: Some(match clients {
                1 => settings.load_count,
                _ => settings.record_count,
            }),
        }];
        let sharding = self.plan.sharding.as_ref();
        sharding::verify_spread(sharding, stage, target, &database, name, &loaded, in_doubt).await
    }

    /// Runs and verifies one stretch of a workload.
    async fn run_letter(
        &mut self,
        stage: &mut Stage,
        target: &Target,
        letter: &Letter,
        stretch: Stretch,
    ) -> Result<StepDone> {
        let database = self.args.target.database.clone();
        let mut settings = letter.settings.clone();
        let found = stage
            .asking(data::find_loaded(target, &database, &data_set(&settings)))
            .await?;
        let has_grown = found.next_insert > settings.record_count;
        if has_grown {
            settings.first_insert = settings.first_insert.max(found.next_insert);
        }
        let counted_before = stage
            .asking(data::count(
                target,
                &database,
                &settings.table,
                settings.first_insert,
            ))
            .await?;
        if has_grown && inserts(&settings) {
            let inserted = counted_before.saturating_sub(found.records);
            stage.limit(inserted_before(&letter.name, target, inserted));
        }
        if counted_before < settings.first_insert && settings.reads_newest() {
            return Err(with_gaps(&database, counted_before, settings.first_insert).into());
        }
        // The values of the corrected edition's documents are derived from its seed.
        if let (Some(seed), Edition::Ycsb) = (stretch.seed, settings.edition) {
            settings.seed = seed;
        }
        let run = YcsbRun::new(settings.clone(), self.slice())?;
        let sending = &mut self.plan.sending;
        let (job, arrivals) = sending.job_of(&stretch, self.plan.operations, settings.seed);
        let plan = StepPlan {
            kind: stretch.kind(),
            name: stretch.name.clone(),
            workload_name: format!("ycsb-{}", letter.name),
            repetition: stretch.repetition,
            expected: None,
            workload: Arc::new(run.clone()),
            database: database.clone(),
            collections: vec![settings.table.clone()],
            client: sending.client,
            job,
            arrivals,
            warm_up: sending.warm_up,
            stop: None,
            keep_seconds: None,
        };
        let stepped = stage.step(target, stretch.watched(plan)).await;
        // Also for a step that was broken off: its keys are taken.
        let advanced = match run.highest_inserted() {
            Some(highest) => data::advance(target, &database, DATA_SET, highest + 1).await,
            None => Ok(()),
        };
        let done = stepped?;
        advanced?;
        let in_doubt = done.ended.in_doubt;
        let (whole, gaps);
        let expected: &dyn ExpectedData = if counted_before == settings.first_insert {
            whole = YcsbExpected::after_run(&run);
            &whole
        } else {
            let is_alone = self.slice().count == 1;
            gaps = AfterGaps::new(&settings, &run, is_alone.then_some(counted_before));
            &gaps
        };
        data::verify_step(stage, target, &database, done.index, &[expected], in_doubt).await?;
        Ok(done)
    }

    fn slice(&self) -> ClientSlice {
        let (index, count) = self.plan.sending.slice;
        ClientSlice::new(index.into(), count.into()).unwrap_or_default()
    }
}

/// A workload that can be run repeatedly.
struct LetterRun<'a, 'b> {
    ycsb: &'a mut Ycsb<'b>,
    letter: Letter,
}

impl Repeated for LetterRun<'_, '_> {
    async fn run(
        &mut self,
        stage: &mut Stage,
        target: &Target,
        stretch: Stretch,
    ) -> Result<StepDone> {
        self.ycsb
            .run_letter(stage, target, &self.letter, stretch)
            .await
    }
}

fn inserts(settings: &YcsbSettings) -> bool {
    let [_, _, insert, ..] = settings.proportions;
    insert > 0.0
}

/// Returns the settings that determine the documents.
fn data_set(settings: &YcsbSettings) -> DataSet {
    // YCSB's values are random: with another seed it is the same data set.
    let seed = match settings.edition {
        Edition::Ycsb => 0,
        Edition::Corrected => settings.seed,
    };
    let mut data_set = DataSet::new(
        DATA_SET,
        vec![settings.table.clone()],
        settings.edition.name(),
        settings.record_count,
        seed,
    );
    let of_documents = settings
        .resolved()
        .into_iter()
        .filter(|(name, _)| OF_DOCUMENTS.contains(name));
    data_set.settings = of_documents
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    data_set
}

/// Warns that workloads D and E have inserted: on grown data they are not the workloads of fresh data.
fn inserted_before(name: &str, target: &Target, inserted: u64) -> Limitation {
    let server = match target.variant.as_str() {
        "" => String::new(),
        variant => format!(" ({variant})"),
    };
    Limitation {
        what: format!(
            "workload {name} did not begin on fresh data{server}: {} records were inserted by earlier runs",
            format_count(inserted)
        ),
        why: "workloads D and E insert; YCSB would begin at the same keys again and fail on each; here \
              they go on behind the last"
            .into(),
        remedy: "load again for a run on fresh data".into(),
    }
}

/// Says why a workload that reads the newest records would ask for some that are not there.
fn with_gaps(database: &str, counted: u64, numbers: u64) -> Usage {
    Usage(format!(
        "the database {database} has {} of {} records: earlier runs of several clients, or one that was broken off, \
         left numbers without a record, and this workload reads the newest: load again",
        format_count(counted),
        format_count(numbers)
    ))
}
