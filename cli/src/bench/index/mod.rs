//! `seekscope bench index`: index builds on existing data, alone or beside other load, on one server or on two in turn.

mod beside;
mod members;
mod memory_limit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{BenchIndexBuild, BenchMeasurement, BuildReads, Limitation};
use seekscope_server::Namespace;
use seekscope_settings::TunerLock;
use seekscope_trace::TraceError;
use seekscope_workload::index_lab::{
    BigIndexDocuments, BuildProgress, Concluded, IndexKind, IndexLab, IndexedDocuments, kinds,
};
use seekscope_workload::sharding::LoadedCollection;
use seekscope_workload::{DataSet, Documents, Sdu, SduOptions, quiesce};

use self::members::{BuildTrace, Members, untraced};
use self::memory_limit::MemoryLimit;
use crate::args::{IndexArgs, IndexDataName, VersusArgs};
use crate::bench::ending::Demands;
use crate::bench::results::Show;
use crate::bench::sharding::{Expected, Sharding};
use crate::bench::stage::Stage;
use crate::bench::target::Target;
use crate::bench::{data, sharding, variants};
use crate::environment::Environment;
use crate::exit::{NotRestored, Usage, lacks_permission, message_of};
use crate::progress::Step;
use crate::unrestored::{self, ORIGINALS_OF};

/// Name of the data set's entry in the database.
const DATA_SET: &str = "index lab";
const COLLECTION: &str = "index_lab";
/// How long a server may take to become quiet before a build.
const QUIET_LIMIT: Duration = Duration::from_secs(120);

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
        sharding: Sharding::new(&args.sharding, args.target.uri.as_deref())?,
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
    sharding: Option<Sharding>,
}

/// A server with the documents.
struct Side<'a> {
    target: &'a Target,
    lab: IndexLab,
    /// What is looked at while it builds.
    members: Members,
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
            sharding: self.sharding.as_ref().map(Sharding::record),
            ..BenchMeasurement::default()
        }
    }

    async fn work(&self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        let args = &self.args.target;
        let versus = VersusArgs {
            vs: self.args.vs.iter().cloned().collect(),
            vs_config: None,
            pairs: self.args.repeats,
        };
        variants::say_if_too_few(stage, &versus, self.kinds.len());
        let targets = variants::open(
            stage,
            args.uri.as_deref(),
            args,
            Some(&versus),
            self.sharding.as_ref(),
            environment,
        )
        .await?;
        if targets.iter().any(|target| target.shares_data) {
            let why = "--vs: it is the same server, and an index is built in the same way whoever asks; name a second one";
            return Err(Usage(why.into()).into());
        }
        let worked = self.measure(stage, &targets, environment).await;
        let sharding = self.sharding.as_ref();
        sharding::end(sharding, stage, &targets, args, DATA_SET, worked).await?;
        variants::close(stage, targets, args.keep).await
    }

    /// Loads, and builds the indexes.
    async fn measure(
        &self,
        stage: &mut Stage,
        targets: &[Target],
        environment: &Environment,
    ) -> Result<()> {
        let mut limits = Vec::new();
        let built = self
            .build_on(stage, targets, environment, &mut limits)
            .await;
        // Also after an interruption: this is the servers' own setting.
        let mut restored = Ok(());
        for limit in &mut limits {
            if let Err(error) = limit.restore().await {
                let what = "the server's limit of memory for index builds was not restored";
                let (why, remedy) = (message_of(&error), unrestored::remedy(limit.folder()));
                restored = Err(NotRestored(format!("{what}: {why}; try again: {remedy}")).into());
                stage.limit(Limitation {
                    what: what.into(),
                    why,
                    remedy,
                });
            }
        }
        // The first error is the cause.
        built.and(restored)
    }

    async fn build_on(
        &self,
        stage: &mut Stage,
        targets: &[Target],
        environment: &Environment,
        limits: &mut Vec<MemoryLimit>,
    ) -> Result<()> {
        let interruption = stage.interruption.clone();
        let mut locks = Vec::new();
        for target in targets.iter().filter(|_| self.args.memory_mb.is_some()) {
            locks.push(memory_limit::lock(target, &environment.lease_folder)?);
        }
        let mut locks = locks.into_iter();
        let mut sides = Vec::new();
        for target in targets {
            let lab = interruption.or(self.prepare(stage, target)).await?;
            stage.check_primary(target, "loading").await?;
            let members = self.look_at(stage, target);
            let members = interruption.or(members).await?;
            let folder = format!("{ORIGINALS_OF}{}", sides.len() + 1);
            let folder = stage.session.directory.path().join(folder);
            let locks = locks.next().unwrap_or_default();
            limits.extend(self.limit_memory(stage, target, locks, &folder).await?);
            sides.push(Side {
                target,
                lab,
                members,
            });
        }
        self.build_all(stage, &sides).await
    }

    /// Reads how the collection lies in the files of each server with data on this host, if several servers are compared
    /// or the collection is sharded.
    async fn look_at(&self, stage: &mut Stage, target: &Target) -> Result<Members> {
        if self.sharding.is_none() && self.args.vs.is_none() {
            return Ok(Members::default());
        }
        let namespace = Namespace::new(&self.args.target.database, COLLECTION)?;
        let progress = stage.progress;
        let _step = progress.step("reading the order of the files");
        let members = Members::find(stage, target, &namespace).await?;
        let files = members.read_order(stage, &target.variant).await?;
        stage.measurement().indexed_files.extend(files);
        stage.session.save()?;
        Ok(members)
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
        let documents = self.documents.clone();
        let loaded = [LoadedCollection {
            name: COLLECTION.into(),
            records: docs,
            document: Box::new(move |number| documents.document(number)),
        }];
        let sharding = self.sharding.as_ref();
        sharding::begin_load(sharding, stage, target, database, &wanted, 1, &loaded).await?;
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
        let loaded = [Expected {
            collection: COLLECTION.into(),
            documents: Some(docs),
        }];
        sharding::verify_spread(sharding, stage, target, database, "load", &loaded, 0).await?;
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

    async fn limit_memory(
        &self,
        stage: &mut Stage,
        target: &Target,
        locks: Vec<TunerLock>,
        folder: &Path,
    ) -> Result<Option<MemoryLimit>> {
        let Some(megabytes) = self.args.memory_mb else {
            return Ok(None);
        };
        match MemoryLimit::set(target, locks, megabytes, folder).await {
            Ok(limit) => Ok(Some(limit)),
            Err(error) if lacks_permission(&error) => {
                Err(error.context("the memory for index builds is not limited as --memory-mb asks"))
            }
            Err(error) => {
                stage.limit(Limitation {
                    what: "the memory for index builds was not limited".into(),
                    why: message_of(&error),
                    remedy: "leave --memory-mb out, or use a server that has maxIndexBuildMemoryUsageMegabytes".into(),
                });
                Ok(None)
            }
        }
    }

    /// Builds all indexes. Servers and kinds take turns, so that drift on the machine affects all of them alike.
    async fn build_all(&self, stage: &mut Stage, sides: &[Side<'_>]) -> Result<()> {
        let mut is_traced = true;
        let order = variants::order(sides.len(), self.args.repeats);
        for turns in order.chunks(sides.len()) {
            for kind in &self.kinds {
                for (place, repetition) in turns {
                    let side = &sides[*place];
                    let build = self.build_one(stage, side, kind, *repetition, is_traced);
                    let build = build.await;
                    // An election is the cause of whatever else has failed.
                    for side in sides {
                        stage.check_primary(side.target, kind.name).await?;
                    }
                    let (build, can_be_traced) = build?;
                    // What failed once would fail again.
                    is_traced &= can_be_traced;
                    stage.measurement().index_builds.push(build);
                    stage.session.save()?;
                }
            }
        }
        Ok(())
    }

    /// Builds one index, alone or beside other load. Also returns whether builds can be traced.
    async fn build_one(
        &self,
        stage: &mut Stage,
        side: &Side<'_>,
        kind: &IndexKind,
        repetition: u32,
        is_traced: bool,
    ) -> Result<(BenchIndexBuild, bool)> {
        let target = side.target;
        let (database, collections) = (&self.args.target.database, vec![COLLECTION.into()]);
        let mut watch = stage.watch_shards(target, database, collections).await?;
        let (concluded, can_be_traced) = match self.args.foreground {
            None => {
                let alone = self.build_alone(stage, side, kind, repetition, is_traced);
                alone.await?
            }
            Some(per_s) => {
                let beside = self.build_beside(stage, target, &side.lab, kind, repetition, per_s);
                (beside.await?, is_traced)
            }
        };
        let Concluded {
            mut build,
            limitation,
        } = concluded;
        limitation.into_iter().for_each(|told| stage.limit(told));
        if let Some(watch) = &mut watch {
            stage.end_watch(watch, target).await;
            build.shards = Some(watch.of_balancer());
            let told = watch.limitations(&format!("the build of {}", kind.name));
            told.into_iter().for_each(|told| stage.limit(told));
        }
        build.variant.clone_from(&target.variant);
        Ok((build, can_be_traced))
    }

    /// Builds one index, and records how it reads if `is_traced`. Also returns whether builds can be traced.
    async fn build_alone(
        &self,
        stage: &mut Stage,
        side: &Side<'_>,
        kind: &IndexKind,
        repetition: u32,
        is_traced: bool,
    ) -> Result<(Concluded, bool)> {
        let name = (side.target).step_name(kind.name, repetition, self.args.repeats);
        let interruption = stage.interruption.clone();
        let step = stage.progress.step(format!("building {name}"));
        let trace = match is_traced {
            true => side.members.trace(),
            false => Ok(None),
        };
        let told = |progress| tell(&step, progress);
        let building = async { Ok(side.lab.create(kind, &told).await?) };
        let built = interruption.or(building).await?;
        // Before the index is checked, which reads documents in its own order.
        let reads = trace.and_then(|trace| match trace {
            Some(trace) => side.end(stage, trace),
            None => Ok(Vec::new()),
        });
        let can_be_traced = is_traced && reads.is_ok();
        let reads = reads.unwrap_or_else(|error| {
            stage.limit(untraced(error));
            Vec::new()
        });
        let concluding = async { Ok(side.lab.conclude(kind, repetition, built).await?) };
        let mut concluded = interruption.or(concluding).await?;
        concluded.build.reads = reads;
        Ok((concluded, can_be_traced))
    }
}

impl Side<'_> {
    /// Ends the record, and returns how each member read.
    fn end(&self, stage: &mut Stage, trace: BuildTrace) -> Result<Vec<BuildReads>, TraceError> {
        let (reads, facts) = self.members.end(trace)?;
        if facts.lost > 0 {
            stage.limit(Limitation {
                what: format!(
                    "{} of {} reads of a build were not recorded",
                    format_count(facts.lost),
                    format_count(facts.seen)
                ),
                why: "they came faster than they could be stored".into(),
                remedy: String::new(),
            });
        }
        Ok(reads)
    }
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
