//! What a session's record says from the start: goal and knobs.

use seekscope_run::tune::{TuneRecord, TunedKnob};
use seekscope_settings::KnobEntry;
use seekscope_tune::optimiser::Goal;
use serde::Serialize;

use super::asked::Asked;
use super::definition::Definition;

/// What the record says from the start.
pub fn fill(
    record: &mut TuneRecord,
    definition: &Definition,
    asked: &Asked,
    entries: &[KnobEntry],
) {
    let measured = &definition.measured;
    let command = measured.command.as_ref().map(|_| "a command".to_string());
    record.workload = match &measured.workload {
        Some(name) => format!("{name} {}", measured.workload_options)
            .trim()
            .into(),
        None => command.unwrap_or_default(),
    };
    record.metric.clone_from(&asked.metric.name);
    record.unit = asked.metric.unit.into();
    record.maximise = asked.metric.goal == Goal::Maximise;
    record.constraints = asked.constraints.iter().map(|c| c.text.clone()).collect();
    record.seed = definition.plan.seed;
    record.left_out.clone_from(&definition.left_out);
    record.knobs = entries.iter().map(tuned_knob).collect();
}

fn tuned_knob(entry: &KnobEntry) -> TunedKnob {
    TunedKnob {
        name: entry.knob.name.clone(),
        baseline: entry.knob.default.clone(),
        range: entry.range_in_words(),
        logarithmic: entry.is_logarithmic(),
        change: letter(entry.knob.change),
        risk: letter(entry.knob.risk),
        how: entry.set.in_words(),
    }
}

/// As knob files write it, e.g. "R".
fn letter(of: impl Serialize) -> String {
    let written = serde_json::to_value(of).ok();
    written
        .as_ref()
        .and_then(|v| v.as_str())
        .unwrap_or_default()
        .into()
}
