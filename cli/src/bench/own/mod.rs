//! `seekscope bench run`, `print` and `sample`: workloads that users write.

mod phases;
mod text;

pub use text::{print, sample};

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::BenchMeasurement;
use seekscope_workload::ExpectedData;
use seekscope_workload::own::builtin::builtin;
use seekscope_workload::own::plan::{CollectionPlan, PhasePlan, RolePlan, Slice};
use seekscope_workload::own::{ExpectedCollection, Plan, PlanOptions, Source};
use seekscope_workload::ownership::DataSet;

use super::ending::Demands;
use super::repeatable::operation_names;
use super::results::Show;
use super::rounds::Stretch;
use super::sharding::{self, Expected, Sharding};
use super::stage::{Stage, StepDone};
use super::target::Target;
use super::{data, variants};
use crate::args::RunArgs;
use crate::environment::Environment;
use crate::exit::Usage;

use phases::{Part, Phases};

/// Workloads are written by hand: a larger file is a mistake.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
pub async fn run(args: &RunArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    let (plan, text) = plan_of(args)?;
    let sharding = Sharding::new(&args.sharding, args.target.uri.as_deref())?;
    let measurement = BenchMeasurement {
        sharding: sharding.as_ref().map(Sharding::record),
        ..measurement(args, &plan, &text)
    };
    let mut stage = Stage::begin(&args.keep, arguments, measurement)?;
    stage.session.document.seed = Some(plan.seed);
    stage.ends_with_primary = !args.allow_errors;
    let bench = Bench {
        args,
        plan: &plan,
        sharding: sharding.as_ref(),
    };
    let worked = bench.work(&mut stage, environment).await;
    let demands = Demands {
        allow_errors: args.allow_errors,
        ..Demands::default()
    };
    stage.end(worked, &demands, &args.keep.output, Show::Tables)
}

/// Returns the operations of what is measured; refuses a workload that cannot be loaded once and run many times.
pub fn operations(args: &RunArgs) -> Result<Vec<String>> {
    let (plan, _) = plan_of(args)?;
    let loads = |phase: &PhasePlan| phase.roles.iter().any(RolePlan::is_load);
    if plan.phases.iter().all(loads) {
        let why = "it has nothing but loads: what is to be measured?";
        return Err(Usage(format!("{}: {why}", args.workload)).into());
    }
    let measured = plan.phases.iter().filter(|phase| Part::Rest.has(phase));
    let roles = measured.flat_map(|phase| &phase.roles);
    Ok(roles.flat_map(operation_names).collect())
}

/// Returns how long a run of the phases that do not load takes; `None` unless all of them say so.
pub fn duration(args: &RunArgs) -> Option<Duration> {
    let (plan, _) = plan_of(args).ok()?;
    let phases = plan.phases.iter().filter(|phase| Part::Rest.has(phase));
    let lengths = phases.map(|phase| {
        let ending = phase.roles.iter().filter(|role| !role.end.background);
        let lengths: Option<Vec<Duration>> = ending.map(|role| role.end.duration).collect();
        Some(phase.pause + lengths?.into_iter().max()?)
    });
    lengths.sum()
}

/// Runs the loading phases, for later runs.
pub async fn load_once(
    args: &RunArgs,
    stage: &mut Stage,
    target: &Target,
    name: &str,
) -> Result<()> {
    let (plan, _) = plan_of(args)?;
    let (wanted, database) = (data_set(&plan), &args.target.database);
    stage
        .asking(data::begin_load(target, database, &wanted, 1, &[]))
        .await?;
    let phases = Phases {
        args,
        plan: &plan,
        target,
        part: Part::Loads,
        prefix: &format!("{name} "),
        watch: None,
    };
    phases.run(stage).await?;
    data::end_load(target, database, &wanted.name).await
}

/// Runs the other phases, on loaded data.
pub async fn run_once(
    args: &RunArgs,
    stage: &mut Stage,
    target: &Target,
    stretch: Stretch,
) -> Result<Vec<StepDone>> {
    let (plan, _) = plan_of(args)?;
    let phases = Phases {
        args,
        plan: &plan,
        target,
        part: Part::Rest,
        prefix: &format!("{} ", stretch.name),
        watch: stretch.watch,
    };
    phases.run(stage).await
}

/// Returns the workload and its text.
fn plan_of(args: &RunArgs) -> Result<(Plan, String)> {
    let text = text_of(&args.workload)?;
    let options = PlanOptions {
        scale: args.scale,
        slice: slice(args),
    };
    let source = Source {
        file: &args.workload,
        text: &text,
    };
    let plan = Plan::parse(source, options).map_err(|error| Usage(error.to_string()))?;
    if plan.phases.is_empty() {
        return Err(Usage(format!("{} has no phases: nothing to run", args.workload)).into());
    }
    Ok((plan, text))
}

/// Returns the text of a file, or of a workload that comes with seekscope.
fn text_of(workload: &str) -> Result<String> {
    let path = Path::new(workload);
    if let (false, Some(builtin)) = (path.exists(), builtin(workload)) {
        return Ok(builtin.text.into());
    }
    let facts = std::fs::metadata(path).map_err(|error| {
        let names = text::names().join(", ");
        Usage(format!(
            "{workload}: {error}; name a file, or one of {names}"
        ))
    })?;
    if facts.len() > TEXT_BYTES_MAX {
        return Err(Usage(format!("{workload} is larger than 1 MiB")).into());
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {workload}"))
}

fn slice(args: &RunArgs) -> Slice {
    let (number, count) = args.clients.unwrap_or((1, 1));
    Slice {
        number: u64::from(number) - 1,
        count: u64::from(count),
    }
}

fn measurement(args: &RunArgs, plan: &Plan, text: &str) -> BenchMeasurement {
    let mut settings = BTreeMap::from([
        ("file".into(), args.workload.clone()),
        // The whole text, so that a run can be repeated from its records.
        ("text".into(), text.into()),
        ("scale".into(), args.scale.to_string()),
    ]);
    for (name, value) in &args.target.server_setting {
        settings.insert(format!("server {name}"), value.clone());
    }
    BenchMeasurement {
        workload: plan.name.clone(),
        edition: "own".into(),
        settings,
        database: args.target.database.clone(),
        client_number: args.clients,
        ..BenchMeasurement::default()
    }
}

/// The running command.
struct Bench<'a> {
    args: &'a RunArgs,
    plan: &'a Plan,
    sharding: Option<&'a Sharding>,
}

impl Bench<'_> {
    async fn work(&self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        let target = &self.args.target;
        let uri = target.uri.as_deref();
        let mut targets =
            variants::open(stage, uri, target, None, self.sharding, environment).await?;
        let worked = match targets.first_mut() {
            Some(target) => self.run(stage, target).await,
            None => Ok(()),
        };
        let (sharding, name) = (self.sharding, &self.plan.name);
        sharding::end(sharding, stage, &targets, target, name, worked).await?;
        variants::close(stage, targets, target.keep).await
    }

    /// Loads and runs.
    async fn run(&self, stage: &mut Stage, target: &mut Target) -> Result<()> {
        let (args, plan, database) = (self.args, self.plan, &self.args.target.database);
        if args.target.cold
            && let Some(limitation) = target.make_cold().await?
        {
            stage.limit(limitation);
        }
        let clients = args.clients.map_or(1, |(_, count)| count);
        let wanted = data_set(plan);
        let (sharding, collections) = (self.sharding, plan.collections.iter());
        let loaded: Vec<_> = collections.map(CollectionPlan::loaded).collect();
        let beginning =
            sharding::begin_load(sharding, stage, target, database, &wanted, clients, &loaded);
        beginning.await?;
        let phases = Phases {
            args,
            plan,
            target,
            part: Part::All,
            prefix: "",
            watch: None,
        };
        let last = phases.run(stage).await?;
        data::end_load(target, database, &wanted.name).await?;
        let in_doubt = stage.measurement().steps.iter();
        let in_doubt = in_doubt.filter_map(|step| step.verification.as_ref());
        let in_doubt = in_doubt.map(|verification| verification.in_doubt).sum();
        let expected = plan.collections.iter().map(|collection| Expected {
            collection: collection.name.clone(),
            documents: ExpectedCollection::new(collection).expected_count(),
        });
        let expected: Vec<Expected> = expected.collect();
        let after = last.last().and_then(|done| stage.step_at(done.index));
        let after = after.map_or_else(String::new, |step| step.name.clone());
        sharding::verify_spread(
            sharding, stage, target, database, &after, &expected, in_doubt,
        )
        .await
    }
}

fn data_set(plan: &Plan) -> DataSet {
    let collections = plan
        .collections
        .iter()
        .map(|collection| collection.name.clone());
    let records = plan
        .collections
        .iter()
        .map(|collection| collection.records())
        .sum();
    DataSet::new(&plan.name, collections.collect(), "own", records, plan.seed)
}
