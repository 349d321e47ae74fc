//! Workloads whose data is loaded once and which are then run repeatedly, to compare what they do under
//! different settings.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use seekscope_client::Workload;
use seekscope_run::BenchMeasurement;

use super::abandonment::Abandonment;
use super::rounds::Stretch;
use super::stage::{Stage, StepDone};
use super::target::Target;
use super::{own, sysbench, ycsb};
use crate::args::{BenchTargetArgs, RunArgs, SendArgs, ShardArgs, SysbenchArgs, YcsbArgs};
use crate::exit::Usage;

/// A workload that can be run again and again on the same data.
#[derive(Debug)]
pub enum Repeatable {
    Ycsb(Box<YcsbArgs>),
    Sysbench(Box<SysbenchArgs>),
    Own(Box<RunArgs>),
}

/// `seekscope bench ycsb` and so on, typed as part of another command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
enum Typed {
    Ycsb(Box<YcsbArgs>),
    Sysbench(Box<SysbenchArgs>),
    Run(Box<RunArgs>),
}

impl Repeatable {
    /// Parses a workload. `name`: `ycsb:LETTER`, `ycsb`, `sysbench`, or a file or name that `bench run` takes.
    /// `options`: as after `seekscope bench …`. `duration`: length of a run, if neither says.
    pub fn parse(
        name: &str,
        options: &[String],
        database: &str,
        duration: Duration,
    ) -> Result<Self> {
        let mut words: Vec<String> = match name.split_once(':') {
            Some(("ycsb", letter)) => vec!["ycsb".into(), "--workload".into(), letter.into()],
            _ if name == "ycsb" || name == "sysbench" => vec![name.into()],
            _ => vec!["run".into(), name.into()],
        };
        words.extend(["--database".into(), database.into()]);
        words.extend(options.iter().cloned());
        let typed = Typed::try_parse_from(&words).map_err(|error| {
            let text = error.to_string();
            // Up to the usage; what is missing is listed, a line each.
            let lines = text.lines().take_while(|line| !line.is_empty());
            let why = lines.map(str::trim).collect::<Vec<_>>().join(" ");
            Usage(format!(
                "--workload {name} {}: {}",
                options.join(" "),
                why.trim_start_matches("error: ")
            ))
        })?;
        let workload = match typed {
            Typed::Ycsb(mut args) => {
                let counted = args.operations.is_some();
                args.send.duration = args.send.duration.or((!counted).then_some(duration));
                Self::Ycsb(args)
            }
            Typed::Sysbench(mut args) => {
                let counted = args.transactions.is_some();
                args.send.duration = args.send.duration.or((!counted).then_some(duration));
                Self::Sysbench(args)
            }
            Typed::Run(args) => Self::Own(args),
        };
        workload.check()?;
        Ok(workload)
    }

    /// Refuses options that name the server or how often to run: these are not up to the workload.
    fn check(&self) -> Result<()> {
        let (target, send, sharding): (&BenchTargetArgs, Option<&SendArgs>, &ShardArgs) = match self
        {
            Self::Ycsb(args) => (&args.target, Some(&args.send), &args.sharding),
            Self::Sysbench(args) => (&args.target, Some(&args.send), &args.sharding),
            Self::Own(args) => (&args.target, None, &args.sharding),
        };
        if sharding.shard.is_some() {
            let why = "--shard is for `bench`: shard the collection of a workload beforehand, empty; it is taken as it is";
            return Err(Usage(why.into()).into());
        }
        let has_local = !target.server_setting.is_empty() || target.cache.is_some();
        let many = send.is_some_and(|send| send.find_max || send.clients.is_some());
        if target.uri.is_some() || has_local || many {
            let why = "the options of a workload name no server, no settings of one, and no --find-max \
                       or --clients: they say what is sent";
            return Err(Usage(why.into()).into());
        }
        // Other mistakes are reported before anything is created.
        self.operations().map(drop)
    }

    /// Returns the names of the operations that it counts in a run.
    pub fn operations(&self) -> Result<Vec<String>> {
        match self {
            Self::Ycsb(args) => ycsb::operations(args),
            Self::Sysbench(args) => sysbench::operations(args),
            Self::Own(args) => own::operations(args),
        }
    }

    /// Returns the names of workload and database for the record.
    pub fn measurement(&self) -> BenchMeasurement {
        let (workload, edition, database) = match self {
            Self::Ycsb(args) => ("ycsb", "", &args.target.database),
            Self::Sysbench(args) => ("sysbench-mongodb", "", &args.target.database),
            Self::Own(args) => (args.workload.as_str(), "own", &args.target.database),
        };
        BenchMeasurement {
            workload: workload.into(),
            edition: edition.into(),
            database: database.clone(),
            ..BenchMeasurement::default()
        }
    }

    /// Drops what an earlier load left, and loads the data. `name` is unique in the run.
    pub async fn load(&self, stage: &mut Stage, target: &Target, name: &str) -> Result<()> {
        match self {
            Self::Ycsb(args) => ycsb::load_once(args, stage, target, name).await,
            Self::Sysbench(args) => sysbench::load_once(args, stage, target, name).await,
            Self::Own(args) => own::load_once(args, stage, target, name).await,
        }
    }

    /// Runs the workload on loaded data. Returns the results of its roles, of which there may be several. A
    /// watched run that is abandoned ends in an error, without waiting for anything but its requests.
    pub async fn run(
        &self,
        stage: &mut Stage,
        target: &Target,
        stretch: Stretch,
    ) -> Result<Vec<StepDone>> {
        if let Some(watch) = &stretch.watch {
            stage.abandonment = watch.abandonment.clone();
        }
        let done = self.run_stretch(stage, target, stretch).await;
        stage.abandonment = Abandonment::default();
        done
    }

    async fn run_stretch(
        &self,
        stage: &mut Stage,
        target: &Target,
        mut stretch: Stretch,
    ) -> Result<Vec<StepDone>> {
        match self {
            Self::Ycsb(args) => {
                stretch.duration = args.send.duration;
                Ok(vec![ycsb::run_once(args, stage, target, stretch).await?])
            }
            Self::Sysbench(args) => {
                stretch.duration = args.send.duration;
                Ok(vec![
                    sysbench::run_once(args, stage, target, stretch).await?,
                ])
            }
            Self::Own(args) => own::run_once(args, stage, target, stretch).await,
        }
    }

    /// Returns the length of a run, if it is known in advance.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Self::Ycsb(args) => args.send.duration,
            Self::Sysbench(args) => args.send.duration,
            Self::Own(args) => own::duration(args),
        }
    }
}

/// Returns the names of what a workload counts.
pub fn operation_names(workload: &impl Workload) -> Vec<String> {
    let operations = workload.operations().iter();
    operations.map(|operation| operation.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, options: &str) -> Result<Repeatable> {
        let options: Vec<String> = options.split_whitespace().map(String::from).collect();
        Repeatable::parse(name, &options, "seekscope_tune", Duration::from_secs(7))
    }

    #[test]
    fn workloads_are_named_as_bench_names_them() {
        let Repeatable::Ycsb(args) = parse("ycsb:b", "--records 5000").unwrap() else {
            panic!("ycsb");
        };
        assert_eq!(args.target.database, "seekscope_tune");
        assert_eq!(
            (args.records, args.send.duration),
            (Some(5000), Some(Duration::from_secs(7)))
        );
        assert_eq!(
            parse("sysbench", "--for 3s").unwrap().duration(),
            Some(Duration::from_secs(3))
        );
        assert_eq!(parse("ycsb:a", "--operations 10").unwrap().duration(), None);
        // Two roles of 130 s at the same time.
        let own = "../docs/examples/tune-dirty-cache/reader-and-updater.toml";
        let own = parse(own, "").unwrap();
        assert_eq!(own.duration(), Some(Duration::from_secs(130)));
        assert!(matches!(
            parse("sysbench", "").unwrap(),
            Repeatable::Sysbench(_)
        ));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = parse("ycsb:a", "--find-max").unwrap_err().to_string();
        assert!(error.ends_with("--slo <p99=TIME,…>"), "{error}");
    }

    #[test]
    fn what_is_not_a_workloads_to_say_is_refused() {
        for (name, options) in [
            ("ycsb:z", ""),
            ("ycsb:a", "mongodb://db/"),
            ("ycsb:a,b", ""),
            ("ycsb:a", "--cache 1G"),
            ("ycsb:a", "--shard hashed"),
            ("ycsb:a", "--find-max --slo p99=1ms"),
            ("sysbench", "--nonsense"),
            ("no/such/file.toml", ""),
        ] {
            let error = parse(name, options).unwrap_err();
            assert!(error.is::<Usage>(), "{name} {options}: {error:#}");
        }
    }
}
