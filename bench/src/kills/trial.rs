//! Kills, one after the other, on one server whose documents live through all of them.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bson::{Document, doc};
use seekscope_server::{Server, ServerBinary};
use seekscope_stats::SplitMix64;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::documents::{COLLECTION, DATABASE, create, namespace};
use super::examination::{Definitions, Documents};
use super::expected::Expected;
use super::pause::{Gate, PauseFiles};
use super::table::{Ending, Table, Trial};
use super::writers::{Record, Writers};
use crate::replica_server::{ReplicaServer, ReplicaServerOptions};

const CACHE_BYTES: u64 = 256 << 20;
/// Where `reorder` records how far it has come.
const STATE_COLLECTION: &str = "seekscope_reorder";
/// Writes between the kill and the recovery: it must cope with them.
const BEFORE_RECOVERY: Duration = Duration::from_millis(300);
/// One run, recovery or end, of a few tens of thousands of documents.
const RUN_LIMIT: Duration = Duration::from_secs(300);
/// How long seekscope may go on trying when its server is gone.
const END_LIMIT: Duration = Duration::from_secs(120);
/// How it may end then: it had come to its end, or says that the server is gone.
const WITHOUT_SERVER: [Option<i32>; 2] = [Some(0), Some(3)];
/// One in so many kills waits for the swap, which is over too soon to be hit by chance.
const AIMED_AT_SWAP: u64 = 5;

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Seekscope,
    Server,
}

impl Victim {
    pub fn name(self) -> &'static str {
        match self {
            Self::Seekscope => "seekscope",
            Self::Server => "server",
        }
    }
}

/// How the trials are made.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The binary under test.
    pub seekscope: PathBuf,
    pub server: ServerBinary,
    /// An empty folder for data, logs and runs.
    pub folder: PathBuf,
    /// Members of the replica set; with several, the primary is the server that is killed.
    pub members: usize,
    pub documents: i64,
    pub writers: i64,
    pub seed: u64,
}

/// Everything that lives through the trials.
struct World {
    setting: Setting,
    server: ReplicaServer,
    pause: PauseFiles,
    gate: Gate,
    pauser: JoinHandle<()>,
    records: Vec<Record>,
    /// Before anything was reordered.
    original: Definitions,
    random: SplitMix64,
}

impl Drop for World {
    fn drop(&mut self) {
        self.pauser.abort();
    }
}

/// Kills `victim` so many times. `told` hears of each trial when it is over.
pub async fn run_trials(
    setting: &Setting,
    victim: Victim,
    kills: u64,
    told: &mut dyn FnMut(&Trial),
) -> Result<Table> {
    let mut world = World::make(setting).await?;
    let mut table = Table::new(format!("{} killed", victim.name()));
    let whole = world.undisturbed().await?;
    told(&whole.0);
    table.add(whole.0);
    for number in 0..kills {
        let aim = if number % AIMED_AT_SWAP == AIMED_AT_SWAP - 1 {
            Aim::Swap(whole.1.mul_f64(0.1 * world.random.unit_f64()))
        } else {
            Aim::After(whole.1.mul_f64(world.random.unit_f64()))
        };
        let trial = world.kill(victim, aim, number % 2 == 0).await;
        let trial = trial.with_context(|| format!("kill {number} of the {}", victim.name()))?;
        told(&trial);
        if !trial.sound() {
            // What is broken must not be counted again by the trials that follow.
            world.keep_aside(number).await?;
            world = World::make(setting).await?;
        }
        table.add(trial);
    }
    Ok(table)
}

/// The same of the server without seekscope: what it loses by itself.
pub async fn run_control(
    setting: &Setting,
    kills: u64,
    told: &mut dyn FnMut(&Trial),
) -> Result<Table> {
    let mut world = World::make(setting).await?;
    let mut table = Table::new("server killed, without seekscope".into());
    for _ in 0..kills {
        let writers = world.start_writers().await?;
        tokio::time::sleep(Duration::from_millis(500 + world.random.below(2500))).await;
        world.server.kill_primary().await?;
        world.server.start_again().await?;
        let trial = world.examine(writers, "without seekscope", Ending::Nothing, Vec::new());
        let trial = trial.await?;
        told(&trial);
        table.add(trial);
    }
    Ok(table)
}

/// When to kill.
#[derive(Debug, Clone, Copy)]
enum Aim {
    /// So long after the start.
    After(Duration),
    /// So long after the swap was recorded as begun.
    Swap(Duration),
}

impl World {
    async fn make(setting: &Setting) -> Result<Self> {
        let folder = setting.folder.canonicalize()?;
        let options = ReplicaServerOptions {
            binary: setting.server.clone(),
            data_directory: folder.join("servers/data"),
            cache_bytes: CACHE_BYTES,
            engine: "",
        };
        let server = ReplicaServer::start_set(options, setting.members).await?;
        let client = Server::connect(&server.uri()).await?;
        create(&client, setting.documents).await?;
        let pause = PauseFiles::new(&folder);
        pause.lift();
        let gate = Gate::default();
        Ok(Self {
            setting: Setting {
                folder,
                ..setting.clone()
            },
            pauser: pause.serve(gate.clone()),
            pause,
            gate,
            records: Record::shares(setting.documents, setting.writers),
            original: Definitions::read(&client).await?,
            random: SplitMix64::new(setting.seed),
            server,
        })
    }

    /// Moves data and logs out of the way of a new world.
    async fn keep_aside(&mut self, number: u64) -> Result<()> {
        self.server.kill();
        self.pauser.abort();
        let aside = self.setting.folder.join(format!("wrong-{number}"));
        std::fs::create_dir(&aside)?;
        for name in ["servers", "seekscope.log"] {
            let from = self.setting.folder.join(name);
            if from.exists() {
                std::fs::rename(from, aside.join(name))?;
            }
        }
        Ok(())
    }

    /// A whole run beside writers, and how long it took.
    async fn undisturbed(&mut self) -> Result<(Trial, Duration)> {
        let before = Definitions::read(&self.client().await?).await?;
        let writers = self.start_writers().await?;
        let begun = Instant::now();
        let status = self
            .finish(&mut self.seekscope(&["--apply", "--force"])?, RUN_LIMIT)
            .await?;
        let took = begun.elapsed();
        let status = status.context("it does not end")?;
        ensure!(
            status.success(),
            "undisturbed it ends with {status}; see {}",
            self.log().display()
        );
        let ending = self.ending(&before).await?;
        let trial = self
            .examine(writers, "not killed", ending, Vec::new())
            .await?;
        Ok((trial, took))
    }

    async fn kill(&mut self, victim: Victim, aim: Aim, resume: bool) -> Result<Trial> {
        let before = Definitions::read(&self.client().await?).await?;
        let writers = self.start_writers().await?;
        let mut run = self.seekscope(&["--apply", "--force"])?;
        self.await_moment(aim, &mut run).await?;
        let phase = self.phase(&before, &mut run).await?;
        let mut faults = Vec::new();
        match victim {
            Victim::Seekscope => run.kill().await?,
            Victim::Server => {
                self.server.kill_primary().await?;
                match self.finish(&mut run, END_LIMIT).await? {
                    None => {
                        faults.push(format!("seekscope still tried after {END_LIMIT:?}"));
                        run.kill().await?;
                    }
                    Some(status) if !WITHOUT_SERVER.contains(&status.code()) => {
                        faults.push(format!("{status} when its server was killed"));
                    }
                    Some(_) => {}
                }
                self.server.start_again().await?;
            }
        }
        tokio::time::sleep(BEFORE_RECOVERY).await;
        let recovery = if resume { "--resume" } else { "--rollback" };
        self.recover(recovery, &mut faults).await?;
        let ending = self.ending(&before).await?;
        self.examine(writers, phase, ending, faults).await
    }

    async fn await_moment(&self, aim: Aim, run: &mut Child) -> Result<()> {
        match aim {
            Aim::After(delay) => tokio::time::sleep(delay).await,
            Aim::Swap(delay) => {
                let client = self.client().await?;
                while run.try_wait()?.is_none()
                    && recorded(&client).await?.as_deref() != Some("swapping")
                {}
                tokio::time::sleep(delay).await;
            }
        }
        Ok(())
    }

    /// What `reorder` has recorded, or that it has not begun, or has ended.
    async fn phase(&self, before: &Definitions, run: &mut Child) -> Result<&'static str> {
        let client = self.client().await?;
        Ok(match recorded(&client).await?.as_deref() {
            Some("copying") => "copying",
            Some("copied") => "copied",
            Some("verified") => "verified",
            Some("indexed") => "indexed",
            Some("swapping") => "swapping",
            Some(_) => "another phase",
            None if run.try_wait()?.is_some() => "had ended",
            None if Definitions::read(&client).await?.replaced(before) => "swapped",
            None => "beginning",
        })
    }

    /// As an operator would: one way, and the other if the first one is refused.
    async fn recover(&mut self, recovery: &str, faults: &mut Vec<String>) -> Result<()> {
        let other = if recovery == "--resume" {
            "--rollback"
        } else {
            "--resume"
        };
        for attempt in [recovery, other] {
            let status = self
                .finish(&mut self.seekscope(&[attempt])?, RUN_LIMIT)
                .await?;
            let client = self.client().await?;
            let pending = recorded(&client).await?.is_some();
            match status {
                Some(status) if status.success() && !pending => break,
                Some(status) if status.success() => {
                    faults.push(format!("{attempt} ended with success and left its record"));
                }
                Some(_) if !pending => break,
                Some(status) => faults.push(format!(
                    "{attempt} ended with {status}: {}",
                    self.last_line()
                )),
                None => faults.push(format!("{attempt} took more than {RUN_LIMIT:?}")),
            }
        }
        if self.pause.is_wanted() {
            faults.push("the writers were left paused".into());
            self.pause.lift();
        }
        Ok(())
    }

    async fn ending(&self, before: &Definitions) -> Result<Ending> {
        let now = Definitions::read(&self.client().await?).await?;
        Ok(if now.replaced(before) {
            Ending::Reordered
        } else {
            Ending::AsBefore
        })
    }

    /// Stops the writers and looks at everything.
    async fn examine(
        &mut self,
        writers: Writers,
        phase: &'static str,
        ending: Ending,
        faults: Vec<String>,
    ) -> Result<Trial> {
        self.records = writers.stop().await?;
        let client = self.client().await?;
        let definitions = Definitions::read(&client)
            .await?
            .differences(&self.original);
        let mut expected: Vec<&mut Expected> = self
            .records
            .iter_mut()
            .map(|record| &mut record.expected)
            .collect();
        let documents = Documents::examine(&client, &mut expected).await?;
        let mut trial = Trial {
            phase,
            ending,
            documents,
            definitions,
            faults,
            ..Trial::default()
        };
        for record in &mut self.records {
            trial.done += std::mem::take(&mut record.done);
            trial.in_doubt += std::mem::take(&mut record.in_doubt);
            trial.refused += std::mem::take(&mut record.refused);
            trial.impossible.append(&mut record.impossible);
        }
        Ok(trial)
    }

    async fn start_writers(&mut self) -> Result<Writers> {
        let records = std::mem::take(&mut self.records);
        let seed = self.random.next_u64();
        Writers::start(&self.server.durable_uri(), records, &self.gate, seed).await
    }

    async fn client(&self) -> Result<Server> {
        Ok(Server::connect(&self.server.uri()).await?)
    }

    fn log(&self) -> PathBuf {
        self.setting.folder.join("seekscope.log")
    }

    /// What the last run of seekscope said last.
    fn last_line(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn seekscope(&self, task: &[&str]) -> Result<Child> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())?;
        let runs = self.setting.folder.join("run");
        // Each run wants a folder of its own, and none is looked at.
        remove_folder(&runs)?;
        let mut command = Command::new(&self.setting.seekscope);
        command
            .args(["reorder", &self.server.uri(), &namespace()?.to_string()])
            .args(task)
            .args(["--pause-writers", &self.pause.pause_command()])
            .args(["--continue-writers", &self.pause.continue_command()])
            .args(["--watch", "0s", "--no-guard", "--quiet", "--out"])
            .arg(&runs)
            .current_dir(&self.setting.folder)
            .env("XDG_STATE_HOME", self.setting.folder.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        let path = self.setting.seekscope.display();
        command.spawn().with_context(|| format!("{path}"))
    }

    /// How it ended, if it did within `limit`.
    async fn finish(&self, run: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
        match tokio::time::timeout(limit, run.wait()).await {
            Ok(status) => Ok(Some(status?)),
            Err(_) => Ok(None),
        }
    }
}

fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The phase that is recorded for the collection.
async fn recorded(server: &Server) -> Result<Option<String>> {
    let states = server
        .database(DATABASE)
        .collection::<Document>(STATE_COLLECTION);
    let state = states.find_one(doc! { "_id": COLLECTION }).await?;
    Ok(state.map(|state| state.get_str("phase").unwrap_or("?").to_owned()))
}
