//! One scan or index build, with `seekscope prefetch` around it or without.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seekscope_bench::gains::aged::namespace;
use seekscope_bench::gains::memory_group::Charged;
use seekscope_bench::gains::{Activity, ColdServer, Conditions, Hosts};
use seekscope_run::RunDirectory;
use seekscope_server::ProcFs;
use tokio::process::{Child, Command};

const WATCH: Duration = Duration::from_millis(10);

/// What was measured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trial {
    /// The time of the activity itself.
    pub(crate) seconds: f64,
    /// The time from the start of the process around it to its end, s.
    pub(crate) whole_s: f64,
    /// The server's CPU time over the whole.
    pub(crate) cpu_s: f64,
    /// The most memory charged to the processes, where memory is limited.
    pub(crate) charged: Charged,
    /// How many times as fast seekscope said that the scan was.
    pub(crate) stated: Option<f64>,
    /// It read nothing, or ended early, and said why.
    pub(crate) gave_up: bool,
}

/// Where trials are made.
pub(crate) struct Bed {
    pub(crate) hosts: Hosts,
    /// The collection, aged.
    pub(crate) data: PathBuf,
    pub(crate) seekscope: PathBuf,
    /// Where what seekscope says is kept.
    pub(crate) records: Option<PathBuf>,
}

impl Bed {
    pub(crate) async fn trial(
        &mut self,
        conditions: Conditions,
        activity: Activity,
        prefetching: bool,
    ) -> Result<Trial> {
        let cold = self.hosts.start(&self.data, conditions).await?;
        let trial = self.run(&cold, activity, prefetching).await?;
        self.hosts.end(cold, activity).await?;
        Ok(trial)
    }

    /// Runs the trial on a running server.
    pub(crate) async fn run(
        &self,
        cold: &ColdServer,
        activity: Activity,
        prefetching: bool,
    ) -> Result<Trial> {
        let folder = tempfile::tempdir()?;
        let seconds = folder.path().join("seconds");
        let (pid, host) = (cold.local.pid()?, ProcFs::host());
        let before_ns = host.cpu_ns(pid)?;
        let begun = Instant::now();
        let mut child = self.start(cold, activity, prefetching, folder.path(), &seconds)?;
        let mut trial = Trial::default();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if let Some(memory) = &cold.confinement.memory {
                trial.charged = trial.charged.max(memory.charged()?);
            }
            tokio::time::sleep(WATCH).await;
        };
        ensure!(status.success(), "{} ended with {status}", activity.name());
        trial.whole_s = begun.elapsed().as_secs_f64();
        trial.cpu_s = (host.cpu_ns(pid)? - before_ns) as f64 / 1e9;
        trial.seconds = std::fs::read_to_string(&seconds)
            .context("no seconds")?
            .parse()?;
        if prefetching {
            let document = RunDirectory::read_document(&folder.path().join("run"))?;
            let record = document.prefetch.context("no record")?;
            trial.gave_up = !record.cannot_help.is_empty();
            trial.stated = record.stated_gain();
        }
        Ok(trial)
    }

    /// A shell joins the server's groups and becomes what is wanted.
    fn start(
        &self,
        cold: &ColdServer,
        activity: Activity,
        prefetching: bool,
        folder: &Path,
        seconds: &Path,
    ) -> Result<Child> {
        let mut script = String::new();
        let work = format!(
            "exec '{}' --only '{}' --uri '{}' --seconds '{}'",
            std::env::current_exe()?.display(),
            activity.name(),
            cold.local.uri(),
            seconds.display()
        );
        let mut command = Command::new("sh");
        command.stdout(Stdio::null());
        if prefetching {
            for group in cold.confinement.groups() {
                write!(script, "echo $$ > '{}'; ", group.display())?;
            }
            script.push_str(r#"exec "$@""#);
            command.arg("-c").arg(script).arg("sh").arg(&self.seekscope);
            command.args(["prefetch", &cold.local.uri(), &namespace()?.to_string()]);
            command.args(["--command", &work, "--json", "--quiet", "--out"]);
            command.arg(folder.join("run"));
            if let Some(records) = &self.records {
                let mut options = std::fs::File::options();
                command.stdout(options.create(true).append(true).open(records)?);
            }
        } else {
            command.arg("-c").arg(work);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        Ok(command.spawn()?)
    }
}
