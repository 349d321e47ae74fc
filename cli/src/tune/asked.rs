//! What a session is asked to measure, checked before anything is started.

use anyhow::Result;
use seekscope_tune::optimiser::Goal;

use super::measurement::Load;
use super::metric::{Constraint, Metric};
use crate::args::TuneMeasuredArgs;
use crate::bench::Repeatable;
use crate::exit::Usage;

/// What is measured, checked.
pub struct Asked {
    pub load: Load,
    pub metric: Metric,
    pub constraints: Vec<Constraint>,
}

impl Asked {
    pub fn new(args: &TuneMeasuredArgs) -> Result<Self> {
        let direction = match (args.maximize, args.minimize) {
            (true, _) => Some(Goal::Maximise),
            (_, true) => Some(Goal::Minimise),
            _ => None,
        };
        let usual = if args.command.is_some() {
            "output"
        } else {
            "throughput"
        };
        let metric = Metric::parse(args.metric.as_deref().unwrap_or(usual), direction)?;
        let constraints = args.constraint.iter().map(|text| Constraint::parse(text));
        Ok(Self {
            load: load(args)?,
            metric,
            constraints: constraints.collect::<Result<_>>()?,
        })
    }
}

fn load(args: &TuneMeasuredArgs) -> Result<Load> {
    match (&args.workload, &args.command) {
        (Some(name), None) => {
            let options: Vec<String> = args
                .workload_options
                .split_whitespace()
                .map(String::from)
                .collect();
            let workload = Repeatable::parse(name, &options, &args.database, args.trial_for)?;
            Ok(Load::Workload(Box::new(workload)))
        }
        (None, Some(command)) => Ok(Load::Command {
            command: command.clone(),
            limit: args.command_limit,
        }),
        _ => Err(Usage("say what is to be measured: --workload or --command".into()).into()),
    }
}
