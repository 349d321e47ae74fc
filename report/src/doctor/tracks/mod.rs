//! Shows what happened when: throughput, latency, device, cache and pressure on one time axis, with
//! checkpoints shaded.

mod device_seconds;
mod moments;
mod plans;
mod reader;

use seekscope_run::examination::COUNTERS_OF_FTDC;

use super::DoctorReportInput;
use crate::html::charts::{Line, LineChart, Scale};
use crate::html::tracks::{Track, TrackGroup};
use moments::{bands, marks};
use plans::{Lines, PLANS, Plan};
use reader::{Points, Reader};

pub(super) use device_seconds::DeviceSeconds;

/// The most values of a line; longer series are averaged, so that a page over hours stays small.
const VALUES_MAX: usize = 720;

/// Returns tracks of the run itself, and of the time before it from the server's own diagnostic files.
pub(super) fn groups(
    input: &DoctorReportInput<'_>,
    device: Option<&DeviceSeconds>,
) -> Vec<TrackGroup> {
    let during = Reader {
        counters: input.counters,
        server: "serverStatus",
        device,
    };
    // The server goes on writing its diagnostic files while it is watched.
    let begin_ns = input.document.started.monotonic_ns;
    let past = input.counters.until(COUNTERS_OF_FTDC, begin_ns);
    let before = Reader {
        counters: &past,
        server: COUNTERS_OF_FTDC,
        device: None,
    };
    let groups = [
        group(input, &during, "tracks-run", "During this run"),
        before
            .has_server()
            .then(|| {
                group(
                    input,
                    &before,
                    "tracks-before",
                    "Before it, by the server's diagnostic files",
                )
            })
            .flatten(),
    ];
    groups.into_iter().flatten().collect()
}

fn group(
    input: &DoctorReportInput<'_>,
    reader: &Reader<'_>,
    id: &str,
    heading: &'static str,
) -> Option<TrackGroup> {
    let found: Vec<(Plan, Lines)> = (PLANS.iter())
        .map(|plan| {
            let lines = (plan.3)(reader).into_iter();
            (
                *plan,
                lines
                    .filter(|(_, points)| points.len() > 1)
                    .collect::<Lines>(),
            )
        })
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let times = || {
        found
            .iter()
            .flat_map(|(_, lines)| lines)
            .flat_map(|(_, points)| points)
    };
    let (first, last) = (times().map(|p| p.0).min()?, times().map(|p| p.0).max()?);
    let phase = input
        .phase()
        .filter(|phase| reader.is_of_the_run() && phase.ended_ns > phase.started_ns);
    let low = input.seconds(phase.map_or(first, |phase| phase.started_ns.min(first)));
    let high = input.seconds(phase.map_or(last, |phase| phase.ended_ns.max(last)));
    let tracks = found
        .into_iter()
        .map(|((track, heading, y, _), lines)| Track {
            heading,
            chart: chart(input, format!("{id}-{track}"), y, lines),
        });
    Some(TrackGroup {
        id: id.into(),
        heading,
        low,
        high,
        bands: bands(input, reader),
        marks: marks(input, reader, (low, high)),
        tracks: tracks.collect(),
    })
}

fn chart(input: &DoctorReportInput<'_>, id: String, y: Scale, lines: Lines) -> LineChart {
    let lines: Lines = lines
        .into_iter()
        .map(|(label, points)| (label, thinned(points)))
        .collect();
    let mut times: Vec<u64> = lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|p| p.0))
        .collect();
    times.sort_unstable();
    times.dedup();
    let line = |(index, (label, points)): (usize, (&'static str, Points))| {
        let mut values = vec![None; times.len()];
        for (t_ns, value) in points {
            if let Ok(at) = times.binary_search(&t_ns) {
                values[at] = value.is_finite().then_some(value);
            }
        }
        Line::numbered(index, label, values)
    };
    let lines = lines.into_iter().enumerate().map(line).collect();
    let xs = times.iter().map(|&t_ns| input.seconds(t_ns)).collect();
    LineChart::new(id, (Scale::Seconds, y), xs, lines)
}

/// Averages neighbours until there are few enough.
fn thinned(points: Points) -> Points {
    let step = points.len().div_ceil(VALUES_MAX).max(1);
    let mean = |of: &[(u64, f64)]| {
        let sum: f64 = of.iter().map(|(_, value)| value).sum();
        (of[of.len() / 2].0, sum / of.len() as f64)
    };
    points.chunks(step).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_courses_are_averaged() {
        let points: Points = (0..3000).map(|t| (t, 2.0)).collect();
        let thin = thinned(points);
        assert!(thin.len() <= VALUES_MAX && thin.iter().all(|(_, value)| *value == 2.0));
        assert_eq!(thinned(vec![(1, 1.0), (2, 5.0)]), [(1, 1.0), (2, 5.0)]);
    }

    /// A regression: the server writes its diagnostic files while it is watched as well, and that was before the watch.
    #[test]
    fn what_was_before_the_run_ends_where_it_begins() {
        let begin_s = 100_u64;
        let sample = |t_s: u64| seekscope_run::CounterSample {
            t_ns: t_s * 1_000_000_000,
            source: COUNTERS_OF_FTDC.into(),
            name: "opcounters.query".into(),
            value: t_s as f64,
        };
        let counters = seekscope_doctor::Counters::new((50..=115).map(sample));
        let mut document = seekscope_run::RunDocument::begin("doctor", Vec::new());
        document.started.monotonic_ns = begin_s * 1_000_000_000;
        let groups = groups(
            &DoctorReportInput {
                document: &document,
                diagnosis: &seekscope_doctor::Diagnosis::default(),
                trace: None,
                counters: &counters,
                events: &|_| Ok(()),
                leaves: &|_| Ok(()),
            },
            None,
        );
        let [before] = groups.as_slice() else {
            panic!("{groups:?}");
        };
        assert!(
            before.low < -49.0 && (-1.0..=0.0).contains(&before.high),
            "{before:?}"
        );
    }
}
