//! Describes a benchmark and its steps in words.

use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{
    Arrivals, BenchMeasurement, BenchStep, ClientKind, Confirmation, Outcome, RateVerdict,
    RunDocument, Saturation, Verification,
};

use crate::balancer;
use crate::numbers::{counted, format_rate, format_share};

const PROBE: &str = "probe";
/// The verdict of a run that needs no further words.
pub(super) const ALL_WELL: &str = "OK: everything asked for was measured.";
/// Share of the host's CPU time used by others, above which they may be why a probe failed, or runs differ.
pub(super) const QUIET_SHARE_MAX: f64 = 0.15;

/// Returns one word for how reliable the figures are, for style sheets and scripts.
pub fn outcome_word(document: &RunDocument) -> &'static str {
    if !invalid(document).is_empty() {
        return "invalid";
    }
    crate::wording::outcome_word(document)
}

/// Returns why steps are unreliable, each with its step.
fn invalid(document: &RunDocument) -> Vec<String> {
    let steps = document.bench.iter().flat_map(|bench| &bench.steps);
    // Probes of a search are meant to find what is too much.
    steps
        .filter(|step| step.kind != PROBE)
        .flat_map(|step| {
            step.invalid
                .iter()
                .map(move |why| format!("{}: {why}", step.name))
        })
        .collect()
}

/// Returns what must be known before any figure is believed.
pub fn verdict(document: &RunDocument) -> String {
    let reason = || {
        document
            .outcome_reason
            .clone()
            .unwrap_or_else(|| "no reason was recorded".into())
    };
    let invalid = invalid(document);
    if !invalid.is_empty() {
        return format!("INVALID: {}.", invalid.join("; "));
    }
    let first = match document.outcome {
        Outcome::Invalid => format!("INVALID: {}.", reason()),
        Outcome::Failed => format!("FAILED: {}.", reason()),
        Outcome::Partial => {
            format!(
                "Partial ({}): what is here is true, but not all of it is here.",
                reason()
            )
        }
        // The reason of a run that went well is the objective that it missed.
        Outcome::Ok => match &document.outcome_reason {
            Some(missed) => format!("MISSED: {missed}."),
            None => match left_out(document.bench.as_ref()) {
                Some(names) => format!("OK, but without {names}, which could not be measured."),
                None => ALL_WELL.to_string(),
            },
        },
    };
    let mut sentences = vec![first];
    sentences.extend(document.bench.as_ref().and_then(doubts));
    sentences.join(" ")
}

/// Names the ways of storing that were asked for and could not be measured.
fn left_out(bench: Option<&BenchMeasurement>) -> Option<String> {
    let shapes = bench.into_iter().flat_map(|bench| &bench.shapes);
    let left_out = shapes.filter(|shape| shape.samples == 0 && !shape.limitations.is_empty());
    let mut names: Vec<&str> = left_out.map(|shape| shape.name.as_str()).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join("; "))
}

/// Returns what does not make a run invalid, but must not be overlooked.
fn doubts(bench: &BenchMeasurement) -> Option<String> {
    let steps = &bench.steps;
    let failures: u64 = steps
        .iter()
        .flat_map(|step| &step.failures)
        .fold(0, |sum, (_, _, count, _)| sum.saturating_add(*count));
    let unsteady: Vec<&str> = steps
        .iter()
        .filter(|step| is_unsteady(step))
        .map(|step| step.name.as_str())
        .collect();
    let lost = steps
        .iter()
        .any(|step| step.verification.as_ref().is_some_and(|v| !v.holds()));
    let mut said = Vec::new();
    if bench.is_left_changed {
        said.push("The server is not set as its owner set it (see what is missing).".to_string());
    }
    if lost {
        said.push("Acknowledged writes are not all there (see verification).".to_string());
    }
    if failures > 0 {
        said.push(format!("{} operations failed.", format_count(failures)));
    }
    if !unsteady.is_empty() {
        said.push(format!("Not steady: {}.", unsteady.join(", ")));
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// Returns how operations were started, by its name.
pub fn arrivals(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Closed => "closed loop".into(),
        Arrivals::Constant { per_s } => {
            format!("open loop, {}/s at even distances", format_rate(*per_s))
        }
        Arrivals::Poisson { per_s } => {
            format!("open loop, Poisson arrivals at {}/s", format_rate(*per_s))
        }
        Arrivals::Ramp {
            from_per_s,
            to_per_s,
        } => format!(
            "open loop, from {} to {}/s",
            format_rate(*from_per_s),
            format_rate(*to_per_s)
        ),
        Arrivals::Replayed { file } => format!("open loop, arrivals recorded in {file}"),
    }
}

pub(crate) fn client(kind: ClientKind) -> &'static str {
    match kind {
        ClientKind::Raw => "raw",
        ClientKind::Driver => "driver",
        ClientKind::Cql => "cql",
    }
}

fn is_unsteady(step: &BenchStep) -> bool {
    let steady = step.steady.as_ref().and_then(|one| one.steady);
    steady == Some(false)
}

/// Returns whether the step has a problem that must not be overlooked.
pub(crate) fn is_doubtful(step: &BenchStep) -> bool {
    !step.invalid.is_empty()
        || is_unsteady(step)
        || step.verification.as_ref().is_some_and(|v| !v.holds())
}

/// Returns the sentences under a step's numbers.
pub(crate) fn of_step(step: &BenchStep) -> Vec<String> {
    let is_open = step.arrivals != Arrivals::Closed;
    let mut said = vec![format!(
        "{}: {}, {} in flight at most, {} client.",
        step.name,
        arrivals(&step.arrivals),
        format_count(u64::from(step.in_flight)),
        client(step.client)
    )];
    said.extend(step.invalid.iter().map(|why| format!("INVALID: {why}.")));
    if let Some(ended_ns) = step.warm_up_ended_ns {
        let warm_up_ns = ended_ns.saturating_sub(step.started_ns);
        said.push(format!("Warm-up of {} left out.", format_ns(warm_up_ns)));
    }
    if let Some(steady) = &step.steady {
        let word = match steady.steady {
            Some(true) => "Steady",
            Some(false) => "Not steady",
            None => "Steadiness unknown",
        };
        said.push(format!("{word}: {}.", steady.how));
    }
    if is_open {
        said.push(format!(
            "The generator itself was late by {} (p99), {} at most; {} due operations were not sent at the end.",
            format_ns(step.lag.p99_ns),
            format_ns(step.lag.max_ns),
            format_count(step.backlog_at_end)
        ));
    }
    said.extend(step.verification.as_ref().map(verification));
    said.extend(copies(step));
    let shards = step.shards.as_ref();
    said.extend(
        shards.map(|s| {
            balancer::sentence(s.balancer_on, s.moved_chunks, "its collections", "the step")
        }),
    );
    said
}

/// Says which of the step's sizes include copies of documents that no query returns.
fn copies(step: &BenchStep) -> Option<String> {
    let copies = step.copies_on_shards();
    (copies > 0).then(|| {
        format!(
            "The shards held {} more than were counted: copies left behind by chunk moves, or by moves still in progress. The sizes after the step include them; the size per document is the total divided by the documents that were counted.",
            counted(copies, "document")
        )
    })
}

/// Says whether acknowledged writes were found.
pub(crate) fn verification(v: &Verification) -> String {
    let word = match v.verdict() {
        None => "Not verified",
        Some(false) => "VERIFICATION FAILED",
        Some(true) => "Verified",
    };
    let mut parts = vec![match v.expected.zip(v.counted) {
        Some((expected, counted)) => format!(
            "{} documents expected, {} counted",
            format_count(expected),
            format_count(counted)
        ),
        None => "documents were not counted, for it is not known how many there should be".into(),
    }];
    if v.sampled > 0 {
        parts.push(format!(
            "of {} read back {} missing and {} different",
            format_count(v.sampled),
            format_count(v.missing),
            format_count(v.different)
        ));
    }
    if v.in_doubt > 0 {
        parts.push(format!(
            "{} that failed may be there or not (no answer came, or the write concern was not met)",
            counted(v.in_doubt, "write")
        ));
    }
    format!("{word}: {}.", parts.join("; "))
}

/// Describes the search for a maximum.
pub(crate) fn saturation(saturation: &Saturation) -> String {
    let Some(per_s) = saturation.maximum_per_s else {
        return match saturation.untold_from_per_s {
            Some(untold) if !saturation.all_missed() => format!(
                "Whether any load meets {} cannot be told: the client did not keep up with {} per second.",
                saturation.objective,
                format_rate(untold)
            ),
            _ => format!("No load that was tried met {}.", saturation.objective),
        };
    };
    let mut said = format!(
        "Maximum with {}: {} operations per second, {}.",
        saturation.objective,
        format_rate(per_s),
        match saturation.confirmed {
            true => "held in a confirming step",
            false => "not confirmed by a further step",
        }
    );
    said += &match saturation.confirmed {
        true => above_maximum(saturation),
        false => not_confirmed(&saturation.confirmations),
    };
    let share = saturation.others_cpu_share;
    if let Some(share) = share.filter(|share| *share > QUIET_SHARE_MAX) {
        said += &format!(
            " The host was not quiet: up to {} of its CPU time went to others during a probe, so on a quiet one \
             the maximum may be higher.",
            format_share(share)
        );
    }
    said
}

/// Returns what is known of higher rates than one that holds.
fn above_maximum(saturation: &Saturation) -> String {
    match (saturation.missed_from_per_s, saturation.untold_from_per_s) {
        (Some(missed), _) => format!(
            " It lies between this and {}, which missed it.",
            format_rate(missed)
        ),
        (None, Some(untold)) => format!(
            " The server may do more: the client did not keep up with {}.",
            format_rate(untold)
        ),
        (None, None) => String::new(),
    }
}

/// Says how the longer steps ended, none of which sustained what short ones did.
fn not_confirmed(confirmations: &[Confirmation]) -> String {
    let rates_of = |wanted: RateVerdict| {
        let of_kind = confirmations.iter().filter(|c| c.verdict == wanted);
        let rates: Vec<String> = of_kind.map(|c| format_rate(c.per_s)).collect();
        (!rates.is_empty()).then(|| rates.join(", "))
    };
    let mut said = String::new();
    if let Some(missed) = rates_of(RateVerdict::Missed) {
        said += &format!(" For longer, these rates missed it: {missed}; what lasts is less.");
    }
    if let Some(untold) = rates_of(RateVerdict::Untold) {
        said += &format!(" For longer, the client did not keep up with: {untold}.");
    }
    said
}

/// Returns the width of an interval, e.g. `± 2.1 %`; `None` if it is wider than the value, which says nothing of it.
pub(crate) fn margin(value: f64, interval: Option<(f64, f64)>) -> Option<String> {
    let (low, high) = interval?;
    let share = (high - low) / 2.0 / value;
    (value > 0.0 && (0.0..=1.0).contains(&share)).then(|| format!("± {}", format_share(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_measured_was_asked_for() {
        let mut document = RunDocument::begin("bench", Vec::new());
        (document.outcome, document.outcome_reason) = (Outcome::Ok, None);
        document.bench = Some(BenchMeasurement::default());
        assert_eq!(verdict(&document), ALL_WELL);
        let bench = document.bench.get_or_insert_default();
        bench.shapes.push(seekscope_run::SchemaShape {
            name: "time-series collection".into(),
            limitations: vec![seekscope_run::Limitation {
                what: "it was not measured".into(),
                why: "the server is too old".into(),
                remedy: "a newer one".into(),
            }],
            ..Default::default()
        });
        let expected = "OK, but without time-series collection, which could not be measured.";
        assert_eq!(verdict(&document), expected);
        let bench = document.bench.get_or_insert_default();
        bench.shapes[0].samples = 10;
        assert_eq!(
            verdict(&document),
            ALL_WELL,
            "a limitation of what was measured"
        );
    }

    #[test]
    fn what_missed_at_the_lowest_rate_is_missed_whatever_a_late_client_left_open() {
        let said = |missed, untold| {
            saturation(&Saturation {
                objective: "p99=1ms".into(),
                missed_from_per_s: missed,
                untold_from_per_s: untold,
                ..Saturation::default()
            })
        };
        for (missed, untold) in [(None, None), (Some(5.0), None), (Some(5.0), Some(9.0))] {
            assert_eq!(said(missed, untold), "No load that was tried met p99=1ms.");
        }
        assert!(said(Some(9.0), Some(5.0)).contains("cannot be told"));
    }

    #[test]
    fn a_margin_is_no_wider_than_its_value() {
        let margin = |low, high| margin(100.0, Some((low, high)));
        assert_eq!(margin(98.0, 102.0).as_deref(), Some("± 2.0 %"));
        assert_eq!(margin(-525.0, 725.0), None);
        assert_eq!(margin(102.0, 98.0), None);
    }

    #[test]
    fn a_maximum_comes_with_its_interval_and_what_disturbed_it() {
        let found = Saturation {
            objective: "p99=20ms".into(),
            maximum_per_s: Some(8_070.0),
            missed_from_per_s: Some(8_771.0),
            confirmed: true,
            others_cpu_share: Some(0.05),
            ..Saturation::default()
        };
        let said = saturation(&found);
        assert!(said.contains("between this and 8,771"), "{said}");
        assert!(!said.contains("quiet"), "{said}");
        let disturbed = Saturation {
            missed_from_per_s: None,
            untold_from_per_s: Some(8_771.0),
            others_cpu_share: Some(0.4),
            ..found
        };
        let said = saturation(&disturbed);
        assert!(said.contains("client did not keep up with 8,771"), "{said}");
        assert!(said.contains("not quiet: up to 40"), "{said}");
    }

    #[test]
    fn a_maximum_that_did_not_last_is_said_with_what_missed_it() {
        let of = |per_s, verdict| Confirmation { per_s, verdict };
        let found = Saturation {
            objective: "p99=20ms".into(),
            maximum_per_s: Some(1_000.0),
            missed_from_per_s: Some(1_040.0),
            confirmations: vec![
                of(1_000.0, RateVerdict::Missed),
                of(920.0, RateVerdict::Missed),
                of(846.0, RateVerdict::Untold),
            ],
            ..Saturation::default()
        };
        let said = saturation(&found);
        assert!(said.contains("1,000 operations per second, not confirmed"));
        assert!(!said.contains("lies between"), "{said}");
        assert!(
            said.contains("missed it: 1,000, 920; what lasts is less"),
            "{said}"
        );
        assert!(said.contains("did not keep up with: 846"), "{said}");
    }

    #[test]
    fn what_was_not_counted_is_not_said_to_be_none() {
        let read_back = Verification {
            sampled: 1_000,
            ..Verification::default()
        };
        let said = verification(&read_back);
        assert!(
            said.starts_with("Verified: documents were not counted"),
            "{said}"
        );
        assert!(said.contains("of 1,000 read back 0 missing"), "{said}");
        let nothing = verification(&Verification::default());
        assert!(nothing.starts_with("Not verified"), "{nothing}");
        let counted = Verification {
            expected: Some(5),
            counted: Some(5),
            ..read_back
        };
        assert!(verification(&counted).contains("5 documents expected, 5 counted"));
    }
}
