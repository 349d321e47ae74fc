//! Shows what distorts the numbers around the disk, and how they were made.

use seekscope_run::units::format_bytes;
use seekscope_run::{DiskMeasurement, EngineKind};

use super::super::DiskReportInput;
use crate::facts::{Fact, known, known_bytes};
use crate::numbers::{format_mb, format_number, format_rate};
use crate::table::Table;

/// Returns what makes the disk look different from what it is, or hurts a database on it.
pub(in super::super) fn distortions(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(4, &["what", "found", "what it does", "what to do"]);
    for distortion in &input.measurement()?.surroundings.distortions {
        let remedy = match distortion.remedy.as_str() {
            "" => "nothing",
            remedy => remedy,
        };
        table.row([
            distortion.id.as_str().into(),
            distortion.what.as_str().into(),
            distortion.consequence.as_str().into(),
            remedy.into(),
        ]);
    }
    table.or_nothing()
}

/// Returns the limits that cgroups set.
pub(in super::super) fn limits(input: &DiskReportInput<'_>) -> Option<Table> {
    let surroundings = &input.measurement()?.surroundings;
    let mut table = Table::new(2, &["limited by cgroup", "what", "to"]);
    for limit in &surroundings.io_limits {
        table.row([
            limit.cgroup.as_str().into(),
            format!("{} of device {}", limit.what, limit.device).into(),
            limit_text(&limit.what, limit.per_s).into(),
        ]);
    }
    if let Some(cpus) = surroundings.cpu_quota {
        table.row([
            "any above".into(),
            "CPUs".into(),
            format_number(cpus).into(),
        ]);
    }
    if let Some(bytes) = surroundings.memory_limit_bytes {
        table.row([
            "any above".into(),
            "memory".into(),
            format_bytes(bytes).into(),
        ]);
    }
    table.or_nothing()
}

/// Returns the value of a limit: `150`, or `150 MB/s` where bytes are limited.
pub(in super::super) fn limit_text(what: &str, per_s: u64) -> String {
    if what.contains("bytes") {
        format!("{} MB/s", format_mb(per_s as f64))
    } else {
        format!("{} per second", format_rate(per_s as f64))
    }
}

/// Returns how the numbers were made.
pub(in super::super) fn measurement_facts(measurement: &DiskMeasurement) -> Vec<Fact> {
    let file = match &measurement.existing_file {
        Some(path) => format!("{path}, only read"),
        None => "unnamed temporary file of seekscope, removed after the run".into(),
    };
    let direct = if measurement.direct.real { "yes" } else { "no" };
    let evidence = &measurement.direct.evidence;
    let clock_ns = measurement.clock_read_ns;
    vec![
        ("Profile", known(&measurement.profile)),
        ("File", Some(file)),
        ("Size of the file", known_bytes(measurement.file_bytes)),
        (
            "Written by this run",
            Some(format_bytes(measurement.written_bytes)),
        ),
        (
            "Direct I/O bypasses the cache",
            Some(match evidence.as_str() {
                "" => direct.to_string(),
                evidence => format!("{direct}: {evidence}"),
            }),
        ),
        ("Alignment", known_bytes(measurement.direct.alignment_bytes)),
        (
            "Reading the clock",
            (clock_ns > 0.0).then(|| format!("{} ns", format_number(clock_ns))),
        ),
        ("Engines", known(&engines(measurement))),
    ]
}

/// Returns which engines ran, and what was unavailable to them.
fn engines(measurement: &DiskMeasurement) -> String {
    let jobs = || measurement.steps.iter().flat_map(|step| &step.jobs);
    let mut words: Vec<&str> = EngineKind::ALL
        .into_iter()
        .filter(|&engine| jobs().any(|job| job.job.engine == engine))
        .map(EngineKind::name)
        .collect();
    for note in jobs().flat_map(|job| &job.engine_notes) {
        if !words.contains(&note.as_str()) {
            words.push(note);
        }
    }
    words.join(", ")
}
