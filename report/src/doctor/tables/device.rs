//! Shows how much of the disk's capability is used, and by whom.

use seekscope_doctor::answers::{DeviceLoad, DeviceUser};
use seekscope_run::units::format_ns;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX, UNKNOWN, and_more};
use crate::layout::sentences::format_s;
use crate::numbers::{format_mb, format_mean_ns, format_number, format_rate, format_share};
use crate::table::{Cell, Table};

/// Returns the figures of the disk as a whole.
pub(in super::super) fn load(input: &DoctorReportInput<'_>) -> Option<Table> {
    let load = input.answers().device_load.as_ref()?;
    let mut table = Table::new(1, &["the disk", "requests/s", "MB/s", "each takes"]);
    let ns = |ns: Option<f64>| Cell::or(ns.map(format_mean_ns), UNKNOWN);
    table.row([
        "reads".into(),
        format_rate(load.reads_per_s).into(),
        format_mb(load.read_bytes_per_s).into(),
        ns(load.read_ns),
    ]);
    table.row([
        "writes".into(),
        format_rate(load.writes_per_s).into(),
        format_mb(load.write_bytes_per_s).into(),
        ns(load.write_ns),
    ]);
    table.row([
        "busiest second".into(),
        format_rate(load.peak_requests_per_s).into(),
        format_mb(load.peak_bytes_per_s).into(),
        Cell::Missing(NONE),
    ]);
    if let Some(able) = load.able_requests_per_s {
        table.row([
            "able to do, in this pattern".into(),
            format_rate(able).into(),
            Cell::Missing(NONE),
            Cell::Missing(NONE),
        ]);
    }
    Some(table)
}

/// Says what they mean.
pub(in super::super) fn load_sentences(input: &DoctorReportInput<'_>) -> Vec<String> {
    let Some(load) = input.answers().device_load.as_ref() else {
        return Vec::new();
    };
    let mut sentences: Vec<String> = utilisation(load).into_iter().collect();
    sentences.push(format!(
        "{} requests are under way on average.",
        format_number(load.queue_depth)
    ));
    if let Some(share) = load.server_share {
        sentences.push(format!(
            "The examined server causes {} of the bytes that the disk moves.",
            format_share(share)
        ));
    }
    if let Some(ceiling) = &load.ceiling {
        sentences.push(format!("The load is held down by {ceiling}."));
    }
    vec![sentences.join(" ")]
}

fn utilisation(load: &DeviceLoad) -> Option<String> {
    let used = format_share(load.utilisation?);
    let peak = load.peak_utilisation.map(format_share);
    let peak = peak.map_or_else(String::new, |peak| {
        format!(", {peak} in the busiest second")
    });
    Some(format!(
        "{used} of what the disk can do is used{peak}; that ability is {}.",
        load.ability_basis
    ))
}

/// Returns files by user.
pub(in super::super) fn users(input: &DoctorReportInput<'_>) -> Option<Table> {
    let users = &input.answers().device_users;
    let mut table = Table::new(
        4,
        &[
            "collection, index or file",
            "used by",
            "how",
            "pattern",
            "waiting",
            "device time",
            "calls/s",
            "asked MB/s",
            "disk MB/s",
            "p50",
            "p99",
        ],
    );
    for user in users.iter().take(ROWS_MAX) {
        table.row(user_row(user));
    }
    and_more(&mut table, users.len());
    table.or_nothing()
}

fn user_row(user: &DeviceUser) -> [Cell; 11] {
    let name = user.namespace.as_ref().unwrap_or(&user.path);
    let sequential = user
        .sequential_share
        .map(|share| format!(" ({} in order)", format_share(share)));
    let pattern = user.pattern.map(|kind| {
        let share = sequential.unwrap_or_default();
        format!("{}{share}", kind.name())
    });
    [
        name.as_str().into(),
        user.thread_role.name().into(),
        if user.writes { "writes" } else { "reads" }.into(),
        Cell::or(pattern, UNKNOWN),
        format!("{}/s", format_s(user.waiting_s_per_s)).into(),
        Cell::or(user.device_time_share.map(format_share), UNKNOWN),
        format_rate(user.calls_per_s).into(),
        format_mb(user.bytes_per_s).into(),
        format_mb(user.device_bytes_per_s).into(),
        format_ns(user.p50_ns).into(),
        format_ns(user.p99_ns).into(),
    ]
}
