//! States what a reader must know before believing any number of a disk run.

use seekscope_run::units::{format_bytes, format_ns};
use seekscope_run::{DiskMeasurement, HostFacts, Outcome, RunDocument, StepGroup};

use super::steps::{Measured, NEARLY_ALL, fetched_share, held_to_per_s};
use super::tables::limit_text;
use crate::numbers::{counted, format_number, format_rate, format_share};
use crate::wording;

/// A distortion with this id has its own wording.
const IO_LIMIT_ID: &str = "cgroup-io-limit";

/// Returns one word for how the run ended, for style sheets and scripts; "limited" when it is complete but
/// its numbers need care.
pub(super) fn outcome_word(document: &RunDocument) -> &'static str {
    match wording::outcome_word(document) {
        "ok" if !reservations(document).is_empty() => "limited",
        word => word,
    }
}

/// Returns the first line of the report: how the run ended, then every reservation.
pub(super) fn first_line(document: &RunDocument) -> String {
    let mut sentences = vec![wording::outcome(document)];
    sentences.extend(reservations(document));
    sentences.join(" ")
}

/// Returns whether the run ended well, without reservations, so that the line can be omitted where space is limited.
pub(super) fn is_clean(document: &RunDocument) -> bool {
    document.outcome == Outcome::Ok
        && !wording::has_reservations(document)
        && reservations(document).is_empty()
}

fn reservations(document: &RunDocument) -> Vec<String> {
    let Some(measurement) = &document.disk else {
        return vec!["Nothing was measured.".into()];
    };
    let host = document.host.as_ref();
    [
        not_direct(measurement),
        not_fetched(measurement),
        host.and_then(|host| small_file(measurement, host)),
        held(measurement),
        limits(measurement),
        cpu_quota(measurement),
        host.and_then(busy),
        stalls(measurement),
        distortions(measurement),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn not_direct(measurement: &DiskMeasurement) -> Option<String> {
    let claimed = |m: &DiskMeasurement| m.steps.iter().flat_map(|s| &s.jobs).any(|j| j.job.direct);
    (!measurement.direct.real && claimed(measurement)).then(|| {
        "The reads were not direct: the page cache may have served some of them, so the figures \
         are not those of the disk alone."
            .into()
    })
}

fn not_fetched(measurement: &DiskMeasurement) -> Option<String> {
    let share = fetched_share(measurement).filter(|&share| share < NEARLY_ALL)?;
    measurement.direct.real.then(|| {
        format!(
            "Only {} of the bytes read directly were fetched from the device: the rates are not \
             those of the disk alone.",
            format_share(share)
        )
    })
}

fn small_file(measurement: &DiskMeasurement, host: &HostFacts) -> Option<String> {
    let (file, memory) = (measurement.file_bytes, host.memory_bytes);
    (file > 0 && file < memory).then(|| {
        format!(
            "The file ({}) is smaller than memory ({}): a cache of the hypervisor or of the device \
             may have served reads.",
            format_bytes(file),
            format_bytes(memory)
        )
    })
}

fn held(measurement: &DiskMeasurement) -> Option<String> {
    let per_s = held_to_per_s(measurement)?;
    Some(format!(
        "The rate was limited to {} operations per second, so the figures do not show the \
         limits of the disk.",
        format_rate(per_s)
    ))
}

fn limits(measurement: &DiskMeasurement) -> Option<String> {
    let limits = measurement.surroundings.io_limits.iter();
    let texts: Vec<String> = limits
        .map(|limit| format!("{} to {}", limit.what, limit_text(&limit.what, limit.per_s)))
        .collect();
    (!texts.is_empty()).then(|| {
        format!(
            "A cgroup limits {}: the figures reflect that limit as much as the disk.",
            texts.join(", ")
        )
    })
}

fn cpu_quota(measurement: &DiskMeasurement) -> Option<String> {
    let cpus = measurement.surroundings.cpu_quota?;
    Some(format!(
        "A cgroup allows {} CPUs, which may limit the load generator.",
        format_number(cpus)
    ))
}

fn busy(host: &HostFacts) -> Option<String> {
    (host.cpus > 0 && host.load_1m > f64::from(host.cpus)).then(|| {
        format!(
            "The host was busy when the run began (load {} on {} CPUs): other work may have \
             affected the figures.",
            format_number(host.load_1m),
            host.cpus
        )
    })
}

fn stalls(measurement: &DiskMeasurement) -> Option<String> {
    let steps = measurement.steps.iter();
    let of_disk = steps.filter(|step| step.group != StepGroup::Generator);
    let stalls = of_disk.filter_map(|step| Measured::of(step)?.stall_ns());
    let stalls: Vec<u64> = stalls.collect();
    let longest_ns = stalls.iter().max()?;
    Some(format!(
        "In {}, a single operation took longer than all others together, up to {}: something \
         delayed it, so that the rate and the mean there are not those of the disk alone.",
        counted(stalls.len() as u64, "step"),
        format_ns(*longest_ns)
    ))
}

fn distortions(measurement: &DiskMeasurement) -> Option<String> {
    let ids: Vec<&str> = (measurement.surroundings.distortions.iter())
        .map(|distortion| distortion.id.as_str())
        .filter(|&id| id != IO_LIMIT_ID || measurement.surroundings.io_limits.is_empty())
        .collect();
    let place = match measurement.profile.as_str() {
        "job" => "see the report page",
        _ => "see below",
    };
    (!ids.is_empty()).then(|| {
        format!(
            "Factors that distort the result ({place}): {}.",
            ids.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{Distortion, IoLimit};

    use super::super::made_up::{MadeUp, random};
    use super::*;

    fn document() -> RunDocument {
        let mut document = RunDocument::begin("disk", Vec::new());
        document.outcome = Outcome::Ok;
        document.host = Some(HostFacts {
            cpus: 2,
            memory_bytes: 1 << 30,
            load_1m: 0.5,
            ..HostFacts::default()
        });
        let mut measurement = DiskMeasurement {
            file_bytes: 4 << 30,
            ..DiskMeasurement::default()
        };
        measurement.direct.real = true;
        document.disk = Some(measurement);
        document
    }

    fn with(change: impl Fn(&mut DiskMeasurement)) -> String {
        let mut document = document();
        change(document.disk.as_mut().unwrap());
        assert!(!is_clean(&document));
        assert_eq!(outcome_word(&document), "limited");
        first_line(&document)
    }

    #[test]
    fn a_clean_run_says_only_that() {
        let document = document();
        assert!(is_clean(&document));
        assert_eq!(outcome_word(&document), "ok");
        assert_eq!(
            first_line(&document),
            "Complete run: everything asked for was measured."
        );
    }

    #[test]
    fn each_reservation_is_in_the_first_line() {
        assert!(with(|m| m.file_bytes = 1 << 20).contains("(1.00 MiB) is smaller than memory"));
        let limit = IoLimit {
            cgroup: "/slow".into(),
            device: "254:0".into(),
            what: "read IOPS".into(),
            per_s: 150,
        };
        let text = with(|m| m.surroundings.io_limits = vec![limit.clone()]);
        assert!(
            text.contains("A cgroup limits read IOPS to 150 per second"),
            "{text}"
        );
        let distortion = |id: &str| Distortion {
            id: id.into(),
            what: String::new(),
            consequence: String::new(),
            remedy: String::new(),
        };
        let text = with(|m| {
            m.surroundings.io_limits = vec![limit.clone()];
            m.surroundings.distortions = vec![distortion("overlay"), distortion(IO_LIMIT_ID)];
        });
        assert!(text.ends_with("(see below): overlay."), "{text}");
        assert!(with(|m| m.surroundings.cpu_quota = Some(0.5)).contains("allows 0.50 CPUs"));
    }

    #[test]
    fn steps_held_to_a_rate_are_said_and_jobs_are_not() {
        let held_ramp = |group| {
            let mut made_up = MadeUp::default();
            for per_s in [20.0, 50.0] {
                let mut job = random(4096, 1);
                job.rate_per_s = Some(per_s);
                made_up.step(group, "", job, per_s, 1);
            }
            made_up.measurement.steps
        };
        let text = with(|m| m.steps = held_ramp(StepGroup::Ramp));
        assert!(
            text.contains("limited to 50.0 operations per second, so the figures do not show the limits of the disk"),
            "{text}"
        );
        let mut job = document();
        job.disk.as_mut().unwrap().steps = held_ramp(StepGroup::Job);
        assert!(is_clean(&job), "{}", first_line(&job));
    }

    #[test]
    fn stalls_are_said() {
        let mut made_up = MadeUp::default();
        made_up.step(StepGroup::Ramp, "", random(4096, 1), 939.0, 41_919);
        made_up.measurement.steps[0].jobs[0].reads.latency.max_ns = 113_377_279;
        let steps = made_up.measurement.steps;
        let text = with(|m| m.steps.clone_from(&steps));
        assert!(
            text.contains(
                "In 1 step, a single operation took longer than all others together, up to 113 ms"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_busy_host_and_an_early_end_are_said() {
        let mut busy = document();
        busy.host.as_mut().unwrap().load_1m = 10.0;
        assert!(first_line(&busy).contains("load 10.0 on 2 CPUs"));
        let mut interrupted = document();
        interrupted.outcome = Outcome::Partial;
        interrupted.outcome_reason = Some("interrupted".into());
        assert!(first_line(&interrupted).starts_with("Partial run (interrupted)"));
        assert!(!is_clean(&interrupted));
        interrupted.disk = None;
        assert!(first_line(&interrupted).contains("Nothing was measured."));
    }
}
