//! Compares how a file lies, and what its scans take.
//!
//! A disk's service times are measured anew for each run, or taken from what was seen, so the scans that two runs predict
//! for one and the same file differ. How many of the steps from leaf to leaf are in order is counted, and does not. The scan
//! of now is therefore told by the model that made the prediction: with s the share of steps in order, that model's scan T
//! and its scan of the leaves in order T₀,
//!
//! ```text
//! T now = T₀ + (T - T₀) · (1 - s now) / (1 - s then)
//! ```
//!
//! What disorder costs is proportional to the steps that are seeks. That the file grew or shrank changes nothing.

use std::collections::BTreeSet;

use seekscope_run::{Finding, IoLimit, LayoutFile};

use super::{Examined, other_server};
use crate::answers::name_of;

/// A change of the steps from leaf to leaf that are in order, as a share of all, that tells.
const IN_ORDER_MIN: f64 = 0.1;

/// The shares (0..=1) of the steps from leaf to leaf that are in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InOrder {
    before: f64,
    after: f64,
}

impl InOrder {
    /// Returns `None` for findings about something else, and where one of the runs did not record the file's order.
    pub(super) fn of(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<Self> {
        if finding.id != "layout.key-order-lost" {
            return None;
        }
        let share = |run| {
            Some(
                file(run, &finding.subject)?
                    .order
                    .as_ref()?
                    .sequential_share,
            )
        };
        Some(Self {
            before: share(earlier)?,
            after: share(now)?,
        })
    }

    /// Returns how the order changed: "better", "worse" or "same".
    pub(super) fn change(self) -> &'static str {
        match self.after - self.before {
            more if more > IN_ORDER_MIN => "better",
            more if more < -IN_ORDER_MIN => "worse",
            _ => "same",
        }
    }

    pub(super) fn in_words(self) -> String {
        format!(
            "{:.0} % of the steps from leaf to leaf in order then, {:.0} % now",
            self.before * 100.0,
            self.after * 100.0
        )
    }
}

/// Returns what a scan of the finding's file takes, then and now, s; `None` where they cannot be compared.
pub(super) fn scans(
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<(f64, f64)> {
    let scan = |run| file(run, &finding.subject)?.predicted_scan.as_ref();
    let then = scan(earlier)?;
    match InOrder::of(finding, earlier, now) {
        Some(order) if order.before < 1.0 => {
            let disorder = (1.0 - order.after) / (1.0 - order.before);
            let in_order_s = then.ordered_s.min(then.now_s);
            Some((
                then.now_s,
                in_order_s + (then.now_s - in_order_s) * disorder,
            ))
        }
        _ if is_same_disk(earlier, now) => Some((then.now_s, scan(now)?.now_s)),
        _ => None,
    }
}

pub(super) fn file<'a>(run: Examined<'a>, subject: &str) -> Option<&'a LayoutFile> {
    let mut files = run.document.layout.as_ref()?.files.iter();
    files.find(|file| name_of(file) == subject)
}

/// What tells a disk from others. Its model does not: it is measured anew for each run.
#[derive(Debug, PartialEq)]
struct Disk<'a> {
    device: &'a str,
    model: Option<&'a str>,
    cpu: Option<(&'a str, u32)>,
    /// Device, what is limited, and how much of it is granted per second.
    limits: BTreeSet<(&'a str, &'a str, u64)>,
    is_measured: bool,
    is_typical: bool,
}

impl<'a> Disk<'a> {
    fn of(run: Examined<'a>) -> Option<Self> {
        let document = run.document;
        let (device, layout) = (document.device.as_ref()?, document.layout.as_ref()?);
        let host = document.examination.as_ref()?.host.as_ref()?;
        let limits = host.surroundings.io_limits.iter();
        let limit = |limit: &'a IoLimit| (limit.device.as_str(), limit.what.as_str(), limit.per_s);
        Some(Self {
            device: device.counted_device(),
            model: device.model.as_deref(),
            cpu: document
                .host
                .as_ref()
                .map(|host| (host.cpu_model.as_str(), host.cpus)),
            limits: limits.map(limit).collect(),
            is_measured: layout.disk_measured,
            is_typical: layout.is_for_typical_disk(),
        })
    }
}

/// Returns whether scans were predicted for the same disk. Where a run does not record the disk, what it calls it
/// decides; where one of them predicted none, nothing is against it.
fn is_same_disk(earlier: Examined<'_>, now: Examined<'_>) -> bool {
    let (then, now_for) = (&earlier.document.layout, &now.document.layout);
    let (Some(then), Some(now_for)) = (then, now_for) else {
        return true;
    };
    let is_other = || other_server(earlier.document, now.document).is_some();
    then.predicted_for == now_for.predicted_for
        || Disk::of(earlier)
            .zip(Disk::of(now))
            .is_some_and(|(then, now)| then == now && !is_other())
}
