//! Marks in all tracks: checkpoints as bands, restarts and the ends of the trace as lines.

use seekscope_doctor::evidence::CHECKPOINT_STATE;
use seekscope_pattern::Checkpoint;

use super::super::DoctorReportInput;
use super::reader::Reader;
use crate::html::charts::Mark;
use crate::html::tracks::Band;

/// The most bands; more would hide the lines that they are drawn over.
const BANDS_MAX: usize = 200;
/// A trace that comes this near to an end of the axis counts as reaching it: counters come once a second.
const EDGE_S: f64 = 2.0;

/// Returns checkpoints: from the trace during the run, by the server's gauge otherwise.
pub(super) fn bands(input: &DoctorReportInput<'_>, reader: &Reader<'_>) -> Vec<Band> {
    let answer = input
        .answers()
        .checkpoints
        .as_ref()
        .filter(|_| reader.is_of_the_run());
    let known = answer.map_or(&[][..], |answer| &answer.checkpoints);
    let stretches: Vec<(u64, u64)> = match known {
        [] => gauged(reader),
        known => known
            .iter()
            .map(|c: &Checkpoint| (c.started_ns, c.ended_ns))
            .collect(),
    };
    let band = |(from, to): (u64, u64)| Band {
        from: input.seconds(from),
        to: input.seconds(to),
        label: "a checkpoint".into(),
    };
    stretches.into_iter().take(BANDS_MAX).map(band).collect()
}

fn gauged(reader: &Reader<'_>) -> Vec<(u64, u64)> {
    let series = CHECKPOINT_STATE
        .iter()
        .find_map(|name| reader.of_server(name));
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let mut running = false;
    for &(t_ns, value) in series.map_or(&[][..], |series| &series.points) {
        match (running, value > 0.0, stretches.last_mut()) {
            (false, true, _) => stretches.push((t_ns, t_ns)),
            (true, _, Some(last)) => last.1 = t_ns,
            _ => {}
        }
        running = value > 0.0;
    }
    stretches
}

/// Marks restarts of the server, and the ends of a trace that does not cover the axis.
pub(super) fn marks(
    input: &DoctorReportInput<'_>,
    reader: &Reader<'_>,
    (low, high): (f64, f64),
) -> Vec<Mark> {
    let mut marks = restarts(input, reader);
    let trace = input
        .trace
        .filter(|trace| reader.is_of_the_run() && trace.events > 0);
    if let Some(trace) = trace {
        let ends = [
            (trace.started_ns, "the trace began"),
            (trace.ended_ns, "the trace ended"),
        ];
        let moments = ends.map(|(t_ns, label)| (input.seconds(t_ns), label));
        let inside = |x: f64| low + EDGE_S < x && x < high - EDGE_S;
        marks.extend(
            moments
                .into_iter()
                .filter(|(x, _)| inside(*x))
                .map(|(x, label)| Mark {
                    x,
                    label: label.into(),
                }),
        );
    }
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    marks
}

/// Returns the times at which the server's uptime fell.
fn restarts(input: &DoctorReportInput<'_>, reader: &Reader<'_>) -> Vec<Mark> {
    let uptime = reader.of_server("uptimeMillis");
    let points = uptime.map_or(&[][..], |series| &series.points);
    let fell = points.windows(2).filter(|pair| pair[1].1 < pair[0].1);
    fell.take(BANDS_MAX)
        .map(|pair| Mark {
            x: input.seconds(pair[1].0),
            label: "the server was started again".into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reader::tests::{counters, reader};
    use super::*;

    #[test]
    fn checkpoints_are_read_off_the_gauge() {
        let name = CHECKPOINT_STATE[0];
        let counters = counters(&[
            (1, name, 0.0),
            (2, name, 1.0),
            (3, name, 1.0),
            (4, name, 0.0),
            (9, name, 1.0),
        ]);
        let s = 1_000_000_000;
        assert_eq!(gauged(&reader(&counters)), [(2 * s, 4 * s), (9 * s, 9 * s)]);
    }
}
