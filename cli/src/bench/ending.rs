//! Decides how a benchmark ends: the outcome of its records and the exit code.

use anyhow::{Result, bail};
use seekscope_run::units::format_count;
use seekscope_run::{BenchMeasurement, BenchStep};

use super::objective::Judgement;
use super::results::{Results, Show};
use super::stage::Stage;
use crate::args::OutputArgs;
use crate::ending;
use crate::exit::{BrokenOff, Inconsistent, Interrupted, ThresholdMissed, message_of};

/// What the user allows and requires.
#[derive(Debug, Clone, Default)]
pub struct Demands {
    pub allow_errors: bool,
    /// Failures that the workload itself causes, as (operation, name of the failure): they are counted and
    /// shown, but do not fail the run.
    pub expected_failures: &'static [(&'static str, &'static str)],
    /// How the steps stand to the objective.
    pub judgement: Judgement,
}

/// Judges a run whose work completed. The gravest problem is reported first.
pub fn judge(measurement: &BenchMeasurement, demands: &Demands) -> Result<()> {
    let steps = &measurement.steps;
    let faults = [
        invalid(steps),
        steps.iter().find_map(unverified),
        wrong(measurement),
    ];
    if let Some(reason) = faults.into_iter().flatten().next() {
        return Err(Inconsistent(reason).into());
    }
    if let Some(reason) = steps.iter().find_map(nothing_succeeded) {
        bail!(reason);
    }
    let failed: u64 = unexpected(steps, demands)
        .map(|(_, failure)| failure.2)
        .sum();
    if failed > 0 && !demands.allow_errors {
        bail!(
            "{} operations failed{}; --allow-errors ends with success all the same",
            format_count(failed),
            example(steps, demands)
        );
    }
    let Judgement { missed, unjudged } = &demands.judgement;
    if !missed.is_empty() {
        let reason = format!("the objective was missed: {}", missed.join("; "));
        return Err(ThresholdMissed(reason).into());
    }
    if !unjudged.is_empty() {
        let reason = format!("the objective cannot be judged: {}", unjudged.join("; "));
        return Err(BrokenOff(reason).into());
    }
    Ok(())
}

/// Returns why a step is invalid, if any is. Probes of a search are skipped: they exceed the limits on purpose.
fn invalid(steps: &[BenchStep]) -> Option<String> {
    let measured = || steps.iter().filter(|step| step.kind != "probe");
    let first = measured().find(|step| !step.invalid.is_empty())?;
    let count = measured().filter(|step| !step.invalid.is_empty()).count();
    let more = match count {
        1 => String::new(),
        _ => format!(" (and {} more steps)", count - 1),
    };
    Some(format!(
        "{}: {}{more}",
        first.name,
        first.invalid.join("; ")
    ))
}

fn unverified(step: &BenchStep) -> Option<String> {
    let found = step.verification.as_ref()?;
    let fault = found.fault()?;
    let counts = found.expected.zip(found.counted);
    let counts = counts.map_or_else(String::new, |(expected, counted)| {
        let (expected, counted) = (format_count(expected), format_count(counted));
        format!("{expected} documents expected, {counted} counted; ")
    });
    Some(format!(
        "{}: {fault}: {counts}of {} read back {} missing, {} different",
        step.name,
        format_count(found.sampled),
        format_count(found.missing),
        format_count(found.different)
    ))
}

/// Returns that acknowledged writes were lost, which is graver than any failure of the work; else its error.
fn lost_or(measurement: &BenchMeasurement, error: anyhow::Error) -> anyhow::Error {
    let lost = measurement.steps.iter().find_map(unverified);
    match lost.filter(|_| !error.is::<Interrupted>()) {
        Some(lost) => Inconsistent(format!("{lost}; {}", message_of(&error))).into(),
        None => error,
    }
}

/// Reports indexes that are incomplete, and ways of storing samples that lost some.
fn wrong(measurement: &BenchMeasurement) -> Option<String> {
    let build = measurement
        .index_builds
        .iter()
        .find(|b| b.verified == Some(false));
    if let Some(build) = build {
        return Some(format!(
            "the index {} does not hold a key for each document",
            build.kind
        ));
    }
    let shape = measurement.shapes.iter().find(|s| s.wrong_answers > 0)?;
    Some(format!(
        "{}: {} queries did not find the samples that were written",
        shape.name,
        format_count(shape.wrong_answers)
    ))
}

fn nothing_succeeded(step: &BenchStep) -> Option<String> {
    let done: u64 = step.operations.iter().map(|o| o.count).sum();
    let first = step.failures.first().filter(|_| done == 0)?;
    let failed = failed_with(first);
    Some(format!("{}: nothing succeeded; {failed}", step.name))
}

type FailureCount = (String, String, u64, String);

/// Says how operations failed.
pub fn failed_with((operation, name, count, message): &FailureCount) -> String {
    let (count, why) = (format_count(*count), after_colon(message));
    format!("{count} {operation} failed with {name}{why}")
}

/// Not every failure has a message.
fn after_colon(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

/// Returns the failures of all steps but probes, without those that the workload itself causes.
fn unexpected<'a>(
    steps: &'a [BenchStep],
    demands: &Demands,
) -> impl Iterator<Item = (&'a BenchStep, &'a FailureCount)> {
    let expected = demands.expected_failures;
    let measured = steps.iter().filter(|step| step.kind != "probe");
    let all = measured.flat_map(|step| step.failures.iter().map(move |failure| (step, failure)));
    all.filter(|(_, (operation, name, ..))| {
        !expected.contains(&(operation.as_str(), name.as_str()))
    })
}

/// Returns an example. Failures are counted by name, so it need not be the earliest.
fn example(steps: &[BenchStep], demands: &Demands) -> String {
    let first = unexpected(steps, demands).next();
    first.map_or_else(String::new, |(step, (operation, name, _, message))| {
        let why = after_colon(message);
        format!(", such as {operation} in {}: {name}{why}", step.name)
    })
}

impl Stage {
    /// Ends the run: sets the outcome, writes the report and prints the tables. Returns the command's result.
    pub fn end(
        mut self,
        worked: Result<()>,
        demands: &Demands,
        output: &OutputArgs,
        show: Show,
    ) -> Result<()> {
        let worked = match (worked, self.check_election()) {
            (Ok(()), Ok(())) => judge(self.measurement(), demands),
            (Err(error), Ok(())) => Err(lost_or(self.measurement(), error)),
            (Err(error), Err(_)) if error.is::<Interrupted>() || error.is::<Inconsistent>() => {
                Err(error)
            }
            // What failed after an election failed because of it.
            (_, Err(election)) => Err(lost_or(self.measurement(), election)),
        };
        let progress = self.progress;
        ending::end(&mut self.session, worked, progress, |session| {
            Results::derive(session)?.show(session, output, progress, show)
        })
    }
}

/// Adds to an error that the server was lost during a step.
pub fn server_gone(step: &str, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("the server was lost during {step}"))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{BenchIndexBuild, OperationResult, Outcome, SchemaShape, Verification};

    use super::*;
    use crate::ending::outcome_of;

    fn step(count: u64, failures: u64) -> BenchStep {
        let operation = OperationResult {
            name: "READ".into(),
            count,
            errors: failures,
            ..OperationResult::default()
        };
        let failure = ("READ".into(), "NOT_FOUND".into(), failures, "gone".into());
        BenchStep {
            name: "a".into(),
            kind: "run".into(),
            operations: vec![operation],
            failures: if failures > 0 {
                vec![failure]
            } else {
                Vec::new()
            },
            ..BenchStep::default()
        }
    }

    fn judged(step: BenchStep, demands: &Demands) -> (Outcome, String) {
        let measurement = BenchMeasurement {
            steps: vec![step],
            ..BenchMeasurement::default()
        };
        let (outcome, reason) = outcome_of(&judge(&measurement, demands));
        (outcome, reason.unwrap_or_default())
    }

    #[test]
    fn wrong_answers_are_not_results() {
        let judged =
            |measurement: &BenchMeasurement| outcome_of(&judge(measurement, &Demands::default())).0;
        let mut measurement = BenchMeasurement::default();
        measurement.shapes.push(SchemaShape::default());
        measurement.index_builds.push(BenchIndexBuild::default());
        assert_eq!(judged(&measurement), Outcome::Ok);
        measurement.shapes[0].wrong_answers = 1;
        assert_eq!(judged(&measurement), Outcome::Invalid);
        measurement.shapes.clear();
        measurement.index_builds[0].verified = Some(false);
        assert_eq!(judged(&measurement), Outcome::Invalid);
    }

    #[test]
    fn the_gravest_is_said() {
        let strict = Demands::default();
        assert_eq!(judged(step(5, 0), &strict).0, Outcome::Ok);
        let (outcome, reason) = judged(step(0, 9), &strict);
        assert!(
            outcome == Outcome::Failed && reason.contains("nothing succeeded"),
            "{reason}"
        );
        let mut silent = step(0, 9);
        silent.failures[0].3.clear();
        let (_, reason) = judged(silent, &strict);
        assert!(reason.ends_with("failed with NOT_FOUND"), "{reason}");
        let (outcome, reason) = judged(step(5, 2), &strict);
        assert!(
            outcome == Outcome::Failed && reason.contains("2 operations failed"),
            "{reason}"
        );
        let lenient = Demands {
            allow_errors: true,
            judgement: Judgement {
                missed: vec!["p99".into()],
                ..Judgement::default()
            },
            ..Demands::default()
        };
        let (outcome, reason) = judged(step(5, 2), &lenient);
        assert!(
            outcome == Outcome::Ok && reason.contains("missed: p99"),
            "{reason}"
        );
        let (outcome, _) = judged(
            step(5, 2),
            &Demands {
                expected_failures: &[("READ", "NOT_FOUND")],
                ..Demands::default()
            },
        );
        assert_eq!(outcome, Outcome::Ok);
        // A run in which everything failed has failed, whatever is allowed.
        assert_eq!(judged(step(0, 9), &lenient).0, Outcome::Failed);
        let mut invalid = step(5, 2);
        invalid.invalid.push("late".into());
        assert_eq!(
            judged(invalid, &lenient),
            (Outcome::Invalid, "a: late".into())
        );
        let mut lost = step(5, 0);
        lost.verification = Some(Verification {
            expected: Some(5),
            counted: Some(4),
            ..Verification::default()
        });
        assert_eq!(judged(lost, &lenient).0, Outcome::Invalid);
    }
}
