//! `doctor` without a target: demonstrates an examination on a private server with generated documents.
//!
//! The examination is that of any server, while the same index is built on two collections. Later builds,
//! repeated or on the plain disk, are only timed.

use std::path::Path;

use anyhow::{Context, Result};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{DeviceFacts, Disk, Limitation};
use seekscope_server::{
    CgroupTree, LocalServerOptions, Namespace, PrivateServer, Server, ServerBinary, SlowDisk,
    SlowDiskSpec, Stopped, Workspace,
};
use seekscope_workload::{
    IndexKeys, IndexPlan, LoadOptions, Sdu, SduOptions, UpdateOptions, load, update,
};

use super::examine::{Asked, Builds, examine_server};
use crate::args::{DemoArgs, EmulatedDisk, ExamineArgs};
use crate::environment::Environment;
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::Session;

const DATABASE: &str = "sdu";
const VARIANTS: [&str; 2] = ["fresh", "aged"];
/// Keys of the index that is built: the first field of every document.
const INDEX_KEYS: &str = r#"{"i":1}"#;
/// Share of `aged` that is updated at random after loading.
const UPDATED_SHARE: f64 = 0.1;
/// Mean BSON size of a document.
const DOCUMENT_BYTES: u64 = 3 * 1024;

/// Everything that exists while the demonstration runs.
struct Demo<'a> {
    args: &'a DemoArgs,
    progress: Progress,
    server: PrivateServer,
    /// Checked after loading; one per variant in the order of [`VARIANTS`].
    plans: Vec<IndexPlan>,
}

/// Runs the demonstration. However it ends, the server ends too and its data is removed.
pub async fn run(
    session: &mut Session,
    args: &DemoArgs,
    examine: &ExamineArgs,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    session.document.seed = Some(args.seed);
    let mut demo = Demo::prepare(session, args, environment, progress)?;
    interruption.or(demo.load(session)).await?;
    demo.examine(session, examine, environment, interruption)
        .await?;
    interruption.or(demo.time(session)).await?;
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
        let data_bytes = args.docs * DOCUMENT_BYTES;
        let options = LocalServerOptions::new(
            binary,
            workspace.data_directory(),
            args.cache_size.unwrap_or((data_bytes / 4).max(32 << 20)),
        );
        Ok(Self {
            args,
            progress,
            server: PrivateServer::new(workspace, options, slow_disk),
            plans: Vec::new(),
        })
    }

    /// Returns the disks, the emulated one first: if time runs short, the more revealing half is done.
    fn disks(&self) -> Vec<Disk> {
        let emulated = self.server.slow_disk.as_ref().map(SlowDisk::disk);
        emulated.into_iter().chain([Disk::Plain]).collect()
    }

    /// Starts the server and returns its connection string.
    async fn start(&mut self) -> Result<String> {
        let local = self.server.start::<anyhow::Error>().await?;
        Ok(local.uri())
    }

    /// Starts the server on the plain disk or the emulated one.
    async fn start_on(&mut self, disk: &Disk) -> Result<String> {
        let uri = self.start().await?;
        if disk.is_emulated() {
            // Only now: the server's start is not to be measured.
            self.server.slow_down(true)?;
        }
        Ok(uri)
    }

    /// Stops the server with a final checkpoint, so that the next start finds all data in its files.
    async fn stop(&mut self, session: &mut Session) -> Result<()> {
        let stopped = self.server.stop().await?;
        if let Some(stopped) = stopped.filter(|stopped| *stopped != Stopped::Clean) {
            session.limit(Limitation {
                what: "the local server did not shut down cleanly, so recovery may have rewritten data before a build".into(),
                why: format!("{stopped:?}"),
                remedy: "run it again on a less busy machine".into(),
            });
        }
        Ok(())
    }

    async fn load(&mut self, session: &mut Session) -> Result<()> {
        let uri = {
            let _step = self.progress.step("starting the local server");
            self.start().await?
        };
        let server = Server::connect(&uri).await?;
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
        let _step = self
            .progress
            .step("stopping the server, so that all data is in its files");
        self.stop(session).await
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

    /// Ages the collection: random updates are what separates key order from disk order in practice.
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

    /// Builds the index on both collections, observing everything that an examination does.
    async fn examine(
        &mut self,
        session: &mut Session,
        args: &ExamineArgs,
        environment: &Environment,
        interruption: &Interruption,
    ) -> Result<()> {
        let Some(disk) = self.disks().into_iter().next() else {
            return Ok(());
        };
        let uri = interruption.or(self.start_on(&disk)).await?;
        let mut asked = Asked::new(&uri, args)?;
        asked.namespaces = VARIANTS.map(namespace).into_iter().collect::<Result<_>>()?;
        let builds = Some(self.builds(self.plans.clone(), disk));
        let server = interruption.or(async { Ok(Server::connect(&asked.uri).await?) });
        examine_server(
            session,
            &asked,
            server.await?,
            builds,
            environment,
            self.progress,
            interruption,
        )
        .await?;
        interruption.or(self.stop(session)).await
    }

    fn builds(&self, plans: Vec<IndexPlan>, disk: Disk) -> Builds {
        Builds::ours(plans, disk, self.server.data_directory().into())
    }

    /// Times further builds. Variants take turns so that both see the same noise; each build has a freshly
    /// started server whose cache is empty.
    async fn time(&mut self, session: &mut Session) -> Result<()> {
        for (number, disk) in self.disks().into_iter().enumerate() {
            let examined = u32::from(number == 0);
            for _ in examined..self.args.repeats {
                for plan in self.plans.clone() {
                    let uri = self.start_on(&disk).await?;
                    let server = Server::connect(&uri).await?;
                    let mut builds = self.builds(vec![plan], disk.clone());
                    builds.run(&server, self.progress).await?;
                    builds.end(session).await?;
                    self.stop(session).await?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        // First what the user wants to keep, as the rest may fail.
        if self.args.keep_data {
            let kept = self.server.workspace.keep();
            let text = format!("The local server's data is kept in {}", kept.display());
            self.progress.say(text);
        }
        self.server.slow_disk.map_or(Ok(()), SlowDisk::remove)?;
        Ok(())
    }
}

/// Checks that nothing failed: unless both collections hold the same documents, comparing them is meaningless.
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

/// Returns the space needed for two collections, each with its journal, and for the holes that updates leave.
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
        // The emulated disk was asked for explicitly, so its absence is a failure.
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
