//! The program under test: the command lines of each command, and one run of it with what it said.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use seekscope_server::ProcFs;
use tokio::process::{Child, Command};

use super::combination::During;
use super::documents::namespace;
use super::pause::PauseFiles;
use super::servers::Servers;

/// How long what a killed seekscope had started may take to notice.
const SETTLING: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(100);

/// The binary, and where it leaves what.
#[derive(Debug)]
pub struct Seekscope {
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub pause: PauseFiles,
    /// Runs so far.
    count: u32,
}

/// One run of it.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    /// Its run directory, where it makes one.
    pub out: PathBuf,
    log: PathBuf,
}

/// How it ended, and what it said on its standard error.
#[derive(Debug)]
pub struct Ended {
    /// `None`: it did not, and was killed.
    pub status: Option<ExitStatus>,
    pub text: String,
}

impl Ended {
    /// What it said last.
    pub fn message(&self) -> &str {
        self.text.lines().last().unwrap_or_default()
    }

    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended, in words.
    pub fn in_words(&self) -> String {
        let status = self.status.map(|status| status.to_string());
        let status = status.unwrap_or("no end".into());
        format!("{status}: {}", self.message())
    }
}

impl Running {
    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            kill_process(pid, signal)?;
        }
        Ok(())
    }

    /// Waits for its end. What takes longer than `limit` is killed.
    pub async fn end(&mut self, limit: Duration) -> Result<Ended> {
        let status = match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(status) => Some(status?),
            Err(_) => {
                self.child.kill().await?;
                None
            }
        };
        let text = std::fs::read_to_string(&self.log)?;
        Ok(Ended { status, text })
    }
}

impl Seekscope {
    pub fn new(binary: &Path, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder.join("runs"))?;
        let pause = PauseFiles::new(folder);
        pause.lift();
        Ok(Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            pause,
            count: 0,
        })
    }

    /// Starts the command at work.
    pub fn begin(&mut self, during: During, servers: &Servers) -> Result<Running> {
        let work = self.work(during, servers)?;
        self.start(&work, true)
    }

    /// The whole command line, without the folder of the run.
    fn work(&self, during: During, servers: &Servers) -> Result<Vec<String>> {
        let uri = servers.durable_uri();
        let mut line: Vec<String> = match during {
            During::Reorder => return self.reorder(servers, &["--apply", "--force"]),
            During::Bench => words("bench ycsb --workload a --records 3000 --for 8s --drop"),
            During::BenchIndex => {
                words("bench index --docs 20000 --kinds int --margin 1s --foreground 100/s --drop")
            }
            During::Tune => words(
                "tune --workload ycsb:a --trial-for 1s --trials 2 --baseline-pairs 1 --pairs 4 --busy \
                 --knobs eviction_dirty_trigger,read_tickets,cache_size --workload-options",
            ),
            During::TuneRestarts => words(
                "tune --maximize --trials 2 --baseline-pairs 1 --pairs 4 --busy --allow-stepdown \
                 --knobs cache_cursors --command",
            ),
        };
        match during {
            During::Bench if servers.shards() > 0 => line.extend(words("--shard hashed")),
            During::Tune => line.push("--records 1000".into()),
            During::TuneRestarts => line.extend([
                "echo $(date +%N)".into(),
                "--config-file".into(),
                servers.config_files(),
                "--restart-command".into(),
                servers.restart_command(),
            ]),
            _ => {}
        }
        line.push(uri);
        Ok(line)
    }

    /// A command line of `reorder`.
    pub fn reorder(&self, servers: &Servers, task: &[&str]) -> Result<Vec<String>> {
        let mut line = words("reorder --watch 0s --no-guard");
        line.extend([servers.uri().into(), namespace()?.to_string()]);
        line.extend(task.iter().map(|word| (*word).to_owned()));
        line.extend(["--pause-writers".into(), self.pause.pause_command()]);
        line.extend(["--continue-writers".into(), self.pause.continue_command()]);
        Ok(line)
    }

    /// Starts it with these arguments, and with a folder for its run where it makes one.
    pub fn start<S: AsRef<str>>(&mut self, line: &[S], makes_run: bool) -> Result<Running> {
        self.count += 1;
        let out = self.folder.join(format!("runs/{}", self.count));
        let log = self.folder.join(format!("runs/{}.log", self.count));
        let mut command = Command::new(&self.binary);
        command.args(line.iter().map(AsRef::as_ref));
        if makes_run {
            command.arg("--out").arg(&out);
        }
        command
            .current_dir(&self.folder)
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true);
        let path = self.binary.display();
        let child = command.spawn().with_context(|| format!("{path}"))?;
        Ok(Running { child, out, log })
    }

    /// Runs it to its end.
    pub async fn run<S: AsRef<str>>(&mut self, line: &[S], limit: Duration) -> Result<Ended> {
        self.start(line, false)?.end(limit).await
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Processes that runs have started and left. Control groups and files stand in leases, which `clean` reads;
    /// programs in the kernel end with the processes that hold them.
    pub async fn left_processes(&self) -> Vec<String> {
        let marker = format!("XDG_STATE_HOME={}", self.state().display());
        let mut waited = Duration::ZERO;
        loop {
            let pids = ProcFs::host().pids().into_iter();
            let left: Vec<u32> = pids.filter(|pid| has_variable(*pid, &marker)).collect();
            if left.is_empty() || waited > SETTLING {
                let told = left.iter().map(|pid| format!("process {pid} still runs"));
                return told.collect();
            }
            tokio::time::sleep(POLL).await;
            waited += POLL;
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

fn has_variable(pid: u32, marker: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|one| one == marker.as_bytes())
}
