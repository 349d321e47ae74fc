//! Distortions that come from control groups and settings of the host.

use super::{Detector, Distortion, Facts};
use crate::IoLimit;
use crate::units::format_bytes;

pub(super) const DETECTORS: &[Detector] = &[io_limit, few_cpus, memory_limit, huge_pages];

/// With fewer CPUs, the generator and the server take them from one another.
const CPUS_ENOUGH: f64 = 2.0;

fn io_limit(facts: &Facts<'_>) -> Option<Distortion> {
    let limits: Vec<String> = facts.limits.io.iter().map(describe).collect();
    (!limits.is_empty()).then(|| {
        Distortion::new(
            "cgroup-io-limit",
            format!("control groups limit the disk: {}", limits.join("; ")),
            "These numbers, and not the disk, will be measured once they are reached; requests \
             beyond them wait in the kernel, so that latency rises with every queued request.",
            "Lift the limit, or measure outside of the group, to see the disk itself; keep it to \
             see what the database will get.",
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
        "A process that has used up its share sleeps until the next period, mostly 100 ms: \
         latencies show pauses, and rates a ceiling, that are not the disk's.",
        "Raise the quota to at least two CPUs for the measurement.",
    ))
}

fn memory_limit(facts: &Facts<'_>) -> Option<Distortion> {
    let bytes = facts.limits.memory_bytes?;
    Some(Distortion::new(
        "memory-limit",
        format!("control groups allow {} of memory", format_bytes(bytes)),
        "The page cache counts towards it: less of the data stays cached than the host's memory \
         suggests, and buffered reads slow down when the limit is near.",
        "Set the database's cache with this limit in mind, not the host's memory.",
    ))
}

fn huge_pages(facts: &Facts<'_>) -> Option<Distortion> {
    (facts.host.transparent_huge_pages.as_deref() == Some("always")).then(|| {
        Distortion::new(
            "transparent-huge-pages",
            "transparent huge pages are always on".into(),
            "MongoDB before 8.0 and other databases with scattered accesses to memory lose time \
             and memory to it; MongoDB 8.0 and later want it on.",
            "For MongoDB before 8.0: echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    })
}
