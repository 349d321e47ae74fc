//! `seekscope bench run`, `print` and `sample`: workloads that users write.

mod phases;
mod text;

pub use text::{print, sample};

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::BenchMeasurement;
use seekscope_workload::own::builtin::builtin;
use seekscope_workload::own::plan::{PhasePlan, RolePlan, Slice};
use seekscope_workload::own::{Plan, PlanOptions, Source};
use seekscope_workload::ownership::DataSet;

use super::ending::Demands;
use super::results::Show;
use super::rounds::Stretch;
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
    let mut stage = Stage::begin(&args.keep, arguments, measurement(args, &plan, &text))?;
    stage.session.document.seed = Some(plan.seed);
    let worked = work(&mut stage, args, &plan, environment).await;
    let demands = Demands {
        allow_errors: args.allow_errors,
        ..Demands::default()
    };
    stage.end(worked, &demands, &args.keep.output, Show::Tables)
}

/// Refuses a workload that cannot be loaded once and run many times.
pub fn check_repeatable(args: &RunArgs) -> Result<()> {
    let (plan, _) = plan_of(args)?;
    let loads = |phase: &PhasePlan| phase.roles.iter().any(RolePlan::is_load);
    if plan.phases.iter().all(loads) {
        let why = "it has nothing but loads: what is to be measured?";
        return Err(Usage(format!("{}: {why}", args.workload)).into());
    }
    Ok(())
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
        .asking(data::begin_load(target, database, &wanted, 1))
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

async fn work(
    stage: &mut Stage,
    args: &RunArgs,
    plan: &Plan,
    environment: &Environment,
) -> Result<()> {
    let uri = args.target.uri.as_deref();
    let mut targets = variants::open(stage, uri, &args.target, None, environment).await?;
    let database = &args.target.database;
    if let Some(target) = targets.first_mut() {
        if args.target.cold
            && let Some(limitation) = target.make_cold().await?
        {
            stage.limit(limitation);
        }
        let clients = args.clients.map_or(1, |(_, count)| count);
        let wanted = data_set(plan);
        let beginning = data::begin_load(target, database, &wanted, clients);
        stage.asking(beginning).await?;
        let phases = Phases {
            args,
            plan,
            target,
            part: Part::All,
            prefix: "",
            watch: None,
        };
        phases.run(stage).await?;
        data::end_load(target, database, &wanted.name).await?;
        if args.target.drop {
            let dropping = data::drop_data(target, database, &wanted.name);
            stage.asking(dropping).await?;
        }
    }
    variants::close(stage, targets, args.target.keep).await
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
