//! Distortions that come from control groups and settings of the host.

use super::{Detector, Distortion, Facts};
use crate::IoLimit;
use crate::units::format_bytes;

pub(super) const DETECTORS: &[Detector] = &[io_limit, few_cpus, memory_limit, huge_pages];

/// The fewest CPUs with which the load generator and the server do not take them from one another.
const CPUS_ENOUGH: f64 = 2.0;

fn io_limit(facts: &Facts<'_>) -> Option<Distortion> {
    let limits: Vec<String> = facts.limits.io.iter().map(describe).collect();
    (!limits.is_empty()).then(|| {
        Distortion::new(
            "cgroup-io-limit",
            format!("control groups limit the disk: {}", limits.join("; ")),
            "Once these limits are reached, the measurement shows them and not the disk; requests \
             beyond them wait in the kernel, so that latency rises with every queued request.",
            "Lift the limits, or measure outside the control group, to see the disk itself; keep \
             them to see what the database will get.",
        )
    })
}

fn describe(limit: &IoLimit) -> String {
    let IoLimit {
        cgroup,
        device,
        what,
        per_s,
    } = limit;
    let rate = match what.strip_suffix("bytes/s") {
        Some(direction) => format!("{direction}{}/s", format_bytes(*per_s)),
        None => format!("{per_s} {what}"),
    };
    format!("{rate} on {device} (group {cgroup})")
}

fn few_cpus(facts: &Facts<'_>) -> Option<Distortion> {
    let cpus = facts.limits.cpus.filter(|cpus| *cpus < CPUS_ENOUGH)?;
    Some(Distortion::new(
        "cpu-quota",
        format!("control groups allow {cpus:.2} CPUs"),
        "A process that has used up its share sleeps until the next period, usually of 100 ms, \
         begins: latencies show pauses, and rates show a ceiling, that the disk does not cause.",
        "Raise the quota to at least two CPUs for the measurement.",
    ))
}

fn memory_limit(facts: &Facts<'_>) -> Option<Distortion> {
    let bytes = facts.limits.memory_bytes?;
    Some(Distortion::new(
        "memory-limit",
        format!("control groups allow {} of memory", format_bytes(bytes)),
        "The page cache counts towards this limit: less data stays cached than the host's memory \
         suggests, and buffered reads slow down close to the limit.",
        "Set the database's cache with this limit in mind, not the host's memory.",
    ))
}

fn huge_pages(facts: &Facts<'_>) -> Option<Distortion> {
    (facts.host.transparent_huge_pages.as_deref() == Some("always")).then(|| {
        Distortion::new(
            "transparent-huge-pages",
            "transparent huge pages are always on".into(),
            "Versions of MongoDB before 8.0, and other databases that access memory at random, \
             lose time and memory to them; MongoDB 8.0 and later should run with them enabled.",
            "For MongoDB before 8.0: echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    })
}
