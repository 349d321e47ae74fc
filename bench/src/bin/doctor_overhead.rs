//! What `seekscope doctor` costs a server at work, or what the watching of `seekscope advise` does: YCSB at a fixed
//! rate with and without it beside, in interleaved stretches of the same length on one server. A stretch lasts as long
//! as its process, its conclusions included.
//!
//! The measurement: throughput, the 99th percentile of the response time and the server's CPU time per
//! operation, as ratios with / without and a 95 % bootstrap interval; an interval that contains 1 means that no
//! difference was found. The account: the CPU time of that process and of its programs in the kernel.
//! The budget is 1 % of one core and 1 % of the server's CPU time together. Where the measurement's interval
//! is wider than that, the account decides.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::examined::{
    Done, Examined, YcsbTask, advise, done_between, examine, watch_queries,
};
use seekscope_bench::gains::{Activity, ColdServer, Conditions, Hosts};
use seekscope_run::{RunDocument, monotonic_ns};
use seekscope_server::{ProcFs, Workspace};
use seekscope_stats::{PairedRatio, SplitMix64, median, paired_ratio};
use seekscope_workload::ownership::DEFAULT_DATABASE;
use tokio::task::block_in_place;

/// The pause between two stretches, and the time that the load has to warm up before the first.
const PAUSE: Duration = Duration::from_secs(2);
/// A stretch without the doctor lasts as long as one with it is allowed to.
const AFTER: Duration = Duration::from_secs(20);
/// How long the server is loaded without a limit, to find its capacity.
const CAPACITY: Duration = Duration::from_secs(10);
/// The share of one core, and of the server's CPU time, that the budget allows.
const BUDGET_SHARE: f64 = 0.01;
/// What `advise` is asked for: queries that no index serves, so that it has something to advise.
const TABLE: &str = "usertable";
const QUERY: &str = r#"{"field0": "?"}"#;

/// The doctor's overhead on a server under YCSB.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of stretches
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// What `--for` is given, s
    #[arg(long = "for", default_value_t = 60)]
    watched_s: u64,
    /// YCSB's workload
    #[arg(long, default_value_t = 'a')]
    workload: char,
    /// Operations per second [default: half of what the server can do]
    #[arg(long)]
    rate: Option<f64>,
    /// Rows of about 1.1 KiB
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// WiredTiger's cache, MiB; what it lacks is read from files, and traced
    #[arg(long, default_value_t = 64)]
    cache_mib: u64,
    /// Have `advise` watch the queries, instead of `doctor` the server
    #[arg(long)]
    advise: bool,
    #[command(flatten)]
    programs: Programs,
}

/// What is started beside the load.
enum Beside {
    Doctor,
    /// `advise`, given an earlier run so that it only watches.
    Advise {
        earlier: PathBuf,
    },
}

impl Beside {
    /// Makes ready what it needs.
    fn prepare(arguments: &Arguments, uri: &str, folder: &Path) -> Result<Self> {
        if !arguments.advise {
            return Ok(Self::Doctor);
        }
        let earlier = folder.join("advised");
        let trial = arguments.programs.server()?.path;
        let seekscope = &arguments.programs.seekscope;
        let tried = advise(seekscope, uri, &namespace(), QUERY, &trial, &earlier)?;
        println!("a whole advise, with its trial: {:.1} s", tried.seconds());
        Ok(Self::Advise { earlier })
    }

    fn run(&self, arguments: &Arguments, uri: &str, run: &Path) -> Result<Examined> {
        let seekscope = &arguments.programs.seekscope;
        let watched = Duration::from_secs(arguments.watched_s);
        match self {
            Self::Doctor => examine(seekscope, uri, watched, run),
            Self::Advise { earlier } => {
                watch_queries(seekscope, uri, &namespace(), watched, earlier, run)
            }
        }
    }

    /// Returns the CPU time of its programs in the kernel, by its own account, s.
    fn programs_cpu_s(&self, run: &Path) -> Result<f64> {
        if matches!(self, Self::Advise { .. }) {
            return Ok(0.0);
        }
        let recorded = std::fs::read(run.join("run.json"))?;
        let document: RunDocument = serde_json::from_slice(&recorded)?;
        let cost = document
            .examination
            .and_then(|examination| examination.cost);
        let cpu_ns = cost.and_then(|cost| cost.kernel_cpu_ns);
        Ok(cpu_ns.context("the cost in the kernel is not known")? as f64 / 1e9)
    }
}

/// What was done in a stretch, and what it took of the server's CPU.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    done: Done,
    server_cpu_s: f64,
    seconds: f64,
}

impl Stretch {
    fn server_cpu_us_per_operation(&self) -> f64 {
        self.server_cpu_s * 1e6 / (self.done.operations_per_s * self.seconds)
    }
}

/// Two stretches beside one another, and what the doctor took by its own account.
struct Pair {
    without: Stretch,
    with: Stretch,
    examined: Examined,
    /// CPU time of the doctor's process, as counted by the kernel, and of its programs in the kernel, s.
    process_cpu_s: f64,
    programs_cpu_s: f64,
}

impl Pair {
    fn account_s(&self) -> f64 {
        self.process_cpu_s + self.programs_cpu_s
    }

    /// 1 % of one core, and 1 % of what the server took.
    fn budget_s(&self) -> f64 {
        BUDGET_SHARE * (self.with.seconds + self.with.server_cpu_s)
    }
}

fn namespace() -> String {
    format!("{DEFAULT_DATABASE}.{TABLE}")
}

/// What a stretch begins with.
struct Mark {
    t_ns: u64,
    server_cpu_ns: u64,
}

impl Mark {
    fn now(server: u32) -> Result<Self> {
        Ok(Self {
            t_ns: monotonic_ns(),
            server_cpu_ns: ProcFs::host().cpu_ns(server)?,
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.programs.data_dir.canonicalize()?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let data = workspace.path().join("ycsb");
    let mut hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: arguments.cache_mib << 20,
        workspace,
    };
    let cold = hosts.start(&data, Conditions::default()).await?;
    let uri = cold.local.uri();
    let closed = YcsbTask {
        letter: arguments.workload,
        ..YcsbTask::rows(arguments.rows)
    };
    block_in_place(|| closed.fill(&uri))?;
    let per_s = match arguments.rate {
        Some(rate) => rate,
        None => block_in_place(|| capacity(&closed, &uri))? / 2.0,
    };
    println!("{per_s:.0} operations per second");
    let beside = block_in_place(|| Beside::prepare(&arguments, &uri, hosts.workspace.path()))?;
    let task = YcsbTask {
        per_s: Some(per_s),
        ..closed
    };
    println!(
        "pair   ops/s without, with    p99 ms without, with   server us/op without, with   \
         its CPU s: process, kernel   budget s  first finding"
    );
    let (mut random, mut pairs) = (SplitMix64::new(1), Vec::new());
    for number in 1..=arguments.pairs {
        let run = hosts.workspace.path().join(format!("run-{number}"));
        let with_first = random.below(2) == 1;
        let pair = block_in_place(|| measure(&arguments, &beside, &task, &cold, with_first, &run))?;
        let (without, with) = (&pair.without, &pair.with);
        println!(
            "{number:4}  {:9.0} {:9.0}  {:10.2} {:10.2}  {:12.1} {:12.1}  {:14.2} {:10.2}  {:14.2}  {}",
            without.done.operations_per_s,
            with.done.operations_per_s,
            without.done.p99_ns as f64 / 1e6,
            with.done.p99_ns as f64 / 1e6,
            without.server_cpu_us_per_operation(),
            with.server_cpu_us_per_operation(),
            pair.process_cpu_s,
            pair.programs_cpu_s,
            pair.budget_s(),
            pair.examined.finding_ids().first().unwrap_or(&"(none)"),
        );
        pairs.push(pair);
        std::fs::remove_dir_all(&run)?;
    }
    hosts.end(cold, Activity::Scan).await?;
    show(&pairs)
}

/// Operations per second as fast as the server goes.
fn capacity(closed: &YcsbTask, uri: &str) -> Result<f64> {
    let load = closed.start(uri)?;
    std::thread::sleep(PAUSE);
    let from_ns = monotonic_ns();
    std::thread::sleep(CAPACITY);
    let to_ns = monotonic_ns();
    let done = done_between(&load.stop()?, from_ns, to_ns);
    Ok(done.context("the server did nothing")?.operations_per_s)
}

/// A stretch with and one without, under one load; which comes first was drawn, so that drift cancels.
fn measure(
    arguments: &Arguments,
    beside: &Beside,
    task: &YcsbTask,
    cold: &ColdServer,
    with_first: bool,
    run: &Path,
) -> Result<Pair> {
    let watched = Duration::from_secs(arguments.watched_s);
    let (uri, server) = (cold.local.uri(), cold.local.pid()?);
    let load = task.start(&uri)?;
    let (mut marks, mut examined) = ([None, None], None);
    for with in [with_first, !with_first] {
        std::thread::sleep(PAUSE);
        let from = Mark::now(server)?;
        if with {
            examined = Some(beside.run(arguments, &uri, run)?);
        } else {
            let whole_s = examined.as_ref().map(Examined::seconds);
            std::thread::sleep(whole_s.map_or(watched + AFTER, Duration::from_secs_f64));
        }
        marks[usize::from(with)] = Some((from, Mark::now(server)?));
    }
    let examined = examined.context("one of two is with it")?;
    // The last second is handed over when it is full.
    std::thread::sleep(Duration::from_secs(1));
    let seconds = load.stop()?;
    let stretch = |marks: Option<(Mark, Mark)>| {
        let (from, to) = marks.context("one of each")?;
        Ok::<_, anyhow::Error>(Stretch {
            done: done_between(&seconds, from.t_ns, to.t_ns)
                .context("the load did nothing in a stretch")?,
            server_cpu_s: (to.server_cpu_ns - from.server_cpu_ns) as f64 / 1e9,
            seconds: (to.t_ns - from.t_ns) as f64 / 1e9,
        })
    };
    let [without, with] = marks;
    Ok(Pair {
        without: stretch(without)?,
        with: stretch(with)?,
        process_cpu_s: examined.usage.cpu_ns as f64 / 1e9,
        programs_cpu_s: beside.programs_cpu_s(run)?,
        examined,
    })
}

fn show(pairs: &[Pair]) -> Result<()> {
    let ratio = |of: fn(&Stretch) -> f64| {
        let values: Vec<(f64, f64)> = pairs
            .iter()
            .map(|pair| (of(&pair.without), of(&pair.with)))
            .collect();
        paired_ratio(&values, 1).context("a stretch without operations")
    };
    let throughput = ratio(|stretch| stretch.done.operations_per_s)?;
    let p99 = ratio(|stretch| stretch.done.p99_ns as f64)?;
    let cpu = ratio(Stretch::server_cpu_us_per_operation)?;
    println!();
    for (name, ratio) in [
        ("throughput", &throughput),
        ("99th percentile", &p99),
        ("server's CPU per operation", &cpu),
    ] {
        let PairedRatio {
            median: middle,
            low,
            high,
            pairs: count,
        } = ratio;
        println!("{name}: with / without = {middle:.4} ({low:.4} to {high:.4}, {count} pairs)");
    }
    let of = |value: fn(&Pair) -> f64| median(&pairs.iter().map(value).collect::<Vec<_>>());
    let (account_s, budget_s) = (
        of(Pair::account_s).unwrap_or(f64::NAN),
        of(Pair::budget_s).unwrap_or(f64::NAN),
    );
    println!(
        "by account, medians: {account_s:.2} s of CPU in {:.1} s, {:.1} MB at most; the budget is {budget_s:.2} s: {}",
        of(|pair| pair.with.seconds).unwrap_or(f64::NAN),
        of(|pair| pair.examined.usage.rss_bytes as f64 / 1e6).unwrap_or(f64::NAN),
        if account_s <= budget_s {
            "kept"
        } else {
            "exceeded"
        },
    );
    let is_noisy = cpu.high - cpu.low > 2.0 * BUDGET_SHARE;
    println!(
        "{}",
        if is_noisy {
            "The measurement's interval is wider than the budget, so the account decides."
        } else {
            "The measurement is precise enough to be compared with the budget."
        }
    );
    Ok(())
}
