//! Medians with their spread, and what they mean against what seekscope set out to reach.

use seekscope_stats::median;

use crate::child::Ran;
use crate::tool::{Said, Tool, Work};

/// Client CPU time of an operation, us; memory, bytes.
const CPU_US_MAX: f64 = 20.0;
const RSS_MAX: f64 = 20e6;
/// The largest allowed share of each peer's CPU time.
const CPU_SHARE_MAX: f64 = 0.25;
/// The smallest allowed throughput as a multiple of the better peer's, from this many operations in flight on.
const THROUGHPUT_MIN: f64 = 1.5;
const THROUGHPUT_FROM: u32 = 8;
const LOAD_MIN: f64 = 2.0;

/// One run of one tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    per_s: f64,
    /// Per operation, start and end of the process included.
    cpu_us: f64,
    /// The same without start and end, where that can be told.
    working_cpu_us: Option<f64>,
    p99_ms: f64,
    rss_bytes: f64,
    server_cpu_us: f64,
    failed: u64,
}

impl Measured {
    pub(crate) fn new(work: &Work, ran: &Ran, said: Said, server_cpu_ns: u64) -> Self {
        let per_operation = |ns: u64| ns as f64 / 1e3 / work.operations.max(1) as f64;
        Self {
            per_s: said.per_s,
            cpu_us: per_operation(ran.cpu_ns),
            working_cpu_us: said.working_cpu_us,
            p99_ms: said.p99_ms,
            rss_bytes: ran.rss_bytes as f64,
            server_cpu_us: per_operation(server_cpu_ns),
            failed: said.failed,
        }
    }
}

/// One workload at one number in flight, by all tools.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) workload: char,
    pub(crate) in_flight: u32,
    records: u64,
    is_load: bool,
    measured: Vec<(Tool, Measured)>,
}

impl Cell {
    pub(crate) fn run(workload: char, in_flight: u32, records: u64) -> Self {
        Self {
            workload,
            in_flight,
            records,
            is_load: false,
            measured: Vec::new(),
        }
    }

    pub(crate) fn load(records: u64, in_flight: u32) -> Self {
        Self {
            is_load: true,
            ..Self::run('a', in_flight, records)
        }
    }

    pub(crate) fn add(&mut self, tool: Tool, measured: Measured) {
        self.measured.push((tool, measured));
    }

    fn title(&self) -> String {
        let what = if self.is_load {
            "load".to_string()
        } else {
            format!("workload {}", self.workload.to_ascii_uppercase())
        };
        format!(
            "{what}, {} rows, {} in flight",
            self.records, self.in_flight
        )
    }

    fn values(&self, tool: Tool, of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
        let ours = self.measured.iter().filter(|(by, _)| *by == tool);
        ours.filter_map(|(_, measured)| of(measured)).collect()
    }

    fn median(&self, tool: Tool, of: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        median(&self.values(tool, of))
    }

    /// The median, and the least and greatest where there are several.
    fn shown(&self, tool: Tool, digits: usize, of: impl Fn(&Measured) -> Option<f64>) -> String {
        let values = self.values(tool, of);
        let Some(middle) = median(&values) else {
            return "-".into();
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.len() == 1 {
            format!("{middle:.digits$}")
        } else {
            format!("{middle:.digits$} ({least:.digits$}-{greatest:.digits$})")
        }
    }
}

const TOOLS: [Tool; 3] = [Tool::Seekscope, Tool::Ycsb, Tool::GoYcsb];

/// What the latest round measured of a cell, a line a tool.
pub(crate) fn progress(cell: &Cell) {
    println!("... {}", cell.title());
    for (tool, measured) in cell.measured.iter().rev().take(TOOLS.len()).rev() {
        println!(
            "    {:10} {:8.0}/s  client {:6.1} us  p99 {:7.1} ms",
            tool.name(),
            measured.per_s,
            measured.cpu_us,
            measured.p99_ms
        );
    }
}

/// The table, and the targets.
pub(crate) fn print(cells: &[Cell]) {
    for cell in cells {
        println!("\n{}: medians (least-greatest)", cell.title());
        println!(
            "{:10} {:>22} {:>22} {:>22} {:>20} {:>16} {:>22} {:>6}",
            "",
            "op/s",
            "client us/op",
            "while working",
            "p99 ms",
            "RSS MB",
            "server us/op",
            "failed"
        );
        for tool in TOOLS {
            let failed: u64 = cell
                .measured
                .iter()
                .filter(|m| m.0 == tool)
                .map(|m| m.1.failed)
                .sum();
            println!(
                "{:10} {:>22} {:>22} {:>22} {:>20} {:>16} {:>22} {failed:>6}",
                tool.name(),
                cell.shown(tool, 0, |m| Some(m.per_s)),
                cell.shown(tool, 1, |m| Some(m.cpu_us)),
                cell.shown(tool, 1, |m| m.working_cpu_us),
                cell.shown(tool, 1, |m| Some(m.p99_ms)),
                cell.shown(tool, 0, |m| Some(m.rss_bytes / 1e6)),
                cell.shown(tool, 1, |m| Some(m.server_cpu_us)),
            );
        }
        for (what, value, limit, is_most) in targets(cell) {
            let reached = if is_most {
                value <= limit
            } else {
                value >= limit
            };
            println!(
                "  {} {what}: {value:.2}, {} {limit}",
                if reached { "reached:" } else { "MISSED: " },
                if is_most { "at most" } else { "at least" },
            );
        }
    }
}

/// What, its value, its limit, and whether the limit is the most that is allowed.
fn targets(cell: &Cell) -> Vec<(&'static str, f64, f64, bool)> {
    let of = |tool, of: fn(&Measured) -> Option<f64>| cell.median(tool, of).unwrap_or(f64::NAN);
    let working: fn(&Measured) -> Option<f64> = |m| m.working_cpu_us.or(Some(m.cpu_us));
    let per_s: fn(&Measured) -> Option<f64> = |m| Some(m.per_s);
    let ours = of(Tool::Seekscope, working);
    let best_peer = of(Tool::Ycsb, per_s).max(of(Tool::GoYcsb, per_s));
    let throughput = of(Tool::Seekscope, per_s) / best_peer;
    if cell.is_load {
        return vec![("rows/s over the better peer's", throughput, LOAD_MIN, false)];
    }
    let mut targets = vec![
        ("client CPU us/op", ours, CPU_US_MAX, true),
        (
            "of go-ycsb's CPU",
            ours / of(Tool::GoYcsb, working),
            CPU_SHARE_MAX,
            true,
        ),
        (
            "of YCSB's CPU when warm",
            ours / of(Tool::Ycsb, working),
            CPU_SHARE_MAX,
            true,
        ),
        (
            "RSS MB",
            of(Tool::Seekscope, |m| Some(m.rss_bytes)) / 1e6,
            RSS_MAX / 1e6,
            true,
        ),
    ];
    if cell.in_flight >= THROUGHPUT_FROM {
        targets.push((
            "op/s over the better peer's",
            throughput,
            THROUGHPUT_MIN,
            false,
        ));
    }
    targets
}
