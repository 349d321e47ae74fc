//! Limits how many threads a knob may give to a server: as many as it has processors.

use mongodb::bson::Document;
use seekscope_run::tune::KnobValue;
use seekscope_tune::space::Range;

use super::{Discovered, ServerReplies, fit, whole};

impl Discovered {
    /// Bounds numbers of threads by the processors of the host and by those that the process may use. The
    /// current value always remains possible.
    pub(super) fn bound_threads(&mut self, replies: &ServerReplies, seen: Option<u32>) {
        let Some(cpus) = of_host(&replies.host).into_iter().chain(seen).min() else {
            return;
        };
        for entry in self.entries.iter_mut().filter(|entry| entry.at_most_cpus) {
            let current = entry.knob.default.number().unwrap_or_default();
            let max = f64::from(cpus).max(current);
            if fit::cap(entry, max) {
                let why_that = match max > f64::from(cpus) {
                    true => ", which it is set to now",
                    false => "",
                };
                let said = format!(
                    "it is not raised above {max}{why_that}: the server is limited to {cpus} processors"
                );
                self.cpu_bounds.insert(entry.knob.name.clone(), said);
                // A preset asks for many threads, not for an exact number.
                let presets = self.presets.iter_mut();
                let values = presets.filter_map(|p| p.values.get_mut(&entry.knob.name));
                for value in values.filter(|value| value.number().is_some_and(|n| n > max)) {
                    *value = most(&entry.knob.range).unwrap_or_else(|| value.clone());
                }
            }
        }
    }
}

/// Returns the upper end of a range of whole numbers.
fn most(range: &Range) -> Option<KnobValue> {
    match range {
        Range::Integer { high, .. } => Some(KnobValue::Integer(*high)),
        _ => None,
    }
}

/// Reads `hostInfo`; newer servers report how many processors their process may use.
fn of_host(host: &Document) -> Option<u32> {
    let system = host.get_document("system").ok()?;
    let count = |name: &str| u32::try_from(system.get(name).and_then(whole)?).ok();
    let counts = ["numCores", "numCoresAvailableToProcess"];
    counts
        .into_iter()
        .filter_map(count)
        .filter(|n| *n > 0)
        .min()
}
