//! Watches the server, its process, its files and its disk, as far as possible.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use seekscope_report::live::LiveWindow;
use seekscope_report::live::top::TopFrame;
use seekscope_report::live::vitals::VitalsWindow;
use seekscope_run::{DeviceFacts, FileRecord, IoEvent, IoKind, Limitation, monotonic_ns};
use seekscope_server::examination::{choose_member, refuse_router};
use seekscope_server::process::ProcessIdentity;
use seekscope_server::tcp_listener::is_this_host;
use seekscope_server::{ProcFs, Sampler, Server, ServerFacts};
use seekscope_trace::{
    EventSink, Group, LiveSource, Recording, SinkError, TraceError, TraceOptions,
};

use super::names::KnownNames;
use crate::args::TopArgs;
use crate::exit::Usage;
use crate::member_role::MemberRole;
use crate::trace::{SharedWindow, Tee, lock};

/// Everything that is watched. Dropping it removes the programs from the kernel.
pub struct Watch {
    subject: String,
    server: Option<Server>,
    process: Option<ProcessIdentity>,
    dbpath: Option<PathBuf>,
    disk: Option<String>,
    sampler: Sampler,
    vitals: VitalsWindow,
    names: KnownNames,
    trace: Option<Trace>,
    limitations: Vec<Limitation>,
    started_ns: u64,
}

/// The server or process that was named.
struct Subject {
    name: String,
    server: Option<Server>,
    pid: Option<u32>,
    dbpath: Option<PathBuf>,
    missing: Vec<Limitation>,
}

impl Subject {
    async fn find(args: &TopArgs, proc_fs: &ProcFs) -> Result<Self> {
        match (&args.uri, args.pid) {
            (Some(uri), pid) => {
                let server = choose_member(uri, proc_fs).await?;
                refuse_router(&server).await?;
                Self::of_server(server, pid, proc_fs).await
            }
            (None, Some(pid)) => {
                let name = proc_fs.exe_name(pid).unwrap_or_default();
                Ok(Self {
                    name: format!("process {pid} {name}"),
                    server: None,
                    pid: Some(pid),
                    dbpath: proc_fs.dbpath(pid),
                    missing: Vec::new(),
                })
            }
            (None, None) => Err(Usage("name a server or a --pid".into()).into()),
        }
    }

    /// Examines a server. A process that was named is trusted.
    async fn of_server(server: Server, pid: Option<u32>, proc_fs: &ProcFs) -> Result<Self> {
        let ServerFacts {
            target,
            mut missing,
        } = server.facts(proc_fs).await;
        // The path of a server on another host means nothing here.
        let is_here = |(host, _): &(String, u16)| is_this_host(host);
        let here = target.pid.is_some() || server.addresses().iter().any(is_here);
        let mut dbpath = target.dbpath.filter(|_| here).map(PathBuf::from);
        if let Some(pid) = pid {
            dbpath = proc_fs.dbpath(pid).or(dbpath);
            missing.retain(|m| !m.what.contains("process is not known"));
        }
        Ok(Self {
            name: format!("{} {} at {}", target.product, target.version, target.uri),
            server: Some(server),
            pid: pid.or(target.pid),
            dbpath,
            missing,
        })
    }
}

/// The recording, and the window that it feeds.
struct Trace {
    window: SharedWindow,
    recording: Recording,
}

impl Watch {
    /// Finds the server and starts counting. What is not permitted is left out and listed.
    ///
    /// # Errors
    /// No server answers, or there is no such process.
    pub async fn begin(args: &TopArgs) -> Result<Self> {
        let proc_fs = ProcFs::host();
        let subject = Subject::find(args, &proc_fs).await?;
        let identity = |pid| {
            let identity = proc_fs.identity(pid);
            identity.map_err(|_| TraceError::NoSuchProcess { pid })
        };
        let process = subject.pid.map(identity).transpose()?;
        let device = subject
            .dbpath
            .as_deref()
            .and_then(|path| DeviceFacts::of_path(Path::new("/"), path).ok())
            .unwrap_or_default();
        let number = device.disk_device.as_deref();
        let sampler = match &subject.server {
            Some(server) => Sampler::new(server, &proc_fs, subject.pid, number),
            None => Sampler::of_host(&proc_fs, subject.pid, number),
        };
        let mut watch = Self {
            subject: subject.name,
            server: subject.server,
            process,
            dbpath: subject.dbpath,
            disk: device.disk,
            sampler,
            vitals: VitalsWindow::default(),
            names: KnownNames::default(),
            trace: None,
            limitations: subject.missing,
            started_ns: monotonic_ns(),
        };
        watch.begin_trace(args).await;
        Ok(watch)
    }

    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns whether the process is alive; true if it is unknown, as on another host.
    pub fn is_alive(&self) -> bool {
        let process = self.process.as_ref();
        process.is_none_or(|process| ProcFs::host().is_alive(process))
    }

    async fn begin_trace(&mut self, args: &TopArgs) {
        match self.try_trace(args).await {
            Ok(trace) => self.trace = Some(trace),
            Err((why, remedy)) => self.limitations.push(Limitation {
                what: "files, patterns and latencies are not shown".into(),
                why,
                remedy,
            }),
        }
    }

    /// Starts the trace; `Err` holds the reason why not and the remedy.
    async fn try_trace(&mut self, args: &TopArgs) -> Result<Trace, (String, String)> {
        if args.no_trace {
            return Err(("--no-trace".into(), String::new()));
        }
        let Some(process) = &self.process else {
            let remedy = "Run seekscope on the server's host, or name the process with --pid";
            return Err((
                "the server's process is not seen from here".into(),
                remedy.into(),
            ));
        };
        if !args.trace_primary && self.must_be_spared().await {
            let remedy = "Watch a secondary, or permit it with --trace-primary";
            let why = "it is the primary of a replica set, or does not say that it is none";
            return Err((why.into(), remedy.into()));
        }
        let mut options = TraceOptions::new(process.pid);
        options.kinds = vec![IoKind::Read, IoKind::Write, IoKind::Sync];
        options.groups = vec![Group::Calls, Group::Uring, Group::Aio, Group::Faults];
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
        Ok(Trace {
            window,
            recording: Recording::start(Box::new(source), Box::new(sink)),
        })
    }

    async fn ask_names(&mut self) {
        let dbpath = self.dbpath.as_deref();
        let limitation = self.names.ask(self.server.as_ref(), dbpath).await;
        if let Some(limitation) = limitation.filter(|l| !self.limitations.contains(l)) {
            self.limitations.push(limitation);
        }
    }

    /// Returns whether this is a primary with other members, which could be watched instead.
    async fn must_be_spared(&self) -> bool {
        let Some(server) = &self.server else {
            return false;
        };
        let role = MemberRole::ask(server).await;
        role.unwrap_or_default().others_may_depend_on_it()
    }

    /// Counts again and returns the current state.
    pub async fn frame(&mut self) -> TopFrame {
        self.vitals.push(self.sampler.sample().await);
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
        TopFrame {
            subject: self.subject.clone(),
            unix_ms: u64::try_from(unix.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(0),
            elapsed_s: now_ns.saturating_sub(self.started_ns) as f64 / 1e9,
            disk: self.disk.clone(),
            vitals: self.vitals.vitals(now_ns),
            files: trace.map(|trace| lock(&trace.window).snapshot(now_ns, None)),
            limitations: self.limitations.clone(),
        }
    }

    /// Reports a trace that broke off; the counters go on.
    fn end_failed_trace(&mut self) {
        let Some(trace) = self.trace.take_if(|trace| trace.recording.has_failed()) else {
            return;
        };
        if let Err(error) = trace.recording.stop() {
            self.limitations.push(Limitation {
                what: "files are not shown any more".into(),
                why: error.to_string(),
                remedy: "Start it again".into(),
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
