//! What a session is to measure, checked before anything is started.

use std::time::Duration;

use anyhow::Result;
use seekscope_settings::Runs;
use seekscope_tune::optimiser::Goal;

use super::measurement::Load;
use super::metric::{Constraint, Metric, operation_in};
use crate::args::TuneMeasuredArgs;
use crate::bench::Repeatable;
use crate::exit::Usage;

/// Default length of a workload's run.
const TRIAL_FOR: Duration = Duration::from_secs(20);

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
        let asked = Self {
            load: load(args)?,
            metric,
            constraints: constraints.collect::<Result<_>>()?,
        };
        asked.refuse_unknown_operations()?;
        Ok(asked)
    }

    /// Refuses the rate of an operation that the workload does not have, which would be found out after the load.
    fn refuse_unknown_operations(&self) -> Result<()> {
        let Load::Workload(workload) = &self.load else {
            return Ok(());
        };
        let constraints = self.constraints.iter().map(|one| one.figure.as_str());
        let figures = std::iter::once(self.metric.figure.as_str()).chain(constraints);
        for wanted in figures.filter_map(operation_in) {
            let known = workload.operations()?;
            if known.iter().all(|name| !name.eq_ignore_ascii_case(wanted)) {
                return Err(Usage(format!(
                    "the workload has no operation {wanted}; its operations are {}",
                    known.join(", ")
                ))
                .into());
            }
        }
        Ok(())
    }
}

impl Load {
    /// Returns how long a run takes, and which option makes it longer or states its length.
    pub fn runs(&self) -> Runs<'static> {
        match self {
            Self::Command { takes, .. } => Runs {
                length: *takes,
                remedy: "--trial-for says how long a run of --command takes",
            },
            Self::Workload(workload) => Runs {
                length: workload.duration(),
                remedy: match workload.as_ref() {
                    Repeatable::Own(_) => "longer phases of the workload judge it",
                    _ => "a longer --trial-for judges it",
                },
            },
        }
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
            let duration = args.trial_for.unwrap_or(TRIAL_FOR);
            let workload = Repeatable::parse(name, &options, &args.database, duration)?;
            Ok(Load::Workload(Box::new(workload)))
        }
        (None, Some(command)) => Ok(Load::Command {
            command: command.clone(),
            limit: args.command_limit,
            takes: args.trial_for,
        }),
        _ => Err(Usage("say what is to be measured: --workload or --command".into()).into()),
    }
}
