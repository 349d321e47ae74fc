//! What `doctor`'s detectors find in the counters of the last minutes.
//!
//! The evidence is that of an examination without a trace: counters, settings, running operations, and the order of
//! files as it was last read. No single call is known here, so findings that need one, such as how much more cache
//! would save, stay with `doctor`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_doctor::thresholds::NOTHING_WRONG;
use seekscope_doctor::{Counters, Evidence, diagnose, disk_opinion, ranking};
use seekscope_exporter::FoundProblem;
use seekscope_run::units::nanoseconds;
use seekscope_run::{
    CounterSample, DeviceFacts, Disk, DiskAbility, ExaminationRecord, Finding, HostFacts,
    HostSettings, LayoutMeasurement, MemberRecord, OperationSeen, Phase, RunDocument, monotonic_ns,
};
use seekscope_server::examination::{Examination, ExaminationOptions, OthersAsked};
use seekscope_server::{ProcFs, Server};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::watched_server::Plan;
use crate::doctor::observed;
use crate::layout::ScanDisk;
use crate::subjects::Subject;

/// Less time than this says too little, unless findings are to look back at less.
const OBSERVED_MIN: Duration = Duration::from_secs(60);
/// Conclusions in the time that they look back at.
const CONCLUSIONS: u32 = 10;
/// Readings that are kept, so that memory does not depend on how long findings look back.
const READINGS_MAX: u32 = 120;
/// How often the server is asked for its settings, which change rarely.
const ASK_AGAIN: Duration = Duration::from_secs(3600);
/// A look at the running operations is followed by a pause this many times as long, so that a server that is slow to
/// answer is looked at less often.
const PAUSE_PER_LOOK: u32 = 100;

/// The evidence of one server, and what follows from it.
pub struct Findings {
    server: Option<Server>,
    pid: Option<u32>,
    data: Option<PathBuf>,
    host: HostFacts,
    /// What the disk can do, as measured earlier, or that of a typical disk.
    disk: Option<DiskAbility>,
    /// The same as bounded by the limits on the server, and as seen at work.
    seen_disk: Option<DiskAbility>,
    /// How long findings look back.
    window: Duration,
    counters: Counters,
    /// When counters were read for the first time, CLOCK_MONOTONIC ns.
    begun_ns: Option<u64>,
    /// When counters were read the last time.
    read_ns: u64,
    layout: Option<LayoutMeasurement>,
    examination: Option<Examination>,
    asking: Option<JoinHandle<Examination>>,
    asked: Option<Instant>,
    /// Running operations that were seen up to a time.
    operations: VecDeque<(Instant, Vec<OperationSeen>)>,
    look_again: Option<Instant>,
    concluded: Option<Instant>,
}

impl Findings {
    /// Begins without any evidence.
    pub fn of(subject: &Subject, plan: &Plan) -> Self {
        let disk_run = plan.disk_run.as_deref();
        let data = subject.data();
        let disk = data
            .as_ref()
            .and_then(|data| ScanDisk::measured_or_typical(disk_run, None, data).ok());
        Self {
            server: subject.server.clone(),
            pid: subject.pid,
            data,
            host: HostFacts::read(Path::new("/")),
            disk: disk.map(|disk| DiskAbility {
                source: disk.model.disk.clone(),
                model: disk.model,
                measured: disk.measured,
                ..DiskAbility::default()
            }),
            seen_disk: None,
            window: plan.findings_over,
            counters: Counters::default(),
            begun_ns: None,
            read_ns: 0,
            layout: None,
            examination: None,
            asking: None,
            asked: None,
            operations: VecDeque::new(),
            look_again: None,
            concluded: None,
        }
    }

    /// Looks at the running operations, and asks for the server's settings when it is time, beside the readings.
    pub async fn look(&mut self) {
        if let Some(asking) = self.asking.take_if(|asking| asking.is_finished()) {
            self.keep_operations();
            self.examination = asking.await.ok().or(self.examination.take());
        }
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN);
        let server = self.server.as_ref().filter(|_| is_due);
        if let (Some(server), None) = (server, &self.asking) {
            self.asked = Some(Instant::now());
            self.asking = Some(tokio::spawn(ask(server.clone())));
        }
        let may_look = self.look_again.is_none_or(|then| Instant::now() >= then);
        if let Some(examination) = self.examination.as_mut().filter(|_| may_look) {
            let began = Instant::now();
            examination.look().await;
            self.look_again = Some(Instant::now() + began.elapsed() * PAUSE_PER_LOOK);
        }
    }

    /// Adds a reading of counters, of which only this many are kept.
    pub fn read(&mut self, samples: &[CounterSample]) {
        let Some(now_ns) = samples.iter().map(|sample| sample.t_ns).max() else {
            return;
        };
        let apart_ns = now_ns.saturating_sub(self.read_ns);
        if apart_ns < nanoseconds(self.window / READINGS_MAX) {
            return;
        }
        self.read_ns = now_ns;
        self.begun_ns = self.begun_ns.or(Some(now_ns));
        self.counters.append(samples);
        self.counters
            .forget_before(now_ns.saturating_sub(nanoseconds(self.window)));
    }

    /// Replaces what is known of the order of files.
    pub fn walked(&mut self, layout: LayoutMeasurement) {
        self.layout = Some(layout);
    }

    /// Returns what slows the server down, the most important first; `None` until it is time to conclude again.
    pub fn conclude(&mut self) -> Option<Vec<FoundProblem>> {
        let begun_ns = self.begun_ns?;
        let is_asked = self.examination.is_some() || self.server.is_none();
        let pause = self.window / CONCLUSIONS;
        let is_due = self
            .concluded
            .is_none_or(|concluded| concluded.elapsed() >= pause);
        let from_ns = monotonic_ns().saturating_sub(nanoseconds(self.window));
        let observed_ns = self.read_ns.saturating_sub(begun_ns.max(from_ns));
        let is_enough = observed_ns >= nanoseconds(OBSERVED_MIN.min(self.window - pause));
        if !is_asked || !is_due || !is_enough {
            return None;
        }
        self.concluded = Some(Instant::now());
        self.keep_operations();
        let mut document = self.document(self.read_ns.saturating_sub(observed_ns));
        self.seen_disk = disk_opinion(&evidence(&document, &self.counters));
        if let Some(examination) = &mut document.examination {
            examination.disk_opinion.clone_from(&self.seen_disk);
        }
        let diagnosis = diagnose(&evidence(&document, &self.counters));
        let found = diagnosis.findings.into_iter();
        let problems = found.filter(|finding| finding.id != NOTHING_WRONG);
        Some(problems.map(exported).collect())
    }

    /// Returns the disk as the last conclusion saw it, for which scans are predicted; `None` before the first.
    pub fn disk(&self) -> Option<ScanDisk> {
        let data = self.data.as_ref()?;
        let seen = self.seen_disk.as_ref()?;
        Some(ScanDisk {
            model: seen.model.clone(),
            device: DeviceFacts::of_path(Path::new("/"), data).ok(),
            measured: seen.measured,
            read_directly: seen.read_directly,
        })
    }

    /// Keeps the operations of the window.
    fn keep_operations(&mut self) {
        if let Some(examination) = &mut self.examination {
            let seen = examination.take_operations();
            self.operations.push_back((Instant::now(), seen));
        }
        let window = self.window;
        self.operations
            .retain(|(until, _)| until.elapsed() < window);
    }

    /// Returns the records of an examination from then on to the last counters.
    fn document(&self, started_ns: u64) -> RunDocument {
        let seen = self.operations.iter().flat_map(|(_, seen)| seen);
        let member = self.examination.as_ref().map(|examination| MemberRecord {
            operations: OperationSeen::summed_up(seen),
            ..examination.examined().clone()
        });
        let device = self.data.as_ref();
        let device = device.and_then(|data| DeviceFacts::of_path(Path::new("/"), data).ok());
        let settings = self.data.as_ref().zip(device.as_ref());
        let settings = settings.map(|(data, device)| {
            HostSettings::read(Path::new("/"), self.pid, data, device, &self.host)
        });
        let mut document = RunDocument::begin("exporter", Vec::new());
        document.started.monotonic_ns = started_ns;
        document.target = member.as_ref().map(|member| member.target.clone());
        document.host = Some(self.host.clone());
        document.device = device;
        document.layout.clone_from(&self.layout);
        document.phases = vec![Phase {
            started_ns,
            ended_ns: self.read_ns,
            ..observed("its own work".into(), None, Disk::Plain)
        }];
        document.examination = Some(ExaminationRecord {
            asked_ns: nanoseconds(self.window),
            deployment: self
                .examination
                .as_ref()
                .map_or_else(Default::default, Examination::deployment),
            members: member.into_iter().collect(),
            disk: self.disk.clone(),
            host: settings,
            ..ExaminationRecord::default()
        });
        document
    }
}

/// Asks a server what it is and how it is set up, but nothing of its collections: it may have any number of them.
async fn ask(server: Server) -> Examination {
    let options = ExaminationOptions {
        collections: Vec::new(),
        collections_max: 0,
        others: OthersAsked::Nobody,
    };
    Examination::begin(&server, &ProcFs::host(), &options).await
}

fn evidence<'a>(document: &'a RunDocument, counters: &'a Counters) -> Evidence<'a> {
    Evidence {
        document,
        trace: None,
        device_use: None,
        counters,
    }
}

fn exported(finding: Finding) -> FoundProblem {
    // What a job would save that nobody ran is no waiting of the last hour.
    let seconds_per_hour = finding
        .saves_s_per_hour
        .filter(|_| ranking::is_seen(&finding));
    FoundProblem {
        id: finding.id,
        subject: finding.subject,
        confidence: finding.confidence,
        seconds_per_hour,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unattended() -> Findings {
        let subject = Subject {
            label: None,
            name: "process 1".into(),
            server: None,
            pid: None,
            dbpath: None,
            missing: Vec::new(),
        };
        let plan = Plan {
            trace: false,
            walks: None,
            findings_over: Duration::from_secs(600),
            disk_run: None,
        };
        Findings::of(&subject, &plan)
    }

    fn reading(t_ns: u64) -> Vec<CounterSample> {
        let sample = |name: &str| CounterSample {
            t_ns,
            source: "diskstats".into(),
            name: name.into(),
            value: t_ns as f64,
        };
        vec![sample("reads"), sample("read_ms")]
    }

    #[test]
    fn only_so_many_readings_are_kept_and_none_from_before_the_window() {
        let mut findings = unattended();
        for second in 0..7_200 {
            findings.read(&reading(second * 1_000_000_000));
        }
        let reads = findings.counters.get("diskstats", "reads").unwrap();
        assert!(
            (110..=READINGS_MAX as usize + 1).contains(&reads.points.len()),
            "{}",
            reads.points.len()
        );
        assert!(
            (590.0..=600.0).contains(&reads.span_s()),
            "{}",
            reads.span_s()
        );
    }

    #[test]
    fn nothing_is_concluded_of_a_short_time() {
        let mut findings = unattended();
        assert_eq!(findings.conclude(), None);
        let now_ns = monotonic_ns();
        findings.read(&reading(now_ns.saturating_sub(50_000_000_000)));
        findings.read(&reading(now_ns));
        assert_eq!(findings.conclude(), None, "less than a minute");
        let mut findings = unattended();
        findings.read(&reading(now_ns.saturating_sub(70_000_000_000)));
        findings.read(&reading(now_ns));
        assert_eq!(findings.conclude(), Some(Vec::new()));
        assert_eq!(findings.conclude(), None, "a minute must pass");
    }
}
