//! One server: its counters, what the kernel counts of its files, and their names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mongodb::bson::doc;
use seekscope_exporter::server_counters::{LAG_S, REPLICATION};
use seekscope_exporter::{Calls, FileCalls, FileName, Latencies, Registry, TraceUse};
use seekscope_run::{CounterSample, FileRecord, FileRole, IoEvent, Limitation, monotonic_ns};
use seekscope_server::examination::replication_lag_s;
use seekscope_server::{FileMap, ProcFs, ProcessIdentity, Sampler, Server};
use seekscope_trace::{
    EventSink, EventSource, LiveSource, RawTotals, SinkError, TraceError, TraceOptions,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::exported::Exported;
use super::findings::Findings;
use super::layout_walk::{self, LayoutWalks, WalkPlan};
use super::memory;
use crate::args::ExporterArgs;
use crate::file_names::{FileNames, is_about_names};
use crate::name_renewal::NameRenewal;
use crate::subjects::Subject;

/// How long a reading waits for the server to tell its lag.
const LAG_PATIENCE: Duration = Duration::from_millis(500);
/// A server that has not answered for this long is away.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Findings look back at no fewer readings, however far these are apart.
const READINGS_MIN: u32 = 10;

const NO_FILES: &str = "calls on files are not counted";
const NO_LAYOUT: &str = "the layout of the files on disk is not known";

/// What is exported of each server.
#[derive(Clone)]
pub struct Plan {
    pub trace: bool,
    pub walks: Option<WalkPlan>,
    /// How long findings look back.
    pub findings_over: Duration,
    /// A run of `seekscope disk` on the disk of the data.
    pub disk_run: Option<PathBuf>,
}

impl Plan {
    pub fn of(args: &ExporterArgs) -> Self {
        Self {
            trace: !args.no_trace,
            walks: WalkPlan::of(args),
            findings_over: args.findings_over.max(args.every * READINGS_MIN),
            disk_run: args.disk_run.clone(),
        }
    }
}

/// A server that is being read.
pub struct WatchedServer {
    /// `host:port`, or "process PID" where there is no connection string.
    pub name: String,
    subject: Subject,
    process: Option<ProcessIdentity>,
    device: Option<String>,
    sampler: Sampler,
    counting: Option<Counting>,
    naming: Naming,
    /// Whether it is in a replica set, and so may lag.
    may_lag: bool,
    answered: Option<Instant>,
    begun: Instant,
    walks: Option<LayoutWalks>,
    findings: Findings,
    limitations: Vec<Limitation>,
}

/// The programs that count, and the files that they know.
struct Counting {
    source: LiveSource,
    files: KnownFiles,
}

/// Which file has which collection.
#[derive(Default)]
struct Naming {
    map: FileMap,
    asking: Option<Asking>,
    renewal: NameRenewal,
}

/// A question for names, on its way.
struct Asking {
    began: Instant,
    task: JoinHandle<FileNames>,
}

/// The files that calls refer to.
#[derive(Default)]
struct KnownFiles(HashMap<u32, FileRecord>);

impl EventSink for KnownFiles {
    fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.0.insert(file.file_id, file.clone());
        Ok(())
    }
}

impl WatchedServer {
    /// Finds out what is exported of it, and begins to count. What is not permitted is left out and listed.
    pub async fn begin(name: String, mut subject: Subject, plan: &Plan) -> Self {
        let proc_fs = ProcFs::host();
        let process = subject.pid.and_then(|pid| proc_fs.identity(pid).ok());
        let device = subject.device();
        let sampler = subject.sampler(&proc_fs, &device);
        let may_lag = match &subject.server {
            Some(server) => server.hello().await.is_ok_and(|hello| hello.set.is_some()),
            None => false,
        };
        let data = subject.data().filter(|_| process.is_some());
        let mut begun = Self {
            limitations: std::mem::take(&mut subject.missing),
            walks: (plan.walks.clone().zip(data)).map(|(plan, path)| LayoutWalks::new(plan, path)),
            findings: Findings::of(&subject, plan),
            name,
            process,
            device: device.disk,
            sampler,
            counting: None,
            naming: Naming::default(),
            may_lag,
            answered: None,
            begun: Instant::now(),
            subject,
        };
        if plan.trace && begun.process.is_some() {
            // The names come first, so that no call is counted without one.
            let names = begun.ask_names().await;
            begun.named(names);
            begun.attach();
        } else {
            let why = match plan.trace {
                true => "the server's process is not visible from here",
                false => "--no-trace",
            };
            begun.limit(NO_FILES, why.into(), String::new());
        }
        memory::give_back();
        begun
    }

    /// Returns its process, if that is on this host.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// Returns whether its process has ended or, on another host, it has not answered for long.
    pub fn is_lost(&self) -> bool {
        match &self.process {
            Some(process) => !ProcFs::host().is_alive(process),
            None => !self.answers(),
        }
    }

    fn answers(&self) -> bool {
        let since = self.answered.unwrap_or(self.begun);
        since.elapsed() < ANSWER_LIMIT
    }

    fn is_up(&self) -> bool {
        let is_known = self.answered.is_some() || self.process.is_some();
        match &self.subject.server {
            Some(_) => is_known && self.answers() && !self.is_lost(),
            // Without a connection, that its process lives is all that is known.
            None => self.process.is_some() && !self.is_lost(),
        }
    }

    /// Returns whether the server answers a request that needs no right.
    async fn is_answered(&self) -> bool {
        let Some(server) = &self.subject.server else {
            return false;
        };
        let ping = server.command_in_time("admin", doc! { "ping": 1 });
        ping.await.is_ok()
    }

    /// Returns what is not exported, and why.
    pub fn limitations(&self) -> &[Limitation] {
        &self.limitations
    }

    fn limit(&mut self, what: &str, why: String, remedy: String) {
        self.limitations.retain(|known| known.what != what);
        self.limitations.push(Limitation {
            what: what.into(),
            why,
            remedy,
        });
    }

    /// Loads the programs that count. What earlier ones counted stays in the registry.
    fn attach(&mut self) {
        let Some(process) = &self.process else { return };
        match LiveSource::attach(&TraceOptions::totals_of_server(process.pid)) {
            Ok(source) => {
                let refused: Vec<_> = source.refused().collect();
                for group in refused {
                    let what = format!("{} are not counted", group.group);
                    self.limit(&what, group.how, String::new());
                }
                self.counting = Some(Counting {
                    source,
                    files: KnownFiles::default(),
                });
            }
            Err(TraceError::NoPermission { what, why, remedy }) => {
                self.limit(NO_FILES, format!("cannot {what}: {why}"), remedy);
            }
            Err(error) => self.limit(NO_FILES, error.to_string(), String::new()),
        }
    }

    /// Reads everything once, and enters it.
    pub async fn read(&mut self, exported: &Exported) {
        let began = Instant::now();
        let (mut samples, lag, ()) = tokio::join!(
            self.sampler.sample(),
            lag(self.subject.server.as_ref().filter(|_| self.may_lag)),
            self.findings.look()
        );
        samples.extend(lag);
        let has_status = samples.iter().any(|sample| sample.source == "serverStatus");
        // Whoever may not read that is told at least whether there is an answer.
        let has_answered = has_status || self.is_answered().await;
        if has_answered {
            self.answered = Some(Instant::now());
        }
        let has_names = self.take_names().await;
        let now_ns = monotonic_ns();
        let (counted, used) = self.count();
        self.ask_for_lacking_names(has_answered);
        self.findings.read(&samples);
        let found = self.findings.conclude();
        let walked = match &mut self.walks {
            Some(walks) => walks.look(&self.naming.map, || self.findings.disk()),
            None => None,
        };
        let gone = self.walks.as_mut().map(LayoutWalks::forget_gone);
        let gone = gone.unwrap_or_default();
        for file in &gone {
            // What took its place may have got its name with that.
            self.naming.renewal.lacks(Path::new(file));
        }
        if walked.is_some() {
            memory::give_back();
        }
        let mut registry = exported.registry();
        registry.read(&self.name, &samples);
        registry.count(&self.name, now_ns, counted);
        self.enter_layout(&mut registry, walked, has_names || !gone.is_empty());
        let server = registry.server(&self.name);
        if let Some(found) = found {
            server.found(found);
        }
        if let Some(used) = used {
            server.traced(used);
        }
        server.is_up = self.is_up();
        server.is_tracing = self.counting.is_some();
        server.device.clone_from(&self.device);
        server.reading_s = Some(began.elapsed().as_secs_f64());
        // A server that was asked and did not answer has told nothing new.
        if has_answered || self.subject.server.is_none() {
            server.read_at_unix_s = Some(unix_s());
        }
        let limitations = self.limitations.iter();
        server.limit(limitations.map(|l| (l.what.as_str(), l.why.as_str())));
    }

    /// Enters how files lie after a walk, and when some are gone or have got other names.
    fn enter_layout(
        &mut self,
        registry: &mut Registry,
        walked: Option<Result<(), String>>,
        has_changed: bool,
    ) {
        let is_walked = matches!(walked, Some(Ok(())));
        if is_walked {
            self.limitations.retain(|known| known.what != NO_LAYOUT);
        }
        if let Some(Err(why)) = walked {
            self.limit(NO_LAYOUT, why, String::new());
        }
        let found = self.walks.as_ref().and_then(LayoutWalks::found);
        let Some(found) = found.filter(|_| is_walked || has_changed) else {
            return;
        };
        let files = found.files.iter();
        let files = files.map(|file| layout_walk::exported(file, &self.naming.map));
        match is_walked {
            true => registry.walked(&self.name, unix_s(), files.collect()),
            false => registry.replace_layout(&self.name, files.collect()),
        }
        self.findings.walked(found.clone());
    }

    /// Fetches what the kernel counted since the last time, and what that has cost.
    fn count(&mut self) -> (Vec<FileCalls>, Option<TraceUse>) {
        let Some(counting) = &mut self.counting else {
            return (Vec::new(), None);
        };
        match counting.fetch(&mut self.naming) {
            Ok((counted, used)) => {
                if counting.source.is_crowded() {
                    // The kernel's table is full of files that are gone.
                    self.counting = None;
                    self.attach();
                }
                (counted, Some(used))
            }
            Err(error) => {
                self.counting = None;
                self.limit(NO_FILES, error.to_string(), "Start it again".into());
                (Vec::new(), None)
            }
        }
    }

    /// Takes up the names that were asked for. Returns whether they have come.
    async fn take_names(&mut self) -> bool {
        let finished = |asking: &mut Asking| asking.task.is_finished();
        let Some(Asking { began, task }) = self.naming.asking.take_if(finished) else {
            return false;
        };
        let names = task.await.ok();
        let have_come = names.is_some();
        if let Some(names) = names {
            self.named(names);
            memory::give_back();
        }
        let (began, ended) = (began.into_std(), Instant::now().into_std());
        self.naming.renewal.asked(began, ended);
        have_come
    }

    /// Asks for names, where some are lacking, at most now and then and of no server that is slow.
    fn ask_for_lacking_names(&mut self, has_answered: bool) {
        let began = Instant::now();
        let is_fit = has_answered || self.subject.server.is_none();
        let is_due = self.naming.renewal.is_due(began.into_std());
        if is_fit && is_due && self.naming.asking.is_none() {
            let task = tokio::spawn(self.ask_names());
            self.naming.asking = Some(Asking { began, task });
        }
    }

    fn ask_names(&self) -> impl Future<Output = FileNames> + Send + use<> {
        let (server, data) = (self.subject.server.clone(), self.subject.data());
        async move { FileNames::find(server.as_ref(), data.as_deref(), &[]).await }
    }

    fn named(&mut self, names: FileNames) {
        match names.limitation {
            // Tables that were dropped are forgotten, or the map would grow for ever.
            None => self.naming.map = names.map,
            Some(_) => self.naming.map.update(names.map),
        }
        self.limitations
            .retain(|limitation| !is_about_names(limitation));
        if let Some(limitation) = names.limitation {
            self.limit(&limitation.what, limitation.why, limitation.remedy);
        }
    }
}

impl Counting {
    fn fetch(&mut self, naming: &mut Naming) -> Result<(Vec<FileCalls>, TraceUse), TraceError> {
        // This takes up the names of files that were opened.
        self.source.drain(&mut self.files)?;
        let mut counted = Vec::new();
        for totals in self.source.take_totals(&mut self.files)? {
            let Some(file) = self.files.0.get(&totals.file_id) else {
                continue;
            };
            let name = name_of(&naming.map, Path::new(&file.path));
            let is_table = [FileRole::Collection, FileRole::Index]
                .iter()
                .any(|role| role.name() == name.role);
            if is_table && name.collection.is_empty() {
                naming.renewal.lacks(Path::new(&file.path));
            }
            counted.push(FileCalls {
                name,
                kind: totals.op.kind(),
                calls: calls(&totals.totals),
            });
        }
        let used = TraceUse {
            call_delay_s: self.source.call_delay_ns() / 1e9,
            lost_calls: self.source.lost()?,
        };
        Ok((counted, used))
    }
}

fn calls(totals: &RawTotals) -> Calls {
    Calls {
        errors: totals.errors,
        bytes: totals.bytes,
        device_read_bytes: totals.device_read_bytes,
        hits: totals.hits,
        misses: totals.misses,
        latencies: Latencies::new(totals.latency_buckets, totals.latency_ns),
    }
}

/// Returns what a file is, as far as its name and the server's catalogue tell.
pub fn name_of(map: &FileMap, path: &Path) -> FileName {
    let (role, namespace) = map.classify(path);
    match map.only_use(path) {
        Some((collection, index)) => FileName {
            role: role.name(),
            collection: collection.into(),
            index: index.unwrap_or_default().into(),
        },
        // Several collections share it.
        None => FileName {
            role: role.name(),
            collection: namespace.unwrap_or_default(),
            index: String::new(),
        },
    }
}

/// Asks a member of a set for its lag. A server that is slow to answer has none this time.
async fn lag(server: Option<&Server>) -> Option<CounterSample> {
    let answer = timeout(LAG_PATIENCE, replication_lag_s(server?)).await;
    let lag_s = answer.ok()?.ok()??;
    Some(CounterSample {
        t_ns: monotonic_ns(),
        source: REPLICATION.into(),
        name: LAG_S.into(),
        value: lag_s,
    })
}

fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_secs_f64()
}
