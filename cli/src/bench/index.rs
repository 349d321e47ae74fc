//! `seekscope bench index`: index builds on existing data, alone or beside other load.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use seekscope_client::{Job, Retries, ScheduleKind, Second};
use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{Arrivals, BenchMeasurement, Limitation};
use seekscope_server::Namespace;
use seekscope_workload::index_lab::{
    BigIndexDocuments, BuildProgress, Built, Concluded, IndexKind, IndexLab, IndexedDocuments,
    MemoryLimit, kinds, p99_ns,
};
use seekscope_workload::{DataSet, Sdu, SduOptions, quiesce};

use super::client_choice::wanted;
use super::ending::Demands;
use super::results::Show;
use super::stage::{Stage, StepPlan};
use super::target::Target;
use super::{data, variants};
use crate::args::{IndexArgs, IndexDataName, WarmUpName};
use crate::environment::Environment;
use crate::exit::Usage;
use crate::progress::Step;

/// Name of the data set's entry in the database.
const DATA_SET: &str = "index lab";
const COLLECTION: &str = "index_lab";
/// How long a server may take to become quiet before a build.
const QUIET_LIMIT: Duration = Duration::from_secs(120);
/// How often to check whether the other load has begun.
const LOOK: Duration = Duration::from_millis(20);
/// An operation that waits longer than this for a build counts as failed.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);
const FAILURES_MAX: u64 = 10_000;

/// Runs the command.
pub async fn run(
    args: &IndexArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let documents = match args.data {
        IndexDataName::Genny => IndexedDocuments::BigIndex(BigIndexDocuments { seed: args.seed }),
        IndexDataName::Sdu => IndexedDocuments::Sdu(Box::new(Sdu::new(SduOptions {
            seed: args.seed,
            ..SduOptions::default()
        }))),
    };
    let bench = Bench {
        kinds: chosen_kinds(&documents, &args.kinds)?,
        args,
        documents,
    };
    let mut stage = Stage::begin(&args.keep, arguments, bench.measurement())?;
    stage.session.document.seed = Some(args.seed);
    let worked = bench.work(&mut stage, environment).await;
    stage.end(worked, &Demands::default(), &args.keep.output, Show::Tables)
}

fn chosen_kinds(documents: &IndexedDocuments, names: &[String]) -> Result<Vec<&'static IndexKind>> {
    let all = kinds(documents);
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        all.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|kind| kind.name).collect();
            Usage(format!(
                "--kinds {name}: {} has {}",
                documents.name(),
                known.join(", ")
            ))
            .into()
        })
    };
    names.iter().map(find).collect()
}

/// The running command.
struct Bench<'a> {
    args: &'a IndexArgs,
    documents: IndexedDocuments,
    kinds: Vec<&'static IndexKind>,
}

impl Bench<'_> {
    fn measurement(&self) -> BenchMeasurement {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name).collect();
        let mut settings = BTreeMap::from([
            ("documents".to_string(), self.args.docs.to_string()),
            ("data".into(), self.documents.name().into()),
            ("kinds".into(), names.join(",")),
            ("repeats".into(), self.args.repeats.to_string()),
        ]);
        if let Some(megabytes) = self.args.memory_mb {
            settings.insert("memory_mb".into(), megabytes.to_string());
        }
        if let Some(per_s) = self.args.foreground {
            settings.insert("foreground per_s".into(), per_s.to_string());
        }
        BenchMeasurement {
            workload: "index-build".into(),
            edition: self.documents.name().into(),
            settings,
            database: self.args.target.database.clone(),
            ..BenchMeasurement::default()
        }
    }

    async fn work(&self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        let args = &self.args.target;
        let mut targets =
            variants::open(stage, args.uri.as_deref(), args, None, environment).await?;
        let target = targets.remove(0);
        let interruption = stage.interruption.clone();
        let lab = interruption.or(self.prepare(stage, &target)).await?;
        let limit = self.limit_memory(stage, &target).await;
        let built = self.build_all(stage, &target, &lab).await;
        // Also after an interruption: this is the server's own setting.
        if let Some(limit) = limit
            && let Err(error) = limit.restore().await
        {
            stage.limit(Limitation {
                what: "the server's limit of memory for index builds was not restored".into(),
                why: error.to_string(),
                remedy: "set maxIndexBuildMemoryUsageMegabytes yourself".into(),
            });
        }
        built?;
        if args.drop {
            let dropping = data::drop_data(&target, &args.database, DATA_SET);
            stage.asking(dropping).await?;
        }
        variants::close(stage, vec![target], args.keep).await
    }

    /// Loads the documents and waits until the server has finished with them.
    async fn prepare(&self, stage: &mut Stage, target: &Target) -> Result<IndexLab> {
        let (database, docs) = (&self.args.target.database, self.args.docs);
        let collections = vec![COLLECTION.to_string()];
        let wanted = DataSet::new(
            DATA_SET,
            collections,
            self.documents.name(),
            docs,
            self.args.seed,
        );
        data::begin_load(target, database, &wanted, 1).await?;
        let lab = {
            let step = stage.progress.counted("loading", docs);
            let namespace = Namespace::new(database, COLLECTION)?;
            let documents = self.documents.clone();
            IndexLab::prepare(target.server()?, &namespace, documents, docs, &|done| {
                step.at(done)
            })
            .await?
        };
        data::end_load(target, database, DATA_SET).await?;
        let quiet = {
            let _step = stage.progress.step("waiting until the server is quiet");
            quiesce(target.server()?, target.facts.pid, QUIET_LIMIT).await
        };
        quiet
            .into_iter()
            .for_each(|limitation| stage.limit(limitation));
        Ok(lab.seen_as(
            target.facts.pid,
            target.facts.dbpath.as_ref().map(PathBuf::from),
        ))
    }

    async fn limit_memory(&self, stage: &mut Stage, target: &Target) -> Option<MemoryLimit> {
        match MemoryLimit::set(target.server().ok()?, self.args.memory_mb?).await {
            Ok(limit) => Some(limit),
            Err(error) => {
                stage.limit(Limitation {
                    what: "the memory for index builds was not limited".into(),
                    why: error.to_string(),
                    remedy: "leave --memory-mb out, or use a server that has maxIndexBuildMemoryUsageMegabytes".into(),
                });
                None
            }
        }
    }

    /// Builds all indexes. The kinds take turns, so that drift on the machine affects all of them alike.
    async fn build_all(&self, stage: &mut Stage, target: &Target, lab: &IndexLab) -> Result<()> {
        let interruption = stage.interruption.clone();
        for repetition in 1..=self.args.repeats {
            for kind in &self.kinds {
                let Concluded { build, limitation } = match self.args.foreground {
                    None => {
                        let step = stage
                            .progress
                            .step(format!("building {} ({repetition})", kind.name));
                        let told = |progress| tell(&step, progress);
                        let build = async { Ok(lab.build(kind, repetition, &told).await?) };
                        interruption.or(build).await?
                    }
                    Some(per_s) => {
                        let beside = self.build_beside(stage, target, lab, kind, repetition, per_s);
                        beside.await?
                    }
                };
                limitation.into_iter().for_each(|told| stage.limit(told));
                stage.measurement().index_builds.push(build);
                stage.session.save()?;
            }
        }
        Ok(())
    }

    /// Builds an index while another load runs, as a separate step.
    async fn build_beside(
        &self,
        stage: &mut Stage,
        target: &Target,
        lab: &IndexLab,
        kind: &IndexKind,
        repetition: u32,
        per_s: f64,
    ) -> Result<Concluded> {
        let stop = Arc::new(AtomicBool::new(false));
        let seconds: Arc<Mutex<Vec<Second>>> = Arc::default();
        let plan = self.foreground(lab, kind, repetition, per_s, &stop, &seconds);
        let has_ended = AtomicBool::new(false);
        let building = async {
            // The server writes a checkpoint before a step, which takes a while.
            if !has_begun(&seconds, &has_ended).await {
                return Ok(None);
            }
            tokio::time::sleep(self.args.margin).await;
            let built = lab.create(kind, &|_| ()).await;
            tokio::time::sleep(self.args.margin).await;
            stop.store(true, Ordering::Relaxed);
            Ok(Some(built?))
        };
        let interruption = stage.interruption.clone();
        let stepping = async {
            let stepped = stage.step(target, plan).await;
            has_ended.store(true, Ordering::Relaxed);
            stepped
        };
        let (stepped, built) = tokio::join!(stepping, interruption.or(building));
        let built: Option<Built> = built?;
        stepped?;
        let built = built.ok_or_else(|| anyhow!("the other load ended before the build began"))?;
        let cleaned = async { Ok(lab.remove_inserted().await?) };
        interruption.or(cleaned).await?;
        let p99 = p99_ns(
            &seconds.lock().unwrap_or_else(PoisonError::into_inner),
            &built,
        );
        let concluding = async { Ok(lab.conclude(kind, repetition, built).await?) };
        let mut concluded = interruption.or(concluding).await?;
        concluded.build.foreground_p99_ns = p99;
        Ok(concluded)
    }

    fn foreground(
        &self,
        lab: &IndexLab,
        kind: &IndexKind,
        repetition: u32,
        per_s: f64,
        stop: &Arc<AtomicBool>,
        seconds: &Arc<Mutex<Vec<Second>>>,
    ) -> StepPlan {
        let in_flight = self.args.in_flight as usize;
        StepPlan {
            name: format!("beside {} {repetition}", kind.name),
            kind: "run",
            workload_name: "point operations".into(),
            repetition,
            workload: Arc::new(lab.point_operations(self.args.seed)),
            database: self.args.target.database.clone(),
            collections: vec![COLLECTION.into()],
            client: wanted(self.args.client),
            job: Job {
                schedule: ScheduleKind::Constant { per_s },
                in_flight,
                threads: 1,
                transactions: None,
                duration: None,
                timeout: OPERATION_TIMEOUT,
                start_at_ns: None,
                retries: Retries::default(),
                failures_in_a_row_max: Some(FAILURES_MAX),
            },
            arrivals: Arrivals::Constant { per_s },
            // The effect of the build on the load must not be left out.
            warm_up: WarmUpName::None,
            expected: None,
            stop: Some(Arc::clone(stop)),
            keep_seconds: Some(Arc::clone(seconds)),
        }
    }
}

/// Waits for the first second of a load; returns `false` if the load ended before.
async fn has_begun(seconds: &Mutex<Vec<Second>>, has_ended: &AtomicBool) -> bool {
    let is_empty = || {
        let seconds = seconds.lock().unwrap_or_else(PoisonError::into_inner);
        seconds.is_empty()
    };
    while is_empty() {
        if has_ended.load(Ordering::Relaxed) {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Shows the progress that the server reports.
fn tell(step: &Step, progress: BuildProgress) {
    let elapsed = format_ns(u64::try_from(progress.elapsed.as_nanos()).unwrap_or(u64::MAX));
    step.note(match progress.total {
        0 => elapsed,
        total => format!(
            "{} of {}, {elapsed}",
            format_count(progress.done),
            format_count(total)
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_build_waits_for_its_other_load() {
        let seconds = Mutex::new(Vec::new());
        let has_ended = AtomicBool::new(false);
        let (begun, ()) = tokio::join!(has_begun(&seconds, &has_ended), async {
            tokio::task::yield_now().await;
            let first = Second {
                t_ns: 0,
                duration_ns: 1_000_000_000,
                operations: Vec::new(),
                transactions: 0,
                in_flight: 0.0,
                lag: seekscope_run::latency_histogram(),
                backlog: 0,
                client_cpu_ns: 0,
            };
            seconds.lock().unwrap().push(first);
        });
        assert!(begun);
        // A load that could not begin must not be waited for.
        seconds.lock().unwrap().clear();
        has_ended.store(true, Ordering::Relaxed);
        assert!(!has_begun(&seconds, &has_ended).await);
    }
}
