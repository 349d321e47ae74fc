//! Shows the run itself: its evidence and its cost.

use seekscope_run::Deployment;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::super::DoctorReportInput;
use crate::facts::{Fact, date, known};

/// Returns the evidence beside trace and counters.
pub(in super::super) fn examination_facts(input: &DoctorReportInput<'_>) -> Option<Vec<Fact>> {
    let record = input.examination()?;
    let phase = input.phase();
    let observed = phase.map(|phase| format_ns(phase.ended_ns.saturating_sub(phase.started_ns)));
    let deployment = match record.deployment {
        Deployment::Standalone => "a server on its own",
        Deployment::ReplicaSet => "a replica set",
        Deployment::Sharded => "a sharded cluster",
    };
    let disk = record.disk_opinion.as_ref().or(record.disk.as_ref());
    let ability = disk.map(|disk| format!("{}: {}", disk.basis(), disk.source));
    let ftdc = record.ftdc.as_ref().map(|ftdc| {
        let samples = format_count(ftdc.samples);
        let (from, to) = (date(ftdc.first_realtime_ns), date(ftdc.last_realtime_ns));
        format!("{samples} samples from {from} to {to}")
    });
    let examined = record.examined();
    let mut facts = vec![
        ("Observed", observed),
        ("Deployment", Some(deployment.into())),
    ];
    // The members of a deployment have pages of their own.
    if !input.document.is_of_deployment() {
        facts.extend([
            ("Examined", examined.and_then(|member| known(&member.name))),
            ("As", examined.map(|member| member.state.name().into())),
            (
                "Feature compatibility version",
                examined.and_then(|member| member.compatibility_version.clone()),
            ),
            ("What the disk can do", ability),
            ("Diagnostic files of the server", ftdc),
        ]);
    }
    let names = match record.redacted {
        true => "replaced by hashes",
        false => "as they are",
    };
    facts.push(("Names", Some(names.into())));
    Some(facts)
}

/// Returns the cost of examining.
pub(in super::super) fn cost(input: &DoctorReportInput<'_>) -> Option<Vec<Fact>> {
    let cost = input.examination()?.cost.as_ref()?;
    Some(vec![
        ("CPU time of seekscope", Some(format_ns(cost.client_cpu_ns))),
        (
            "… of its programs in the kernel",
            cost.kernel_cpu_ns.map(format_ns),
        ),
        (
            "Most memory",
            Some(format_bytes(cost.client_peak_rss_bytes)),
        ),
        (
            "Commands sent to servers",
            Some(format_count(cost.commands)),
        ),
        (
            "Ended before its time",
            Some(cost.ended_early.clone().unwrap_or_else(|| "no".into())),
        ),
    ])
}
