//! Cost per call of each tracer, in rounds that measure all of them in shuffled order.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use seekscope_stats::{SplitMix64, median, quantile_sorted};

use crate::load::{self, Sample};
use crate::peers::Peer;
use crate::tracer::{self, Backend};

/// A tracer that sees nothing measures its own cost for two seconds, then no more.
const SETTLE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds; each measures every tracer once
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: u32,
    /// Calls per measurement; a tenth of them with the other tracers, which are slow
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Untraced,
    Seekscope(Backend),
    /// Another process is traced: what the filter costs everyone else.
    OtherProcess(Backend),
    Peer(Peer),
}

const VARIANTS: [Variant; 13] = [
    Variant::Untraced,
    Variant::Seekscope(Backend::TpBtf),
    Variant::Seekscope(Backend::Tracepoint),
    Variant::Seekscope(Backend::Totals),
    Variant::Seekscope(Backend::AllGroups),
    Variant::OtherProcess(Backend::TpBtf),
    Variant::OtherProcess(Backend::Tracepoint),
    Variant::OtherProcess(Backend::Totals),
    Variant::OtherProcess(Backend::AllGroups),
    Variant::Peer(Peer::BpftraceHistogram),
    Variant::Peer(Peer::BpftracePrintf),
    Variant::Peer(Peer::PerfRecord),
    Variant::Peer(Peer::Strace),
];

impl Variant {
    fn calls(self, options: &Options) -> u64 {
        match self {
            Self::Peer(_) => options.calls / 10,
            _ => options.calls,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Untraced => "untraced",
            Self::Seekscope(Backend::TpBtf) => "seekscope, tp_btf",
            Self::Seekscope(Backend::Totals) => "seekscope, totals (exporter)",
            Self::Seekscope(Backend::AllGroups) => "seekscope, all kinds of I/O",
            Self::Seekscope(_) => "seekscope, tracepoint",
            Self::OtherProcess(Backend::TpBtf) => "seekscope on another, tp_btf",
            Self::OtherProcess(Backend::Totals) => "seekscope on another, totals",
            Self::OtherProcess(Backend::AllGroups) => "seekscope on another, all kinds",
            Self::OtherProcess(_) => "seekscope on another, tracepoint",
            Self::Peer(Peer::BpftracePrintf) => "bpftrace, printf per call",
            Self::Peer(Peer::BpftraceHistogram) => "bpftrace, histogram only",
            Self::Peer(Peer::Strace) => "strace -f -e trace=pread64",
            Self::Peer(Peer::PerfRecord) => "perf record",
        }
    }
}

/// All rounds of one variant. `samples[i]` and the untraced one are of the same round.
struct Row {
    variant: Variant,
    samples: Vec<Sample>,
    /// Calls that it did not record, of all rounds.
    lost: u64,
}

/// The cost of one variant, compared with the untraced runs.
struct Cost {
    added_ns: f64,
    added_quartiles_ns: (f64, f64),
    cpu_ratio: f64,
    wall_ratio: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("read.dat");
    load::make_file(&file)?;
    let mut rows: Vec<Row> = available()
        .map(|variant| Row {
            variant,
            samples: Vec::new(),
            lost: 0,
        })
        .collect();
    let mut random = SplitMix64::new(1);
    for _ in 0..options.rounds {
        for index in shuffled(rows.len(), &mut random)? {
            let row = &mut rows[index];
            let calls = row.variant.calls(options);
            let (sample, recorded) = measure(row.variant, &file, calls)?;
            row.samples.push(sample);
            row.lost += recorded.map_or(0, |recorded| calls.saturating_sub(recorded));
        }
    }
    show(&rows, options)
}

fn available() -> impl Iterator<Item = Variant> {
    VARIANTS.into_iter().filter(|variant| match variant {
        Variant::Peer(peer) if !peer.is_installed() => {
            println!("{} is not installed, so it is not compared", peer.program());
            false
        }
        _ => true,
    })
}

fn shuffled(count: usize, random: &mut SplitMix64) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = random.below(u64::try_from(last)? + 1);
        order.swap(last, usize::try_from(other)?);
    }
    Ok(order)
}

/// One sample, and how many of its calls were recorded, where they should have been.
fn measure(variant: Variant, file: &Path, calls: u64) -> Result<(Sample, Option<u64>)> {
    let mut load = load::start(file, calls)?;
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    Ok(match variant {
        Variant::Untraced => (load::sample(&mut load)?, None),
        Variant::Seekscope(backend) => {
            let tracer = tracer::start(load.pid(), backend, &run)?;
            let sample = load::sample(&mut load)?;
            let outcome = tracer::finish(tracer)?;
            ensure!(outcome.seen == calls, "{outcome:?} of {calls} calls");
            (sample, Some(outcome.written))
        }
        Variant::OtherProcess(backend) => {
            let other = load::start(file, calls)?;
            let tracer = tracer::start(other.pid(), backend, &run)?;
            std::thread::sleep(SETTLE);
            let sample = load::sample(&mut load)?;
            let outcome = tracer::finish(tracer)?;
            ensure!(outcome.seen == 0, "{outcome:?} of an idle process");
            (sample, None)
        }
        Variant::Peer(peer) => {
            let tracing = peer.start(load.pid(), folder.path())?;
            let sample = load::sample(&mut load)?;
            (sample, Some(tracing.finish()?))
        }
    })
}

fn show(rows: &[Row], options: &Options) -> Result<()> {
    let untraced = &rows[0].samples;
    let base: Vec<f64> = untraced.iter().map(|sample| sample.cpu_ns).collect();
    println!(
        "pread64 of 4 KiB from the page cache: {:.0} ns of CPU time per call untraced; {} rounds of {} calls, medians",
        median(&base).unwrap_or(0.0),
        options.rounds,
        options.calls
    );
    println!("tracer                            ns added (quartiles)    x CPU  x clock   lost");
    let mut costs = Vec::new();
    for row in &rows[1..] {
        let cost = cost(&row.samples, untraced);
        println!(
            "{:32}  {:8.0} ({:.0} to {:.0})  {:7.2}  {:7.2}  {:5}",
            row.variant.name(),
            cost.added_ns,
            cost.added_quartiles_ns.0,
            cost.added_quartiles_ns.1,
            cost.cpu_ratio,
            cost.wall_ratio,
            row.lost
        );
        costs.push((row.variant, cost));
    }
    goals(&costs);
    Ok(())
}

fn cost(samples: &[Sample], untraced: &[Sample]) -> Cost {
    let pairs = || samples.iter().zip(untraced);
    let mut added: Vec<f64> = pairs().map(|(s, u)| s.cpu_ns - u.cpu_ns).collect();
    added.sort_by(f64::total_cmp);
    let cpu: Vec<f64> = pairs().map(|(s, u)| s.cpu_ns / u.cpu_ns).collect();
    let wall: Vec<f64> = pairs().map(|(s, u)| s.wall_ns / u.wall_ns).collect();
    let quantile = |q| quantile_sorted(&added, q).unwrap_or(0.0);
    Cost {
        added_ns: median(&added).unwrap_or(0.0),
        added_quartiles_ns: (quantile(0.25), quantile(0.75)),
        cpu_ratio: median(&cpu).unwrap_or(0.0),
        wall_ratio: median(&wall).unwrap_or(0.0),
    }
}

/// What the tracer is held to. File identity and hit or miss are part of every record.
fn goals(costs: &[(Variant, Cost)]) {
    let cost_of = |wanted| costs.iter().find(|(variant, _)| *variant == wanted);
    let Some((_, ours)) = cost_of(Variant::Seekscope(Backend::TpBtf)) else {
        return;
    };
    let goal = |what: &str, figure: f64, met: bool| {
        println!(
            "{} {what}: {figure:.2}",
            if met { "met   " } else { "missed" }
        );
    };
    goal(
        "at most 500 ns added",
        ours.added_ns,
        ours.added_ns <= 500.0,
    );
    goal(
        "at most 1.45 x CPU time",
        ours.cpu_ratio,
        ours.cpu_ratio <= 1.45,
    );
    if let Some((_, totals)) = cost_of(Variant::Seekscope(Backend::Totals)) {
        let added = totals.added_ns;
        goal("at most 300 ns added by totals", added, added <= 300.0);
    }
    for (peer, times, what) in [
        (
            Peer::BpftracePrintf,
            5.0,
            "5 x cheaper than bpftrace's printf",
        ),
        (Peer::Strace, 10.0, "10 x cheaper than strace"),
    ] {
        if let Some((_, theirs)) = cost_of(Variant::Peer(peer)) {
            let factor = theirs.added_ns / ours.added_ns;
            goal(what, factor, factor >= times);
        }
    }
    if let Some((_, others)) = cost_of(Variant::OtherProcess(Backend::TpBtf)) {
        let added = others.added_ns;
        goal(
            "at most 200 ns added to other processes",
            added,
            added <= 200.0,
        );
    }
}
