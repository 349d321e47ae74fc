//! `doctor` without a target: the whole story on a private server and generated documents.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{CacheState, DeviceFacts, Disk, Limitation, Phase, TargetFacts};
use seekscope_server::{
    CgroupTree, LocalServer, LocalServerOptions, Namespace, ProcFs, Server, ServerBinary, SlowDisk,
    SlowDiskSpec, Stopped, Workspace, page_cache,
};
use seekscope_workload::{
    IndexKeys, IndexPlan, LoadOptions, Sdu, SduOptions, UpdateOptions, drop_index, load, update,
};

use super::measurement::{Measurement, Traced};
use crate::args::{DemoArgs, EmulatedDisk};
use crate::environment::Environment;
use crate::file_names::FileNames;
use crate::progress::Progress;
use crate::session::Session;

const DATABASE: &str = "sdu";
const VARIANTS: [&str; 2] = ["fresh", "aged"];
/// The index that is built: its field is the first of every document.
const INDEX_KEYS: &str = r#"{"i":1}"#;
/// Share of `aged` that is updated at random after loading.
const UPDATED_SHARE: f64 = 0.1;
/// Mean BSON size of a document.
const DOCUMENT_BYTES: u64 = 3 * 1024;
/// A checkpoint of a large cache on a slow disk takes its time.
const STOP_LIMIT: Duration = Duration::from_secs(300);

/// Everything that exists while the demonstration runs. Fields drop in this order: the throttle
/// before the folder that its lease lies in.
struct Demo<'a> {
    args: &'a DemoArgs,
    progress: Progress,
    slow_disk: Option<SlowDisk>,
    workspace: Workspace,
    options: LocalServerOptions,
    /// Checked after loading, one per variant in the order of [`VARIANTS`].
    plans: Vec<IndexPlan>,
}

/// Runs it. Dropping the future ends the server and removes its data.
pub async fn run(
    session: &mut Session,
    args: &DemoArgs,
    environment: &Environment,
    progress: Progress,
) -> Result<()> {
    session.document.seed = Some(args.seed);
    let mut demo = Demo::prepare(session, args, environment, progress)?;
    demo.load(session).await?;
    for disk in demo.disks() {
        for (variant, plan) in VARIANTS.into_iter().zip(demo.plans.clone()) {
            demo.build_on(session, variant, &plan, &disk).await?;
        }
        demo.repeat(session, &disk).await?;
    }
    demo.finish()
}

impl<'a> Demo<'a> {
    fn prepare(
        session: &mut Session,
        args: &'a DemoArgs,
        environment: &Environment,
        progress: Progress,
    ) -> Result<Self> {
        let binary = ServerBinary::find(
            args.server_binary.as_deref(),
            Some(&environment.search_path),
            &environment.tool_folders,
        )?;
        let parent = session.data_folder(args.data_dir.as_deref())?;
        let device = DeviceFacts::of_path(Path::new("/"), &parent)
            .with_context(|| format!("cannot look at {}", parent.display()))?;
        check_space(&device, args)?;
        let mut workspace = Workspace::create(&parent, &environment.lease_folder)?;
        let slow_disk = emulate(session, args, &device, &workspace)?;
        workspace.record_cgroup(slow_disk.as_ref().map(SlowDisk::group))?;
        progress.say(plan(args, &binary, &workspace, slow_disk.as_ref()));
        session.document.device = Some(device);
        let data_bytes = args.docs * DOCUMENT_BYTES;
        let options = LocalServerOptions::new(
            binary,
            workspace.data_directory(),
            args.cache_size.unwrap_or((data_bytes / 4).max(32 << 20)),
        );
        Ok(Self {
            args,
            progress,
            slow_disk,
            workspace,
            options,
            plans: Vec::new(),
        })
    }

    /// The emulated disk first: if time runs short, the telling half is there.
    fn disks(&self) -> Vec<Disk> {
        let emulated = self.slow_disk.as_ref().map(SlowDisk::disk);
        emulated.into_iter().chain([Disk::Plain]).collect()
    }

    async fn start(&mut self) -> Result<(LocalServer, Server)> {
        let local = LocalServer::start(&self.options).await?;
        self.workspace.record_server(local.pid())?;
        let server = Server::connect(&local.uri()).await?;
        Ok((local, server))
    }

    /// Stops the server with a last checkpoint, so that the next start finds all data in its files.
    async fn stop(&mut self, session: &mut Session, local: LocalServer) -> Result<()> {
        let stopped = local.stop(STOP_LIMIT).await;
        self.workspace.forget_server()?;
        if stopped != Stopped::Clean {
            session.limit(Limitation {
                what: "the local server did not shut down cleanly, so recovery may have rewritten data before a build".into(),
                why: format!("{stopped:?}"),
                remedy: "run it again on a less busy machine".into(),
            });
        }
        Ok(())
    }

    async fn load(&mut self, session: &mut Session) -> Result<()> {
        let (local, server) = {
            let _step = self.progress.step("starting the local server");
            self.start().await?
        };
        let facts = server.facts(&ProcFs::host()).await;
        session.document.target = Some(TargetFacts {
            local: true,
            ..facts.target
        });
        session.save()?;
        let sdu = Sdu::new(SduOptions {
            seed: self.args.seed,
            compressibility: self.args.compressibility,
        });
        for variant in VARIANTS {
            self.load_one(&server, variant, &sdu).await?;
        }
        self.age(&server, &sdu).await?;
        let keys = IndexKeys::parse(INDEX_KEYS)?;
        for variant in VARIANTS {
            let plan = IndexPlan::check(&server, &namespace(variant)?, &keys, &keys.default_name())
                .await?;
            self.plans.push(plan);
        }
        let directory = Some(self.options.data_directory.as_path());
        let names = FileNames::find(Some(&server), directory, &[]).await;
        session.file_map = Some(names.map);
        names.limitation.into_iter().for_each(|l| session.limit(l));
        let _step = self
            .progress
            .step("stopping the server, so that all data is in its files");
        self.stop(session, local).await
    }

    async fn load_one(&self, server: &Server, variant: &str, sdu: &Sdu) -> Result<()> {
        let namespace = namespace(variant)?;
        let documents = format_count(self.args.docs);
        let step = self.progress.counted(
            format!("loading {documents} documents into {namespace}"),
            self.args.docs,
        );
        let options = LoadOptions::new(self.args.docs);
        let report = load(server, &namespace, sdu, &options, &|done| step.at(done)).await?;
        complete("inserts", report.errors, report.first_error)
    }

    /// Random updates are what parts key order from disk order in real life.
    async fn age(&self, server: &Server, sdu: &Sdu) -> Result<()> {
        let namespace = namespace("aged")?;
        let options = UpdateOptions::new(self.args.docs, UPDATED_SHARE, self.args.seed);
        let step = self.progress.counted(
            format!(
                "updating {:.0} % of {namespace} at random",
                UPDATED_SHARE * 100.0
            ),
            self.args.docs / 10,
        );
        let report = update(server, &namespace, sdu, &options, &|done| step.at(done)).await?;
        complete(
            "updates",
            report.errors + report.missing,
            report.first_error,
        )
    }

    fn evict(&self, session: &mut Session) -> Result<CacheState> {
        let state = page_cache::evict(&self.options.data_directory)?.state();
        if let CacheState::AsFound { why } = &state {
            session.limit(Limitation {
                what: "some builds did not begin on cold files, so they read less from the disk than they would have".into(),
                why: why.clone(),
                remedy: "put the data on a disk of its own with --data-dir; a filesystem in memory cannot be cold".into(),
            });
        }
        Ok(state)
    }

    /// Starts the server on cold files, under the throttle if `disk` is emulated.
    async fn start_cold(
        &mut self,
        session: &mut Session,
        disk: &Disk,
    ) -> Result<(LocalServer, Server, CacheState)> {
        let (local, server) = self.start().await?;
        // After the start, because a server that opens its files reads some of them.
        let cache = self.evict(session)?;
        if let (true, Some(slow_disk)) = (disk.is_emulated(), &mut self.slow_disk) {
            // Only now: starting up is not what is measured.
            slow_disk.add_process(local.pid())?;
        }
        Ok((local, server, cache))
    }

    /// One traced build.
    async fn build_on(
        &mut self,
        session: &mut Session,
        variant: &str,
        plan: &IndexPlan,
        disk: &Disk,
    ) -> Result<()> {
        let text = format!(
            "{}: building {INDEX_KEYS} on {}, traced",
            disk.label(),
            plan.namespace
        );
        let _step = self.progress.step(text);
        let (local, server, cache) = self.start_cold(session, disk).await?;
        let phase = Phase {
            name: format!("{variant}, {}", disk.name()),
            variant: variant.into(),
            activity: format!("index build {INDEX_KEYS}"),
            namespace: Some(plan.namespace.to_string()),
            disk: disk.clone(),
            cache,
            started_ns: 0,
            ended_ns: 0,
            index_build: None,
            trace: None,
            process_io: None,
        };
        let measurement = Measurement::begin(session, Some(local.pid()), Traced::Calls, phase)?;
        let built = plan.build(&server).await;
        drop(measurement);
        session.close_phase(built.as_ref().ok().cloned())?;
        built?;
        self.drop_and_stop(session, &server, local, plan).await
    }

    async fn drop_and_stop(
        &mut self,
        session: &mut Session,
        server: &Server,
        local: LocalServer,
        plan: &IndexPlan,
    ) -> Result<()> {
        drop_index(server, &plan.namespace, &plan.name).await?;
        self.stop(session, local).await
    }

    /// Further builds, variants taking turns so that both see the same noise.
    async fn repeat(&mut self, session: &mut Session, disk: &Disk) -> Result<()> {
        for repetition in 2..=self.args.repeats {
            for (variant, plan) in VARIANTS.into_iter().zip(self.plans.clone()) {
                let _step = self.progress.step(format!(
                    "{}: building {INDEX_KEYS} on {}, {repetition} of {}",
                    disk.name(),
                    plan.namespace,
                    self.args.repeats
                ));
                let (local, server, _) = self.start_cold(session, disk).await?;
                let built = plan.build(&server).await?;
                let same = |p: &&mut Phase| p.variant == variant && p.disk == *disk;
                let phase = session.document.phases.iter_mut().find(same);
                if let Some(build) = phase.and_then(|p| p.index_build.as_mut()) {
                    build.repeats_ns.push(built.elapsed_ns);
                }
                session.save()?;
                self.drop_and_stop(session, &server, local, &plan).await?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        // First what the user wants to keep: the rest may fail.
        if self.args.keep_data {
            let kept = self.workspace.keep();
            let text = format!("The local server's data is kept in {}", kept.display());
            self.progress.say(text);
        }
        self.slow_disk.map_or(Ok(()), SlowDisk::remove)?;
        Ok(())
    }
}

/// Both collections must hold the same documents, or comparing them means nothing.
fn complete(what: &str, failed: u64, first_error: Option<String>) -> Result<()> {
    anyhow::ensure!(
        failed == 0,
        "{failed} {what} failed on the local server, the first with: {}",
        first_error.unwrap_or_default()
    );
    Ok(())
}

fn namespace(variant: &str) -> Result<Namespace> {
    Ok(Namespace::new(DATABASE, variant)?)
}

fn check_space(device: &DeviceFacts, args: &DemoArgs) -> Result<()> {
    let wanted = bytes_wanted(args) + (1 << 30);
    anyhow::ensure!(
        device.free_bytes >= wanted,
        "{} has {} free; the demonstration wants {} (data, journal, and 1 GiB left over). \
         Name another disk with --data-dir, or fewer --docs",
        device.path,
        format_bytes(device.free_bytes),
        format_bytes(wanted),
    );
    Ok(())
}

/// Two collections, each with its journal, and the holes that updates leave.
fn bytes_wanted(args: &DemoArgs) -> u64 {
    args.docs * DOCUMENT_BYTES * 4
}

fn emulate(
    session: &mut Session,
    args: &DemoArgs,
    device: &DeviceFacts,
    workspace: &Workspace,
) -> Result<Option<SlowDisk>> {
    if args.emulate_disk == Some(EmulatedDisk::None) {
        return Ok(None);
    }
    match SlowDisk::create(
        &CgroupTree::discover(Path::new("/proc")),
        &SlowDiskSpec::hdd(),
        device,
        workspace.unique_name(),
    ) {
        Ok(slow_disk) => Ok(Some(slow_disk)),
        // Asked for by name, so not having it is a failure.
        Err(error) if args.emulate_disk.is_some() => Err(error.into()),
        Err(error) => {
            session.limit(Limitation {
                what: "no slow disk was emulated: only the plain disk is shown".into(),
                why: error.to_string(),
                remedy:
                    "run as root on a host with the blkio (cgroup v1) or io (cgroup v2) controller"
                        .into(),
            });
            Ok(None)
        }
    }
}

fn plan(
    args: &DemoArgs,
    binary: &ServerBinary,
    workspace: &Workspace,
    slow_disk: Option<&SlowDisk>,
) -> String {
    let disks = match slow_disk {
        Some(slow_disk) => format!("on an {} and on the plain disk", slow_disk.disk().label()),
        None => "on the plain disk".into(),
    };
    format!(
        "No target given: showing on a private server what random updates do to an index build.\n\
         \x20 {} documents of about 3 KiB go into two collections; 10 % of one are then updated at random;\n\
         \x20 the same index is built on both, cold, traced, {disks}.\n\
         \x20 Server {}; data below {} (up to {}), {}.\n\
         \x20 Ctrl-C stops at any moment and leaves only the partial run.",
        format_count(args.docs),
        binary.path.display(),
        workspace.path().display(),
        format_bytes(bytes_wanted(args)),
        if args.keep_data {
            "kept at the end"
        } else {
            "removed at the end"
        },
    )
}
