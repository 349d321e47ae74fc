//! Watches the servers, their processes, files and disks, as far as possible.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use futures_util::future::join_all;
use seekscope_report::live::LiveWindow;
use seekscope_report::live::top::{MemberVitals, TopFrame};
use seekscope_report::live::vitals::{Operations, Vitals, VitalsWindow};
use seekscope_run::{CounterSample, FileRecord, IoEvent, IoKind, Limitation, monotonic_ns};
use seekscope_server::process::ProcessIdentity;
use seekscope_server::{ProcFs, Sampler};
use seekscope_trace::{
    BackendChoice, EventSink, Followed, Group, LiveSource, Recording, SinkError, TraceError,
    TraceOptions,
};

use super::names::KnownNames;
use crate::args::TopArgs;
use crate::local_members::OtherMember;
use crate::subjects::{Subject, Subjects};
use crate::trace::{SharedWindow, Tee, lock};

/// Members on other hosts that are asked for their counters.
const OTHERS_MAX: usize = 12;
const NO_FILES: &str = "files, patterns and latencies are not shown";

/// Everything that is watched. Dropping it removes the programs from the kernel.
pub struct Watch {
    subject: String,
    here: Vec<Watched>,
    elsewhere: Vec<Other>,
    names: KnownNames,
    trace: Option<Trace>,
    limitations: Vec<Limitation>,
    /// How many members did not answer when they were looked for.
    away: usize,
    started_ns: u64,
}

/// A server or process that is watched.
struct Watched {
    subject: Subject,
    process: Option<ProcessIdentity>,
    disk: Option<String>,
    sampler: Sampler,
    vitals: VitalsWindow,
}

/// A member on another host.
struct Other {
    label: String,
    sampler: Sampler,
    vitals: VitalsWindow,
}

/// The recording, and the window that it feeds.
struct Trace {
    window: SharedWindow,
    recording: Recording,
}

impl Watched {
    fn begin(subject: Subject, proc_fs: &ProcFs) -> Result<Self, TraceError> {
        let identity = |pid| {
            let identity = proc_fs.identity(pid);
            identity.map_err(|_| TraceError::NoSuchProcess { pid })
        };
        let process = subject.pid.map(identity).transpose()?;
        let device = subject.device();
        let sampler = subject.sampler(proc_fs, &device);
        Ok(Self {
            subject,
            process,
            disk: device.disk,
            sampler,
            vitals: VitalsWindow::default(),
        })
    }

    /// Returns whether the process has ended; false if it is unknown, as on another host.
    fn has_ended(&self) -> bool {
        let process = self.process.as_ref();
        process.is_some_and(|process| !ProcFs::host().is_alive(process))
    }

    /// Returns the state, if this is one of several members. Of one whose process has ended, only since when it is
    /// silent.
    fn as_member(&self, now_ns: u64) -> Option<MemberVitals> {
        let vitals = self.vitals.vitals(now_ns);
        let vitals = match self.has_ended() {
            false => vitals,
            true => Vitals {
                operations: Operations {
                    answered_s_ago: vitals.operations.answered_s_ago,
                    ..Operations::default()
                },
                ..Vitals::default()
            },
        };
        Some(MemberVitals {
            label: self.subject.label.clone()?,
            is_here: true,
            disk: self.disk.clone(),
            vitals,
        })
    }

    /// Says that the process has ended, if it has. Members of a deployment are looked for again beside the pictures; of
    /// a server alone the screen says so itself, and a number of pictures ends with it.
    fn end(&self) -> Option<Limitation> {
        let is_member = self.subject.label.is_some();
        let remedy = match is_member {
            true => "seekscope is looking for it again",
            false => "",
        };
        let limitation = Limitation {
            what: "it is no longer shown".into(),
            why: "its process has ended".into(),
            remedy: remedy.into(),
        };
        self.has_ended()
            .then(|| self.subject.limitation(limitation))
    }
}

impl Other {
    fn of(member: &OtherMember) -> Option<Self> {
        Some(Self {
            label: member.label.clone(),
            sampler: Sampler::of_status(member.server.as_ref()?),
            vitals: VitalsWindow::default(),
        })
    }
}

impl Watch {
    /// Finds the servers and starts counting. What is not permitted is left out and listed.
    ///
    /// # Errors
    /// No server answers, or there is no such process.
    pub async fn begin(args: &TopArgs) -> Result<Self> {
        let subjects = Subjects::find(args.uri.as_deref(), args.pid, &ProcFs::host()).await?;
        Self::of(subjects, args).await
    }

    /// Starts counting what was found.
    ///
    /// # Errors
    /// A process has ended meanwhile.
    pub async fn of(subjects: Subjects, args: &TopArgs) -> Result<Self> {
        let proc_fs = ProcFs::host();
        let limitations = subjects.limitations();
        let here = subjects.here.into_iter();
        let here = here.map(|subject| Watched::begin(subject, &proc_fs));
        let mut watch = Self {
            subject: subjects.name,
            here: here.collect::<Result<_, _>>()?,
            elsewhere: subjects
                .others
                .iter()
                .filter_map(Other::of)
                .take(OTHERS_MAX)
                .collect(),
            names: KnownNames::default(),
            trace: None,
            limitations,
            away: subjects.away.len(),
            started_ns: monotonic_ns(),
        };
        watch.begin_trace(args).await;
        Ok(watch)
    }

    /// Returns when it began, CLOCK_MONOTONIC ns.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Tells the time since then, when what it takes the place of began.
    pub fn since(self, started_ns: u64) -> Self {
        Self { started_ns, ..self }
    }

    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns how many processes are watched.
    pub fn processes(&self) -> usize {
        self.here.iter().filter(|one| one.process.is_some()).count()
    }

    /// Returns whether members are missing: those whose process has ended, and those that did not answer.
    pub fn misses_members(&self) -> bool {
        self.has_lost_one() || self.away > 0
    }

    /// Returns whether more members are there than are watched.
    pub fn is_exceeded_by(&self, found: &Subjects) -> bool {
        let living = self.here.iter().filter(|one| one.process.is_some());
        let living = living.filter(|one| !one.has_ended()).count();
        let there = found.here.iter().filter(|one| one.pid.is_some()).count();
        there > living || there == living && found.away.len() < self.away
    }

    /// Returns whether anything is left to be watched.
    pub fn is_alive(&self) -> bool {
        !self.here.iter().all(Watched::has_ended)
    }

    /// Returns whether the process, or one of several, has ended.
    pub fn has_lost_one(&self) -> bool {
        self.here.iter().any(Watched::has_ended)
    }

    /// Returns the names of those whose processes have ended.
    pub fn lost(&self) -> String {
        let ended = self.here.iter().filter(|one| one.has_ended());
        let names: Vec<&str> = ended.map(|one| one.subject.name.as_str()).collect();
        names.join(", ")
    }

    async fn begin_trace(&mut self, args: &TopArgs) {
        match self.try_trace(args).await {
            Ok(trace) => self.trace = trace,
            Err((why, remedy)) => self.limitations.push(Limitation {
                what: NO_FILES.into(),
                why,
                remedy,
            }),
        }
    }

    /// Starts the trace; `Err` holds the reason why not and the remedy. `None` if all are spared.
    async fn try_trace(&mut self, args: &TopArgs) -> Result<Option<Trace>, (String, String)> {
        if args.no_trace {
            return Err(("--no-trace".into(), String::new()));
        }
        if self.processes() == 0 {
            let remedy = "Run seekscope on the server's host, or name the process with --pid";
            return Err((
                "the server's process is not visible from here".into(),
                remedy.into(),
            ));
        }
        let pids = self.traced_pids(args).await;
        let followed = match pids.as_slice() {
            [] => return Ok(None),
            [pid] => Followed::Process(*pid),
            _ => Followed::Processes {
                pids,
                children: false,
            },
        };
        let mut options = TraceOptions::of(followed);
        options.kinds = vec![IoKind::Read, IoKind::Write, IoKind::Sync];
        options.groups = Group::OF_DATABASES.to_vec();
        options.backend = BackendChoice::Sparing;
        if self
            .here
            .iter()
            .any(|watched| watched.subject.server.is_none())
        {
            // Any program may map files or use libaio.
            options.groups.extend([Group::Aio, Group::Faults]);
            options.backend = BackendChoice::Auto;
        }
        let source = LiveSource::attach(&options).map_err(|error| match error {
            TraceError::NoPermission { what, why, remedy } => {
                (format!("cannot {what}: {why}"), remedy)
            }
            other => (other.to_string(), String::new()),
        })?;
        for group in source.refused() {
            self.limitations.push(Limitation {
                what: format!("{} are not followed", group.group),
                why: group.how,
                remedy: String::new(),
            });
        }
        self.ask_names().await;
        let window = LiveWindow::over(monotonic_ns(), args.every);
        let window = Arc::new(Mutex::new(window));
        let names = self.names.clone();
        let name = Box::new(move |file: &mut FileRecord| names.name(file));
        let sink = Tee::new(Discard, Arc::clone(&window), name);
        Ok(Some(Trace {
            window,
            recording: Recording::start(Box::new(source), Box::new(sink)),
        }))
    }

    /// Returns the processes that may be traced, and lists the others.
    async fn traced_pids(&mut self, args: &TopArgs) -> Vec<u32> {
        let mut pids = Vec::new();
        for watched in &self.here {
            let Some(process) = &watched.process else {
                continue;
            };
            if !args.trace_primary && watched.subject.must_be_spared().await {
                let limitation = Limitation {
                    what: NO_FILES.into(),
                    why: "it is the primary of a replica set, or its role is not known".into(),
                    remedy: "Watch a secondary, or allow tracing with --trace-primary".into(),
                };
                self.limitations
                    .push(watched.subject.limitation(limitation));
                continue;
            }
            pids.push(process.pid);
        }
        pids
    }

    async fn ask_names(&mut self) {
        let subjects = self.here.iter().map(|watched| &watched.subject);
        for limitation in self.names.ask(subjects).await {
            if !self.limitations.contains(&limitation) {
                self.limitations.push(limitation);
            }
        }
    }

    /// Counts again and returns the current state.
    pub async fn frame(&mut self) -> TopFrame {
        self.sample().await;
        self.end_failed_trace();
        if self.names.want_asking() {
            self.ask_names().await;
            if let Some(trace) = &self.trace {
                lock(&trace.window).rename(|file| self.names.name(file));
            }
        }
        let now_ns = monotonic_ns();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let trace = self.trace.as_ref();
        let (disk, vitals) = self.common(now_ns);
        TopFrame {
            subject: self.subject.clone(),
            unix_ms: u64::try_from(unix.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(0),
            elapsed_s: now_ns.saturating_sub(self.started_ns) as f64 / 1e9,
            disk,
            vitals,
            members: self.members(now_ns),
            files: trace.map(|trace| lock(&trace.window).snapshot(now_ns, None)),
            limitations: self.limitations().collect(),
        }
    }

    fn limitations(&self) -> impl Iterator<Item = Limitation> {
        let ended = self.here.iter().filter_map(Watched::end);
        ended.chain(self.limitations.iter().cloned())
    }

    /// Reads all counters at once, so that a server that is slow to answer delays no other.
    async fn sample(&mut self) {
        let here = self
            .here
            .iter_mut()
            .map(|one| (&mut one.sampler, &mut one.vitals));
        let others = self.elsewhere.iter_mut();
        let others = others.map(|one| (&mut one.sampler, &mut one.vitals));
        let samples = here.chain(others).map(|(sampler, vitals)| async {
            let samples: Vec<CounterSample> = sampler.sample().await;
            vitals.push(samples);
        });
        join_all(samples).await;
    }

    /// Returns the disk and the state of the one that is watched; of several members what they have in common.
    fn common(&self, now_ns: u64) -> (Option<String>, Vitals) {
        let Some(first) = self.here.first() else {
            return (None, Vitals::default());
        };
        let vitals = first.vitals.vitals(now_ns);
        if first.subject.label.is_none() {
            return (first.disk.clone(), vitals);
        }
        let is_shared = self.here.iter().all(|one| one.disk == first.disk);
        let host = Vitals {
            own_cpus: vitals.own_cpus,
            own_memory_bytes: vitals.own_memory_bytes,
            io_pressure: vitals.io_pressure,
            ..Vitals::default()
        };
        match is_shared {
            true => {
                let disk = vitals.disk;
                (first.disk.clone(), Vitals { disk, ..host })
            }
            false => (None, host),
        }
    }

    fn members(&self, now_ns: u64) -> Vec<MemberVitals> {
        let here = self.here.iter().filter_map(|one| one.as_member(now_ns));
        let others = self.elsewhere.iter().map(|one| MemberVitals {
            label: one.label.clone(),
            is_here: false,
            disk: None,
            vitals: one.vitals.vitals(now_ns),
        });
        here.chain(others).collect()
    }

    /// Reports a trace that broke off; the counters go on.
    fn end_failed_trace(&mut self) {
        let Some(trace) = self.trace.take_if(|trace| trace.recording.has_failed()) else {
            return;
        };
        if let Err(error) = trace.recording.stop() {
            self.limitations.push(Limitation {
                what: "files are no longer shown".into(),
                why: error.to_string(),
                remedy: "Start seekscope again".into(),
            });
        }
    }
}

/// Discards events, as the window has already counted them.
struct Discard;

impl EventSink for Discard {
    fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
        Ok(())
    }

    fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
        Ok(())
    }
}
