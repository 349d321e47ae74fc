//! The block after the last line of the classic transcript. None of its lines has the form of a
//! classic one, so programs that read those are not disturbed.

use seekscope_run::OperationOutcome;
use seekscope_run::units::format_bytes;

use super::report::{Ending, Report, StepReport};

/// A step with this share of the best rate is as good as the best.
const NEARLY_BEST: f64 = 0.9;

/// Returns the lines, beginning with an empty one. MB is 2^20 bytes as in the sample lines.
pub(crate) fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![String::new(), heading(report)];
    lines
        .push("threads  kind       ops/s      MB/s       p50       p99     p99.9       max".into());
    for step in &report.steps {
        if report.reads {
            lines.push(row(report, step, "read", &step.reads));
        }
        if report.writes {
            lines.push(row(report, step, "write", &step.writes));
        }
    }
    lines.push(totals(report));
    lines.extend(best_step(report));
    lines.extend(meaning(report).map(Into::into));
    match report.ending {
        Ending::Complete => {}
        Ending::Interrupted => lines.push("interrupted: the last step is not complete".into()),
        Ending::Failed => lines.push("stopped by an error: the last step is not complete".into()),
    }
    lines
}

fn heading(report: &Report) -> String {
    format!(
        "summary: {}, {} KiB at random places of a file of {} MiB, seed {}; latencies in {}",
        report.access,
        report.operation_bytes >> 10,
        report.file_bytes >> 20,
        report.seed,
        latency_unit(report).0
    )
}

/// Returns the name and length in ns of the unit: memory is a thousand times faster than a disk.
fn latency_unit(report: &Report) -> (&'static str, f64) {
    if report.mapped {
        ("µs", 1e3)
    } else {
        ("ms", 1e6)
    }
}

fn row(report: &Report, step: &StepReport, kind: &str, outcome: &OperationOutcome) -> String {
    let bytes_per_s = step.per_s(outcome.bytes);
    let mb_per_s = if report.mapped {
        "-".into()
    } else {
        format!("{:.1}", bytes_per_s / f64::from(1 << 20))
    };
    let (_, unit_ns) = latency_unit(report);
    let in_unit = |ns: u64| match outcome.latency.count {
        0 => "-".into(),
        _ => format!("{:.3}", ns as f64 / unit_ns),
    };
    format!(
        "{:7}  {kind:5} {:10.0} {mb_per_s:>9} {:>9} {:>9} {:>9} {:>9}",
        step.threads,
        step.per_s(outcome.operations),
        in_unit(outcome.latency.p50_ns),
        in_unit(outcome.latency.p99_ns),
        in_unit(outcome.latency.p999_ns),
        in_unit(outcome.latency.max_ns),
    )
}

fn totals(report: &Report) -> String {
    let sum = |of: fn(&StepReport) -> u64| report.steps.iter().map(of).sum::<u64>();
    let seconds = sum(StepReport::elapsed_ns) as f64 / 1e9;
    let bytes = sum(|step| step.reads.bytes + step.writes.bytes);
    let transferred = if report.mapped {
        String::new()
    } else {
        format!(", {}", format_bytes(bytes))
    };
    format!(
        "total: {} reads and {} writes{transferred} in {seconds:.1} s",
        sum(|step| step.reads.operations),
        sum(|step| step.writes.operations),
    )
}

fn best_step(report: &Report) -> Option<String> {
    let rate = |step: &StepReport| step.per_s(step.operations());
    let best = report
        .steps
        .iter()
        .max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let enough = report
        .steps
        .iter()
        .find(|step| rate(step) >= NEARLY_BEST * rate(best))?;
    if best.operations() == 0 {
        return None;
    }
    let mut line = format!("most per second: {:.0} with {}", rate(best), threads(best));
    if enough.threads < best.threads {
        line += &format!("; at least 90 % of that already with {}", threads(enough));
    }
    Some(line)
}

fn threads(step: &StepReport) -> String {
    let plural = if step.threads == 1 { "" } else { "s" };
    format!("{} thread{plural}", step.threads)
}

/// Returns what is not obvious about the figures, if anything.
fn meaning(report: &Report) -> Option<&'static str> {
    match (report.mapped, report.writes) {
        (true, _) => Some(
            "a page comes from the disk when it is touched first and goes there when it is synced; \
             in between this measures memory",
        ),
        (false, true) => Some("a write includes the fdatasync that follows it, as in a journal"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::LatencySummary;

    use super::super::report::Sample;
    use super::*;

    fn step(threads: u32, reads: u64, writes: u64) -> StepReport {
        let outcome = |operations: u64| OperationOutcome {
            operations,
            bytes: operations * 8192,
            latency: LatencySummary {
                count: operations,
                p50_ns: 45_000,
                p99_ns: 1_696_000,
                p999_ns: 5_603_400,
                max_ns: 12_300_000,
                ..LatencySummary::default()
            },
            service: None,
        };
        let sample = Sample {
            elapsed_ns: 2_000_000_000,
            reads,
            writes,
        };
        StepReport {
            threads,
            started_ns: 0,
            samples: vec![sample],
            reads: outcome(reads),
            writes: outcome(writes),
        }
    }

    fn report(steps: Vec<StepReport>) -> Report {
        Report {
            ending: Ending::Complete,
            file_bytes: 1000 << 20,
            operation_bytes: 8192,
            access: "direct I/O",
            reads: true,
            writes: steps.iter().any(|step| step.writes.operations > 0),
            mapped: false,
            seed: 7,
            steps,
        }
    }

    #[test]
    fn rows_have_rates_of_their_own_kind_and_the_time_of_the_step() {
        let steps = vec![step(1, 1000, 0), step(2, 1900, 100), step(4, 2000, 512)];
        let lines = summary(&report(steps));
        assert_eq!(
            lines[3..],
            [
                "      1  read         500       3.9     0.045     1.696     5.603    12.300",
                "      1  write          0       0.0         -         -         -         -",
                "      2  read         950       7.4     0.045     1.696     5.603    12.300",
                "      2  write         50       0.4     0.045     1.696     5.603    12.300",
                "      4  read        1000       7.8     0.045     1.696     5.603    12.300",
                "      4  write        256       2.0     0.045     1.696     5.603    12.300",
                "total: 4900 reads and 612 writes, 43.1 MiB in 6.0 s",
                "most per second: 1256 with 4 threads",
                "a write includes the fdatasync that follows it, as in a journal",
            ]
        );
        assert!(
            lines[1].contains("8 KiB") && lines[1].contains("seed 7"),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn says_where_more_threads_stop_helping() {
        let steps = vec![step(1, 1000, 0), step(2, 1900, 0), step(4, 2000, 0)];
        let line = best_step(&report(steps)).unwrap();
        assert_eq!(
            line,
            "most per second: 1000 with 4 threads; at least 90 % of that already with 2 threads"
        );
    }

    #[test]
    fn nothing_measured_is_said_without_numbers_made_up() {
        let mut partial = report(vec![step(1, 0, 0)]);
        partial.ending = Ending::Interrupted;
        for steps in [partial.steps.clone(), vec![]] {
            partial.steps = steps;
            let lines = summary(&partial);
            let rest = &lines[3 + partial.steps.len()..];
            assert!(
                rest[0].starts_with("total: 0 reads and 0 writes"),
                "{lines:?}"
            );
            assert_eq!(rest[1..], ["interrupted: the last step is not complete"]);
        }
    }
}
