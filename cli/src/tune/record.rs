//! Fills in what a session's record says from the start: goal and knobs.

use seekscope_run::tune::TuneRecord;
use seekscope_settings::KnobEntry;
use seekscope_tune::optimiser::Goal;

use super::asked::Asked;
use super::definition::Definition;

/// Fills in what the record says from the start.
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
    record.cautions.clone_from(&definition.cautions);
    record.knobs = entries.iter().map(KnobEntry::tuned).collect();
}
