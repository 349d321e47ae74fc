//! The command line: what may be typed, what it means, and nothing else.

mod advise;
mod bench;
mod bench_common;
mod bench_index;
mod bench_own;
mod bench_schema;
mod bench_shard;
mod bench_values;
mod collect;
mod disk;
mod doctor;
#[cfg(test)]
mod documented;
mod exporter;
mod layout;
mod packaging;
mod prefetch;
#[cfg(test)]
mod printed;
mod reorder;
mod replay;
mod top;
mod trace;
mod trace_files;
mod tune;

use std::path::PathBuf;

pub use advise::AdviseArgs;
pub use bench::{
    BenchArgs, BenchVerb, EditionName, EraName, KeyHashName, MergeArgs, SysbenchArgs, WorkloadName,
    YcsbArgs, YcsbPhase,
};
pub use bench_common::{BenchTargetArgs, ClientName, KeepArgs, SendArgs, VersusArgs, WarmUpName};
pub use bench_index::{IndexArgs, IndexDataName};
pub use bench_own::{PrintArgs, RunArgs, SampleArgs};
pub use bench_schema::{BUCKET_SAMPLES, SchemaArgs};
pub use bench_shard::{ShardArgs, ShardName};
#[cfg(test)]
pub use bench_values::parse_slo;
pub use bench_values::{ArrivalsName, LatencyLimit, Slo, StartAt};
use clap::{Args, Parser, Subcommand};
pub use collect::CollectArgs;
pub use disk::{
    AdviceName, DiskArgs, DiskTargetArgs, DiskVerb, JobArgs, JobEngine, MongoperfArgs, PredictArgs,
    ProfileName, Rw, SurveyArgs, SurveyEngine,
};
pub use doctor::{BuildArgs, DemoArgs, DoctorArgs, EmulatedDisk, ExamineArgs, JudgeArgs};
pub use exporter::ExporterArgs;
pub use layout::{CompareArgs, LayoutArgs, ScanDiskArgs};
pub use packaging::{CompletionsArgs, ManualArgs};
pub use prefetch::PrefetchArgs;
pub use reorder::{ReorderArgs, WritersArgs};
pub use replay::{LoopName, ReplayArgs, Speed};
pub use top::TopArgs;
pub use trace::{BackendName, OpName, RecordArgs, TraceArgs, TraceVerb, WhoArgs};
pub use trace_files::{ExportArgs, ExportFormat, ImportArgs, ImportFormat};
pub use tune::{
    TuneApplyArgs, TuneArgs, TuneForm, TuneInitArgs, TuneKnobArgs, TuneLocalArgs, TuneMeasuredArgs,
    TuneSessionArgs, TuneShowArgs, TuneVerb,
};

/// Find out why this document database is slow on disk, how certain that is, and what to type to fix it.
#[derive(Debug, Parser)]
#[command(
    name = "seekscope",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 target unreachable or refused, 4 permission missing,
5 data inconsistent, 6 a threshold you set was missed, 130 interrupted (the partial run is kept)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Doctor(Box<DoctorArgs>),
    Collect(Box<CollectArgs>),
    Top(TopArgs),
    Exporter(ExporterArgs),
    Bench(Box<BenchArgs>),
    Disk(Box<DiskArgs>),
    Trace(Box<TraceArgs>),
    Layout(Box<LayoutArgs>),
    Advise(Box<AdviseArgs>),
    Reorder(Box<ReorderArgs>),
    Prefetch(Box<PrefetchArgs>),
    Tune(Box<TuneArgs>),
    Mongoperf(MongoperfArgs),
    Replay(Box<ReplayArgs>),
    Compare(CompareArgs),
    Merge(MergeArgs),
    Report(ReportArgs),
    Clean(CleanArgs),
    Completions(CompletionsArgs),
    Manual(ManualArgs),
}

/// How results are shown; the same for every command.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print one JSON document on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no hints on stderr, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Show a finished or interrupted run again, and rewrite its report.html
///
/// Needs only the run directory, or a bundle of `seekscope collect`: no server and no root, and it also works on
/// another host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope report seekscope-runs/doctor-20260901-101500
  seekscope report RUN --json | jq .findings")]
pub struct ReportArgs {
    /// The run directory, or a bundle
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Unpack the bundle, or copy the run, into this folder [default: seekscope-runs/report-DATE-TIME for a bundle; a
    /// run is shown in its own folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Remove what killed runs left behind: servers, their data, cgroups
///
/// Touches only what a run of this user recorded as its own and whose process is gone. Also lists the server settings
/// that killed runs left changed, with their original values and how to restore them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope clean
  seekscope clean --yes")]
pub struct CleanArgs {
    /// Remove everything without asking first
    #[arg(long)]
    pub yes: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if (0.0..=1.0).contains(&v) => Ok(v),
        _ => Err("a number from 0 to 1 is expected".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_documentation_shows_what_may_be_typed() {
        let commands = documented::documented_commands();
        assert!(
            commands.len() > 60,
            "where is the documentation? {}",
            commands.len()
        );
        let wrong: Vec<String> = commands
            .iter()
            .filter_map(|command| {
                let words = documented::arguments(&command.line).unwrap_or_default();
                // A process's number cannot be written down.
                let words = words.iter().map(|word| match word.as_str() {
                    "PID" => "4711",
                    word if word.starts_with("$(pgrep") => "4711",
                    word => word,
                });
                let error = Cli::try_parse_from(std::iter::once("seekscope").chain(words)).err()?;
                Some(format!("{}: {}\n{error}", command.page, command.line))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_findings_print_may_be_typed() {
        let commands = printed::printed_commands();
        assert!(commands.len() >= 8, "where are the detectors? {commands:?}");
        for ways in commands {
            let parses = |line: &&String| {
                let words = documented::arguments(line).unwrap_or_default();
                Cli::try_parse_from(std::iter::once("seekscope".into()).chain(words)).is_ok()
            };
            assert!(ways.iter().any(|line| parses(&line)), "{ways:?}");
            // The data's disk is the disk of a running database.
            let measures = |line: &String| line.starts_with("seekscope disk ");
            let beside = |line: &String| line.contains("--next-to-database");
            assert!(
                ways.iter().all(|line| !measures(line) || beside(line)),
                "{ways:?}"
            );
        }
    }

    #[test]
    fn options_of_the_other_mode_are_refused() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("seekscope doctor --docs 1000").is_ok());
        assert!(parse("seekscope doctor mongodb://h/ --for 5s").is_ok());
        assert!(parse("seekscope doctor mongodb://h/ --docs 1000").is_err());
        assert!(parse("seekscope doctor --collection a.b").is_err());
        assert!(parse("seekscope doctor mongodb://h/ --index {}").is_err());
        assert!(parse("seekscope doctor --compressibility NaN").is_err());
        assert!(parse("seekscope doctor --docs 0").is_err());
        assert!(parse("seekscope bench ycsb --vs-config a=1,2 --pairs 3").is_ok());
        assert!(parse("seekscope bench ycsb mongodb://h/ --vs mongodb://i/ --pairs 3").is_ok());
        assert!(parse("seekscope bench ycsb --pairs 3").is_err());
        assert!(parse("seekscope bench index --kinds int,2dsphere-geojson").is_ok());
        assert!(parse("seekscope bench index --kinds int,2dsphere").is_err());
        assert!(parse("seekscope bench ycsb --database bench").is_ok());
        for name in ["", "a/b", &"a".repeat(80)] {
            assert!(parse(&format!("seekscope bench ycsb --database={name}")).is_err());
            assert!(parse(&format!("seekscope tune --command x --database={name}")).is_err());
        }
        assert!(parse("seekscope layout /d a.b --watch --every 1s").is_ok());
        assert!(parse("seekscope layout /d --every 1s").is_err());
        assert!(parse("seekscope layout /d --leaves --json").is_err());
        assert!(parse("seekscope layout /d --updates-per-hour NaN").is_err());
        assert!(parse("seekscope layout /d --watch --measure-disk /d").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --watch 9s").is_ok());
        assert!(parse("seekscope reorder mongodb://h/ --rollback").is_ok());
        assert!(parse("seekscope reorder mongodb://h/").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --apply --resume").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --force").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --apply --pause-writers x").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --max-rate 0").is_err());
    }
}
