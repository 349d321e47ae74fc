//! Shows what server and host did meanwhile: counters on the same time axis as the operations.

use std::collections::BTreeMap;

use seekscope_run::{BenchStep, CounterSample};

use super::BenchReportInput;
use super::charts::{Figure, Points, over_time};
use super::marks::{self, Span};
use crate::html::charts::{LineChart, Scale};

/// How a counter becomes a value.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// The value as it is.
    Gauge,
    /// Its growth per second, times this.
    PerSecond(f64),
}

use Reading::{Gauge, PerSecond};

struct Track {
    id: &'static str,
    heading: &'static str,
    caption: &'static str,
    y: Scale,
    /// What the axis counts or measures, where the scale does not tell.
    unit: Option<&'static str>,
    /// (label, source, ends of names, reading): the first existing name is used.
    lines: &'static [(&'static str, &'static str, &'static [&'static str], Reading)],
}

const TRACKS: [Track; 5] = [
    Track {
        id: "cache",
        heading: "The server's cache",
        caption: "What it holds, and what of it is not yet on disk.",
        y: Scale::Bytes,
        unit: None,
        lines: &[
            (
                "in the cache",
                "serverStatus",
                &["cache.bytes currently in the cache"],
                Gauge,
            ),
            (
                "dirty",
                "serverStatus",
                &["cache.tracked dirty bytes in the cache"],
                Gauge,
            ),
        ],
    },
    Track {
        id: "cpu",
        heading: "CPUs in use",
        caption: "CPU time per second: 1 is one CPU, all the time.",
        y: Scale::Count,
        unit: Some("CPUs"),
        lines: &[
            ("server", "process", &["cpu_ns"], PerSecond(1e-9)),
            ("client", "client", &["cpu_ns"], PerSecond(1e-9)),
        ],
    },
    Track {
        id: "disk",
        heading: "Bytes per second to and from the disk",
        caption: "Of the server's process, and of the whole device, others' included.",
        y: Scale::Bytes,
        unit: Some("bytes per second"),
        lines: &[
            ("server reads", "process", &["read_bytes"], PerSecond(1.0)),
            ("server writes", "process", &["write_bytes"], PerSecond(1.0)),
            ("device reads", "diskstats", &["read_bytes"], PerSecond(1.0)),
            (
                "device writes",
                "diskstats",
                &["write_bytes", "written_bytes"],
                PerSecond(1.0),
            ),
        ],
    },
    Track {
        id: "queues",
        heading: "Operations inside the server",
        caption: "Tickets in use, and operations that wait for one or for a lock.",
        y: Scale::Count,
        unit: Some("operations"),
        lines: &[
            (
                "reading",
                "serverStatus",
                &["concurrentTransactions.read.out", "execution.read.out"],
                Gauge,
            ),
            (
                "writing",
                "serverStatus",
                &["concurrentTransactions.write.out", "execution.write.out"],
                Gauge,
            ),
            (
                "readers waiting",
                "serverStatus",
                &["globalLock.currentQueue.readers"],
                Gauge,
            ),
            (
                "writers waiting",
                "serverStatus",
                &["globalLock.currentQueue.writers"],
                Gauge,
            ),
        ],
    },
    Track {
        id: "pressure",
        heading: "Time in which some task of the host waited",
        caption: "Share of each second, by the kernel's pressure-stall counters.",
        y: Scale::Share,
        unit: None,
        lines: &[
            (
                "for the disk",
                "pressure",
                &["io.some_us", "io.some.total_us", "io.some"],
                PerSecond(1e-6),
            ),
            (
                "for a CPU",
                "pressure",
                &["cpu.some_us", "cpu.some.total_us", "cpu.some"],
                PerSecond(1e-6),
            ),
        ],
    },
];

/// Returns the tracks for which the run has data.
pub(super) fn of_step(input: &BenchReportInput<'_>, index: usize, step: &BenchStep) -> Vec<Figure> {
    let span = Span::of(input, step);
    let mut series: BTreeMap<(&str, &str), Vec<&CounterSample>> = BTreeMap::new();
    for sample in span.samples(&input.records.counters) {
        series
            .entry((&sample.source, &sample.name))
            .or_default()
            .push(sample);
    }
    TRACKS
        .iter()
        .filter_map(|track| {
            let lines = track
                .lines
                .iter()
                .filter_map(|(label, source, ends, reading)| {
                    let samples = ends.iter().find_map(|end| find(&series, source, end))?;
                    let mut points = read(samples, *reading);
                    // Only a growth needs the sample before the step; what follows it is of the next step.
                    points.retain(|(t_ns, _)| span.holds(*t_ns));
                    Some(((*label).to_string(), points))
                });
            let chart = over_time(
                format!("chart-{index}-{}", track.id),
                track.y,
                span,
                lines.collect(),
                marks::of_step(input, step),
            )?;
            Some(Figure {
                heading: track.heading.into(),
                caption: track.caption.into(),
                chart: LineChart {
                    y_name: track.unit.map(String::from),
                    ..chart
                },
            })
        })
        .collect()
}

fn find<'a, 'b>(
    series: &'b BTreeMap<(&str, &str), Vec<&'a CounterSample>>,
    source: &str,
    end: &str,
) -> Option<&'b Vec<&'a CounterSample>> {
    let is_it = |of: &str, name: &str| {
        let rest = name.strip_suffix(end);
        of == source && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let mut all = series.iter();
    all.find(|((of, name), _)| is_it(of, name))
        .map(|(_, samples)| samples)
}

/// Reads a counter. A fall means that it was reset by a restart: that second is unknown.
fn read(samples: &[&CounterSample], reading: Reading) -> Points {
    match reading {
        Gauge => samples.iter().map(|s| (s.t_ns, Some(s.value))).collect(),
        PerSecond(factor) => samples
            .windows(2)
            .filter(|pair| pair[1].t_ns > pair[0].t_ns)
            .map(|pair| {
                let (grown, ns) = (pair[1].value - pair[0].value, pair[1].t_ns - pair[0].t_ns);
                let per_s = grown * factor * 1e9 / ns as f64;
                (pair[1].t_ns, (grown >= 0.0).then_some(per_s))
            })
            .collect(),
    }
}
