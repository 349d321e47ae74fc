//! `seekscope bench sysbench`: sysbench-mongodb's load and transactions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use seekscope_client::{EndReason, Retries, Workload};
use seekscope_report::bench::FIGURES_OF_A_WORKLOAD;
use seekscope_run::{Arrivals, BenchMeasurement};
use seekscope_workload::ExpectedData;
use seekscope_workload::ownership::DataSet;
use seekscope_workload::sysbench::data::{collection_name, loaded};
use seekscope_workload::sysbench::expected::{SysbenchExpected, expected};
use seekscope_workload::sysbench::{
    Era, SysbenchIndexes, SysbenchLoad, SysbenchRun, SysbenchSettings,
};

use super::ending::Demands;
use super::objective::Judgement;
use super::repeatable::operation_names;
use super::results::Show;
use super::rounds::{Repeated, Rounds, Stretch};
use super::sending::{Defaults, Sending};
use super::sharding::{self, Expected, Sharding};
use super::stage::{Stage, StepDone, StepPlan};
use super::target::Target;
use super::{data, variants};
use crate::args::{EraName, SysbenchArgs, WarmUpName, YcsbPhase};
use crate::environment::Environment;
use crate::exit::Usage;

const WORKLOAD: &str = "sysbench-mongodb";
/// A local server is for a quick look, not for ten million documents.
const LOCAL_DOCUMENTS: u32 = 100_000;
const LOCAL_DURATION: Duration = Duration::from_secs(30);
/// The last two commands of a transaction delete a document and insert it again. Two transactions that chose
/// the same document collide there; as in the original, the rest of the transaction is skipped.
const COLLISION: [(&str, &str); 2] = [("insert", "DuplicateKey"), ("transaction", "DuplicateKey")];

/// Runs the command.
pub async fn run(
    args: &SysbenchArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    if args.send.clients.is_some_and(|(_, count)| count > 1)
        && args.phase.contains(&YcsbPhase::Load)
    {
        let why = "several clients cannot share the load of sysbench-mongodb: load with one \
                   (--phase load), then run with all (--phase run)";
        return Err(Usage(why.into()).into());
    }
    let mut bench = Sysbench::new(args)?;
    let measurement = BenchMeasurement {
        workload: WORKLOAD.into(),
        edition: bench.settings.era.name().into(),
        settings: bench
            .settings
            .resolved()
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect(),
        database: args.target.database.clone(),
        client_number: args.send.clients,
        sharding: bench.sharding.as_ref().map(Sharding::record),
        ..BenchMeasurement::default()
    };
    let mut stage = Stage::begin(&args.keep, arguments, measurement)?;
    stage.session.document.seed = Some(args.send.seed);
    stage.ends_with_primary = !args.send.allow_errors;
    let worked = bench.work(&mut stage, environment).await;
    stage.end(worked, &bench.demands, &args.keep.output, Show::Tables)
}

/// Returns the operations of a run; refuses a workload that cannot be run at all.
pub fn operations(args: &SysbenchArgs) -> Result<Vec<String>> {
    let settings = Sysbench::new(args)?.settings;
    let run = SysbenchRun::new(settings).map_err(|e| Usage(e.to_string()))?;
    Ok(operation_names(&run))
}

/// Loads the data for later runs.
pub async fn load_once(
    args: &SysbenchArgs,
    stage: &mut Stage,
    target: &Target,
    name: &str,
) -> Result<()> {
    Sysbench::new(args)?.load(stage, target, name).await
}

/// Runs one stretch on loaded data.
pub async fn run_once(
    args: &SysbenchArgs,
    stage: &mut Stage,
    target: &Target,
    stretch: Stretch,
) -> Result<StepDone> {
    Sysbench::new(args)?.run(stage, target, stretch).await
}

fn settings(args: &SysbenchArgs) -> Result<SysbenchSettings> {
    let era = match args.era {
        EraName::Papers => Era::Y2013To2015,
        EraName::Until2024 => Era::Y2021To2024,
        EraName::Since2024 => Era::Since202409,
    };
    let mut settings = era.defaults();
    let is_local = args.target.uri.is_none();
    settings.collections = args.collections.unwrap_or(settings.collections);
    settings.documents = match args.documents {
        Some(documents) => u32::try_from(documents).unwrap_or(u32::MAX),
        None if is_local => LOCAL_DOCUMENTS,
        None => settings.documents,
    };
    settings.loaders = args.loaders.map_or(settings.loaders, |n| n as usize);
    settings.seed = i64::try_from(args.send.seed).unwrap_or(i64::MAX);
    settings.exact_original = args.exact_original;
    settings.is_transaction = args.transaction;
    if args.read_only {
        settings.steps = settings.steps.read_only();
    }
    settings.check().map_err(|e| Usage(e.to_string()))?;
    Ok(settings)
}

/// The running command.
struct Sysbench<'a> {
    args: &'a SysbenchArgs,
    settings: SysbenchSettings,
    sending: Sending,
    sharding: Option<Sharding>,
    demands: Demands,
}

impl<'a> Sysbench<'a> {
    fn new(args: &'a SysbenchArgs) -> Result<Self> {
        let settings = settings(args)?;
        let defaults = Defaults {
            in_flight: Some(settings.in_flight),
            per_s: None,
        };
        Ok(Self {
            sending: Sending::new(&args.send, defaults)?,
            sharding: Sharding::new(&args.sharding, args.target.uri.as_deref())?,
            args,
            settings,
            demands: Demands {
                allow_errors: args.send.allow_errors,
                expected_failures: &COLLISION,
                judgement: Judgement::default(),
            },
        })
    }

    async fn work(&mut self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        let (target, versus) = (&self.args.target, &self.args.versus);
        let uri = target.uri.as_deref();
        variants::say_if_too_few(stage, versus, FIGURES_OF_A_WORKLOAD);
        let mut targets = variants::open(
            stage,
            uri,
            target,
            Some(versus),
            self.sharding.as_ref(),
            environment,
        )
        .await?;
        let worked = self.phases(stage, &mut targets).await;
        let (sharding, target) = (self.sharding.as_ref(), &self.args.target);
        sharding::end(sharding, stage, &targets, target, WORKLOAD, worked).await?;
        variants::close(stage, targets, target.keep).await
    }

    /// Loads and runs.
    async fn phases(&mut self, stage: &mut Stage, targets: &mut [Target]) -> Result<()> {
        let (target, versus) = (&self.args.target, &self.args.versus);
        let loads = self.args.phase.contains(&YcsbPhase::Load);
        for target in targets.iter().filter(|target| !target.shares_data) {
            match loads {
                true => self.load(stage, target, "load").await?,
                false => self.check_loaded(stage, target).await?,
            }
        }
        if self.args.phase.contains(&YcsbPhase::Run) {
            let rounds = Rounds::new("run", target, &self.args.send, versus, self.duration());
            let judgement = rounds.run(stage, targets, self).await?;
            self.demands.judgement.extend(judgement);
        }
        Ok(())
    }

    /// Refuses data of an earlier load that are not sharded as asked for.
    async fn check_loaded(&self, stage: &mut Stage, target: &Target) -> Result<()> {
        let (database, sharding) = (&self.args.target.database, self.sharding.as_ref());
        sharding::check_loaded(sharding, stage, target, database, &self.collections()).await
    }

    fn duration(&self) -> Option<Duration> {
        let default = match self.args.target.uri {
            None => LOCAL_DURATION,
            Some(_) => Duration::from_secs(self.settings.run_s),
        };
        let is_counted = self.args.transactions.is_some();
        self.args.send.duration.or((!is_counted).then_some(default))
    }

    /// Creates the indexes, then the documents, like the original.
    async fn load(&mut self, stage: &mut Stage, target: &Target, name: &str) -> Result<()> {
        let database = self.args.target.database.clone();
        let wanted = self.data_set();
        let (sharding, loaded) = (self.sharding.as_ref(), loaded(&self.settings));
        sharding::begin_load(sharding, stage, target, &database, &wanted, 1, &loaded).await?;
        let batches =
            self.settings.loaded().div_ceil(self.settings.batch) * self.settings.collections;
        let indexes = Arc::new(SysbenchIndexes::new(&self.settings));
        let documents = Arc::new(SysbenchLoad::new(&self.settings));
        let mut last = None;
        // The "load" in the name becomes "indexes", as in the original's output.
        let indexes_name = name.replace("load", "indexes");
        let parts: [(&str, Arc<dyn Workload>, usize, u32); 2] = [
            (&indexes_name, indexes, 1, self.settings.collections),
            (name, documents, self.settings.loaders, batches),
        ];
        for (name, workload, in_flight, count) in parts {
            let job = self.sending.load_job(in_flight, Retries::default());
            let plan = StepPlan {
                name: target.step_name(name, 1, 1),
                kind: "load",
                repetition: 1,
                expected: Some(count.into()),
                arrivals: Arrivals::Closed,
                warm_up: WarmUpName::None,
                ..self.step_plan(workload, job)
            };
            let done = stage.step(target, plan).await?;
            data::ensure_complete(stage, &done)?;
            last = Some(done);
        }
        if let Some(done) = last {
            self.verify(stage, target, &done, None).await?;
            let documents = Some(u64::from(self.settings.loaded()));
            let expected = self.collections().into_iter().map(|collection| Expected {
                collection,
                documents,
            });
            let (expected, in_doubt) = (expected.collect::<Vec<_>>(), done.ended.in_doubt);
            let sharding = self.sharding.as_ref();
            sharding::verify_spread(
                sharding, stage, target, &database, name, &expected, in_doubt,
            )
            .await?;
        }
        data::end_load(target, &database, WORKLOAD).await
    }

    fn step_plan(&self, workload: Arc<dyn Workload>, job: seekscope_client::Job) -> StepPlan {
        StepPlan {
            name: String::new(),
            kind: "run",
            workload_name: WORKLOAD.into(),
            repetition: 1,
            expected: None,
            workload,
            database: self.args.target.database.clone(),
            collections: self.collections(),
            client: self.sending.client,
            job,
            arrivals: self.sending.arrivals.clone(),
            warm_up: self.sending.warm_up,
            stop: None,
            keep_seconds: None,
        }
    }

    fn collections(&self) -> Vec<String> {
        (1..=self.settings.collections)
            .map(collection_name)
            .collect()
    }

    fn data_set(&self) -> DataSet {
        // The data does not depend on the seed of the run.
        let records = u64::from(self.settings.documents);
        let mut data_set =
            DataSet::new(WORKLOAD, self.collections(), "sysbench-mongodb", records, 0);
        let exact = self.settings.exact_original.to_string();
        data_set.settings.insert("exact-original".into(), exact);
        data_set
    }

    async fn verify(
        &self,
        stage: &mut Stage,
        target: &Target,
        done: &StepDone,
        run: Option<&SysbenchRun>,
    ) -> Result<()> {
        let wanted: Vec<SysbenchExpected<'_>> =
            expected(&self.settings, run.map(SysbenchRun::changes));
        let wanted: Vec<&dyn ExpectedData> =
            wanted.iter().map(|e| e as &dyn ExpectedData).collect();
        let (database, in_doubt) = (&self.args.target.database, done.ended.in_doubt);
        data::verify_step(stage, target, database, done.index, &wanted, in_doubt).await
    }
}

impl Repeated for Sysbench<'_> {
    async fn run(
        &mut self,
        stage: &mut Stage,
        target: &Target,
        stretch: Stretch,
    ) -> Result<StepDone> {
        let database = self.args.target.database.clone();
        let wanted = self.data_set();
        stage
            .asking(data::find_loaded(target, &database, &wanted))
            .await?;
        let seed = stretch.seed.unwrap_or(self.args.send.seed);
        let mut settings = self.settings.clone();
        settings.seed = i64::try_from(seed).unwrap_or(i64::MAX);
        let run = SysbenchRun::new(settings).map_err(|e| Usage(e.to_string()))?;
        let transactions = self.args.transactions;
        let (job, arrivals) = self.sending.job_of(&stretch, transactions, seed);
        let plan = StepPlan {
            kind: stretch.kind(),
            name: stretch.name.clone(),
            repetition: stretch.repetition,
            arrivals,
            ..self.step_plan(Arc::new(run.clone()), job)
        };
        let done = stage.step(target, stretch.watched(plan)).await?;
        // If others write too, or a run was broken off, the count is unknown.
        if self.sending.slice.1 == 1 && done.ended.reason != EndReason::Failing {
            self.verify(stage, target, &done, Some(&run)).await?;
        }
        Ok(done)
    }
}
