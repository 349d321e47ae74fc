//! Running seekscope and a server for tests.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use seekscope_server::{Namespace, Server};
use seekscope_workload::{LoadOptions, Sdu, SduOptions, load};
use serde_json::Value;

fn from_environment(name: &str, below_cache: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(
        || {
            PathBuf::from(std::env::var_os("HOME").unwrap())
                .join(".cache/seekscope")
                .join(below_cache)
        },
        PathBuf::from,
    )
}

static MACHINE: RwLock<()> = RwLock::new(());

/// Taken by tests whose result others could change: that compare times, look at the whole machine (its disk,
/// memory, processes and eBPF programs), or load it so much that others' results change. One at a time and
/// beside no [`shared_machine`], each on a disk that has written what the tests before it left in memory.
pub fn machine() -> RwLockWriteGuard<'static, ()> {
    let machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    rustix::fs::sync();
    machine
}

/// Taken by tests that trace, or run a server, and hold whatever else runs: several at once, since most of
/// their time they wait for a server, a disk or the end of a watch.
pub fn shared_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The local server program.
pub fn server_binary() -> PathBuf {
    from_environment("SEEKSCOPE_TEST_SERVER", "tools/bin/secantusd-rs")
}

/// What a Python script prints, run by the interpreter that has the foreign readers.
pub fn python(script: &str, arguments: &[&Path]) -> String {
    let output = Command::new(python_interpreter())
        .args(["-c", script])
        .args(arguments)
        .output()
        .expect("Python; `./x test` installs it");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A YAML file with one document.
pub fn yaml(path: &Path) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    serde_json::from_str(&python(script, &[path])).unwrap()
}

/// What came out of Debian's package of Prometheus: `prometheus`, `promtool`.
pub fn prometheus_tool(name: &str) -> PathBuf {
    from_environment("SEEKSCOPE_TOOLS", "tools")
        .join("bin")
        .join(name)
}

/// Python with DuckDB and Spark.
pub fn python_interpreter() -> PathBuf {
    from_environment("SEEKSCOPE_TEST_PYTHON", "python/bin/python")
}

/// A folder on a real disk, with the state that seekscope keeps for its user in it.
pub struct Bench {
    folder: tempfile::TempDir,
    /// The control groups of other runs, which may have been killed before they could remove them.
    groups_before: Vec<String>,
}

impl Bench {
    pub fn new() -> Self {
        // /tmp may be memory; cargo's folder for test files lies where the build does.
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(parent).unwrap();
        Self {
            folder: tempfile::tempdir_in(parent).unwrap(),
            groups_before: groups_of_ours(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `seekscope ARGUMENTS`, with its state in this folder.
    pub fn seekscope(&self, arguments: &[&str]) -> Command {
        let binary = std::env::var_os("SEEKSCOPE_TEST_BINARY").map_or_else(
            || PathBuf::from(env!("CARGO_BIN_EXE_seekscope")),
            PathBuf::from,
        );
        let mut command = Command::new(binary);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    /// The small demonstration into `OUT`.
    pub fn demo(&self, out: &str, documents: u32, more: &[&str]) -> Command {
        let mut command = self.seekscope(&["doctor", "--out", out]);
        command.args(["--docs", &documents.to_string()]).args(more);
        command.arg("--server-binary").arg(server_binary());
        command
    }

    /// `seekscope disk run` in the folder `target` of this bench, which is made.
    pub fn disk_job(&self, more: &[&str]) -> Command {
        let mut command = self.seekscope(&["disk", "run"]);
        command.args(more).arg(self.target());
        command
    }

    /// The same elsewhere, with its run in `run`.
    pub fn disk_job_in(&self, place: &Path, more: &[&str]) -> Command {
        let mut command = self.seekscope(&["disk", "run", "--out", "run"]);
        command.args(more).arg(place);
        command
    }

    /// A folder to measure in, apart from everything that seekscope keeps.
    pub fn target(&self) -> PathBuf {
        let target = self.path("target");
        std::fs::create_dir_all(&target).unwrap();
        target
    }

    /// Names that this folder and the lease folder hold beyond `expected`, control groups that were left, and
    /// command lines of processes that name the folder.
    pub fn leftovers(&self, expected: &[&str]) -> Vec<String> {
        let mut found = names(self.folder.path());
        found.retain(|path| {
            let name = file_name(path);
            name != "state" && !expected.contains(&name)
        });
        found.extend(names(&self.path("state/seekscope/leases")));
        found.extend(self.left_groups());
        let here = self.folder.path().display().to_string();
        found.extend(processes_naming(&here));
        found
    }

    /// Control groups that were not there when the bench was made, but for those of tests that run beside this
    /// one: a group is named after the lease of its run, which is written before the group is made and goes after it.
    fn left_groups(&self) -> Vec<String> {
        let mut groups = groups_of_ours();
        groups.retain(|group| !self.groups_before.contains(group) && !self.is_of_another(group));
        // One that went before its lease was looked for is nobody's.
        groups.retain(|group| Path::new(group).exists());
        groups
    }

    /// Whether a run with its state in another bench has a lease of the group's name.
    fn is_of_another(&self, group: &str) -> bool {
        let lease = format!("state/seekscope/leases/{}.json", file_name(group));
        let here = self.folder.path();
        let benches = names(here.parent().unwrap()).into_iter().map(PathBuf::from);
        benches
            .filter(|bench| bench != here)
            .any(|bench| bench.join(&lease).exists())
    }

    /// eBPF programs that seekscope has loaded for this bench, and those of all that it started: they have its
    /// environment, which names the folder of the state.
    pub fn loaded_programs(&self) -> usize {
        let state = format!("XDG_STATE_HOME={}", self.path("state").display());
        let mut count = 0;
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            if variables.any(|variable| variable == state.as_bytes()) {
                count += held_programs(&process.path());
            }
        }
        count
    }
}

/// Descriptors of eBPF programs, and of what they are attached by, that a process of `/proc` has open.
fn held_programs(process: &Path) -> usize {
    let descriptors = std::fs::read_dir(process.join("fdinfo"));
    let descriptors = descriptors.into_iter().flatten().flatten();
    descriptors
        .filter_map(|descriptor| std::fs::read_to_string(descriptor.path()).ok())
        .map(|info| info.lines().filter(|l| l.starts_with("prog_id:")).count())
        .sum()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.path().display().to_string()).collect()
}

/// Control groups that seekscope has made and not removed.
fn groups_of_ours() -> Vec<String> {
    let trees = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"];
    let mut groups: Vec<String> = trees.iter().flat_map(|t| names(Path::new(t))).collect();
    groups.retain(|group| group.contains("/seekscope-"));
    groups
}

/// Command lines of running processes that name a path below `folder`.
pub fn processes_naming(folder: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy() != own)
        .filter_map(|e| std::fs::read(e.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

pub fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the process catches the signal. How long a busy machine takes to start a process is nothing
/// that a test can know, and until then any signal ends it at once.
pub fn until_caught(child: &Child, signal: i32) {
    let status = format!("/proc/{}/status", child.id());
    until(|| {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & (1 << (signal - 1)) != 0
    });
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing is lost by a trace's trailer, except ends of requests of the disk: machines may keep programs from running
/// wherever an interrupt meets certain processes.
pub fn assert_nothing_lost(trailer: &Value) {
    let count = |name: &str| trailer[name].as_u64().unwrap();
    assert_eq!(count("lost"), count("lost_end"), "{trailer:#}");
    assert_eq!(
        count("seen"),
        count("written") + count("lost"),
        "{trailer:#}"
    );
}

/// Ended with `code` and an error that holds all `words`, and says its cause once.
pub fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{:?} {said}",
        output.status
    );
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.matches("(os error").count() <= 1, "said twice: {said}");
}

/// Runs to success and reads the JSON document.
pub fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert!(
        output.status.success(),
        "{:?}\n{}",
        output.status,
        stderr(&output)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn run_document(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap()
}

pub fn send(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: plain kill(2) on our own child, which has not been waited for.
    let result = unsafe { libc::kill(pid, signal) };
    assert_eq!(result, 0);
}

/// Waits for the end of a child, at most `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> std::process::ExitStatus {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < end, "still running after {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// SDU documents of about 3 KiB.
pub fn load_documents(uri: &str, namespace: &Namespace, count: u64) {
    runtime().block_on(async {
        let server = Server::connect(uri).await.unwrap();
        let sdu = Sdu::new(SduOptions::default());
        load(&server, namespace, &sdu, &LoadOptions::new(count), &|_| {})
            .await
            .unwrap();
    });
}

/// A server that is not seekscope's.
pub struct ForeignServer {
    child: Child,
    pub uri: String,
}

impl ForeignServer {
    pub fn start(folder: &Path, cache: &str) -> Self {
        Self::start_with(folder, cache, "", &[])
    }

    /// Starts a server with a checkpoint every `every_s`; the default is one a minute.
    pub fn start_with_checkpoints(folder: &Path, cache: &str, every_s: u32) -> Self {
        Self::start_with(folder, cache, &format!(",checkpoint=(wait={every_s})"), &[])
    }

    /// Starts a server with more on its command line.
    pub fn start_with_arguments(folder: &Path, cache: &str, more: &[&str]) -> Self {
        Self::start_with(folder, cache, "", more)
    }

    /// Starts a server with more in WiredTiger's configuration and on its command line.
    pub fn start_with(folder: &Path, cache: &str, wiredtiger: &str, more: &[&str]) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let mut child = Command::new(server_binary())
            .args(["--port", "0", "--host", "127.0.0.1", "--cache-size", cache])
            .args(more)
            .arg("--storage-path")
            .arg(folder)
            // Without these it never ends an index build in a small cache.
            .env(
                "SECANTUS_WT_CONFIG_EXTRA",
                format!("eviction_dirty_trigger=90,eviction_updates_trigger=90{wiredtiger}"),
            )
            .env("SECANTUS_DISABLE_OPLOG", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the local server; `./x test` installs it");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().rsplit(' ').next().unwrap();
        Self {
            uri: format!("mongodb://{address}/"),
            child,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stop(mut self) {
        send(&self.child, libc::SIGTERM);
        wait(&mut self.child, Duration::from_secs(120));
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies a program for everybody. Another process does it: what this one has open to be written, each process that another
/// test starts has open, too, until it has become its program, and the kernel runs no such file.
pub fn install(program: impl AsRef<OsStr>, to: &Path) {
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(program.as_ref()).arg(to);
    let output = install.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A command run by a user without any rights.
pub fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(program);
    command
}
