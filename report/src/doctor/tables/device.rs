//! Shows how much of the disk's capability is used, and by whom.

use seekscope_doctor::answers::{DeviceLoad, DeviceUser};
use seekscope_pattern::{DOMINANT_SHARE, PatternKind};
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
    // What waits without having moved anything are syncs.
    let syncs = user.calls_per_s == 0.0 && user.waiting_s_per_s > 0.0;
    let how = match (syncs, user.writes) {
        (true, _) => "syncs",
        (false, true) => "writes",
        (false, false) => "reads",
    };
    let ns = |ns: u64| match syncs {
        true => Cell::Missing(NONE),
        false => Cell::or((ns > 0).then(|| format_ns(ns)), UNKNOWN),
    };
    [
        name.as_str().into(),
        user.thread_role.name().into(),
        how.into(),
        match syncs {
            true => Cell::Missing(NONE),
            false => Cell::or(pattern(user), UNKNOWN),
        },
        format!("{}/s", format_s(user.waiting_s_per_s)).into(),
        Cell::or(user.device_time_share.map(format_share), UNKNOWN),
        format_rate(user.calls_per_s).into(),
        format_mb(user.bytes_per_s).into(),
        format_mb(user.device_bytes_per_s).into(),
        ns(user.p50_ns),
        ns(user.p99_ns),
    ]
}

fn pattern(user: &DeviceUser) -> Option<String> {
    let kind = user.pattern?;
    let share = user.sequential_share.filter(|share| share.is_finite());
    Some(match (kind, share) {
        (PatternKind::Few, _) => "too few calls to tell".into(),
        // Each stream goes on in order, the others come in between.
        (PatternKind::Sequential, Some(share)) if share < DOMINANT_SHARE => format!(
            "sequential, several streams in turn ({} directly in order)",
            format_share(share)
        ),
        (_, Some(share)) => format!("{} ({} in order)", kind.name(), format_share(share)),
        (_, None) => kind.name().into(),
    })
}

#[cfg(test)]
mod tests {
    use seekscope_pattern::ThreadRole;
    use seekscope_run::FileRole;

    use super::*;

    fn user(pattern: Option<PatternKind>, share: f64, calls_per_s: f64) -> DeviceUser {
        DeviceUser {
            path: "a.wt".into(),
            role: FileRole::Collection,
            namespace: None,
            thread_role: ThreadRole::Checkpoint,
            writes: true,
            calls_per_s,
            bytes_per_s: 0.0,
            device_bytes_per_s: 0.0,
            waiting_s_per_s: 264e-6,
            device_time_share: None,
            pattern,
            sequential_share: Some(share),
            p50_ns: 0,
            p99_ns: 0,
        }
    }

    #[test]
    fn the_words_go_with_the_share() {
        let told = |kind, share| pattern(&user(Some(kind), share, 1.0)).unwrap();
        assert_eq!(
            told(PatternKind::Sequential, 0.9),
            "sequential (90.0 % in order)"
        );
        let streams = "sequential, several streams in turn (46.2 % directly in order)";
        assert_eq!(told(PatternKind::Sequential, 0.462), streams);
        assert_eq!(told(PatternKind::Few, 1.0), "too few calls to tell");
    }

    /// A regression: a sync was a write that never came, with percentiles of nothing.
    #[test]
    fn a_sync_is_called_one() {
        let row = user_row(&user(None, 0.0, 0.0));
        assert_eq!(row[2], Cell::from("syncs"));
        assert!(row[9] == Cell::Missing(NONE) && row[10] == Cell::Missing(NONE));
    }
}
