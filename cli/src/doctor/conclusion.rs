//! Draws the conclusions from a run's records, derived from the run directory each time: by `doctor` at its
//! end, by `doctor RUN` and `report` later, so that all agree.

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_doctor::deployment::{self, ExaminedMember};
use seekscope_doctor::evidence::COUNTERS;
use seekscope_doctor::{Answers, Counters, Diagnosis, Evidence, diagnose, disk_opinion};
use seekscope_pattern::{DeviceUse, DeviceUseFinder, TraceAnalysis};
use seekscope_report::doctor::{DoctorReportInput, first_screen, html, verdict, verdict_of_member};
use seekscope_run::{
    COUNTERS_OF_MEMBER, ExaminationRecord, IoEvent, LeafRecord, Limitation, MemberRun,
    RunDirectory, RunDocument,
};
use serde::Serialize;

use super::judgement::Earlier;
use super::scan_times;
use crate::args::OutputArgs;
use crate::ending;
use crate::exit::{Usage, message_of};
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::{Session, limit};
use crate::trace::{TraceSummary, analyse, close_abandoned_phase};

const READING: &str = "while reading the events of the run";

/// What `--json` prints for an examination. Names are stable; fields may be added. null means unknown, which is not
/// zero. Sizes are bytes; times have their unit in the name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput<'a, Summary> {
    #[serde(flatten)]
    run: RunOutput<'a, Summary>,
    /// What was gathered besides trace and counters: members, collections, operations, host settings, the disk's
    /// capability (`disk_opinion`: as seen in this run, used by all answers), cost, and what changed since an earlier
    /// run.
    examination: Option<&'a ExaminationRecord>,
}

/// The figures of an examined run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExaminedSummary<'a> {
    /// The overall result in one sentence.
    verdict: String,
    /// Duration of the observation, s; null if there was none.
    #[schemars(range(min = 0))]
    observed_s: Option<f64>,
    /// The tables behind the findings; what could not be answered is null or empty.
    answers: &'a Answers,
    /// The trace, as in the summary of seekscope/trace/1; null if nothing was traced.
    trace: Option<TraceSummary<'a>>,
}

/// The conclusions from a run's records.
pub struct Conclusion {
    trace: Option<TraceAnalysis>,
    counters: Counters,
    diagnosis: Diagnosis,
    /// Neither the server nor its host provided anything to draw conclusions from; of a deployment, no member did.
    pub is_blind: bool,
}

impl Conclusion {
    /// Reads the records, and fills in findings and summary. Runs of members are saved with their pages.
    pub fn derive(session: &mut Session, since: Option<&Earlier>) -> Result<Self> {
        let of_member = &mut |member: &mut Session| {
            let conclusion = Self::derive(member, None)?;
            conclusion.save(member)?;
            Ok(conclusion)
        };
        let conclusion = Self::conclude(&session.directory, &mut session.document, of_member)?;
        if let Some(earlier) = since {
            let since = earlier.compare(&session.document, &conclusion.diagnosis);
            session.document.examination.get_or_insert_default().since = Some(since);
        }
        session
            .document
            .findings
            .clone_from(&conclusion.diagnosis.findings);
        session.document.summary = serde_json::to_value(conclusion.summary(session))?;
        Ok(conclusion)
    }

    /// Saves what was concluded, and writes `report.html`.
    pub fn save(&self, session: &Session) -> Result<()> {
        session.save_with_page(&self.page(session)?)
    }

    /// Draws conclusions without writing anything. Closes an abandoned phase in the document.
    pub fn of(directory: &RunDirectory, document: &mut RunDocument) -> Result<Self> {
        let of_member =
            &mut |member: &mut Session| Self::of(&member.directory, &mut member.document);
        Self::conclude(directory, document, of_member)
    }

    /// Draws the conclusions; of a deployment, `of_member` draws those of each member's run.
    fn conclude(
        directory: &RunDirectory,
        document: &mut RunDocument,
        of_member: &mut dyn FnMut(&mut Session) -> Result<Self>,
    ) -> Result<Self> {
        match document.is_of_deployment() {
            true => Self::joined(directory, document, of_member),
            false => Self::of_server(directory, document),
        }
    }

    /// Draws the conclusions from the run of one server.
    fn of_server(directory: &RunDirectory, document: &mut RunDocument) -> Result<Self> {
        let trace = match document.phases.is_empty() {
            true => None,
            false => Some(analyse(directory)?),
        };
        if let Some(trace) = &trace {
            close_abandoned_phase(document, trace);
        }
        if let Some(filters) = document.calls_left_out() {
            limit(document, of_these_calls_alone(&filters));
        }
        let is_traced = document.phases.iter().any(|phase| phase.trace.is_some());
        let trace = trace.filter(|_| is_traced);
        let device_use = trace.as_ref().map(|trace| device_use(directory, trace));
        let device_use = device_use.transpose()?;
        let counters = directory.counters()?;
        if counters.is_empty() && was_watched(document) {
            limit(document, without_counters());
        }
        let counters = Counters::new(counters);
        let watched = Evidence {
            document,
            trace: trace.as_ref(),
            device_use: device_use.as_ref(),
            counters: &counters,
        };
        let opinion = disk_opinion(&watched);
        let scans = scan_times::seen_scans(&watched);
        if let Some(examination) = &mut document.examination {
            examination.disk_opinion = opinion;
        }
        scan_times::predict(directory, document, &scans)?;
        let diagnosis = diagnose(&Evidence {
            document,
            trace: trace.as_ref(),
            device_use: device_use.as_ref(),
            counters: &counters,
        });
        Ok(Self {
            is_blind: trace.is_none() && document.layout.is_none() && !tells(&counters),
            trace,
            counters,
            diagnosis,
        })
    }

    /// Draws conclusions about a deployment from the runs of its members, each concluded by `of_member`.
    fn joined(
        directory: &RunDirectory,
        document: &mut RunDocument,
        of_member: &mut dyn FnMut(&mut Session) -> Result<Self>,
    ) -> Result<Self> {
        let runs = document.examination.as_ref().map(|e| e.member_runs.clone());
        let mut members = Vec::new();
        let mut is_blind = true;
        for run in runs.unwrap_or_default() {
            match open_member(directory, &run) {
                Ok(mut session) => {
                    let concluded = of_member(&mut session)?;
                    is_blind &= concluded.is_blind;
                    let verdict = concluded.with_input(&session, |input| verdict_of_member(&input));
                    members.push(ExaminedMember {
                        run,
                        document: session.document,
                        counters: concluded.counters,
                        diagnosis: concluded.diagnosis,
                        verdict,
                    });
                }
                Err(error) => limit(
                    document,
                    Limitation {
                        what: format!("the run of {} is missing", run.member),
                        why: message_of(&error),
                        remedy: "copy the whole folder of the run".into(),
                    },
                ),
            }
        }
        let mut counters = Counters::new(directory.counters()?);
        let diagnosis = deployment::conclude(document, &mut counters, members);
        Ok(Self {
            trace: None,
            is_blind: is_blind && !tells(&counters),
            counters,
            diagnosis,
        })
    }

    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    fn summary<'a>(&'a self, session: &'a Session) -> ExaminedSummary<'a> {
        let phase = session.document.phases.first();
        let observed_s = phase.map(|p| p.ended_ns.saturating_sub(p.started_ns) as f64 / 1e9);
        let trace = self.trace.as_ref();
        ExaminedSummary {
            verdict: self.with_input(session, |input| verdict(&input)),
            observed_s,
            answers: &self.diagnosis.answers,
            trace: trace.map(|trace| TraceSummary::of(phase, trace)),
        }
    }

    fn page(&self, session: &Session) -> Result<String> {
        self.with_input(session, |input| html(&input))
            .context(READING)
    }

    fn with_input<T>(&self, session: &Session, show: impl FnOnce(DoctorReportInput<'_>) -> T) -> T {
        let directory = &session.directory;
        let events = |each: &mut dyn FnMut(&IoEvent)| directory.for_each_event(each);
        let leaves = |each: &mut dyn FnMut(&LeafRecord)| directory.for_each_leaf(|_| true, each);
        show(DoctorReportInput {
            document: &session.document,
            diagnosis: &self.diagnosis,
            trace: self.trace.as_ref(),
            counters: &self.counters,
            events: &events,
            leaves: &leaves,
        })
    }

    /// Saves what was concluded, and prints the first screen, or JSON with everything, on stdout. What cannot be
    /// written, as on a full disk, is printed all the same.
    pub fn show(&self, session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
        let saved = session.save_with_page(&self.page(session)?);
        let document = &session.document;
        let json = |run_dir: &str| {
            output::print_json(&DoctorOutput {
                run: RunOutput::of("doctor", document, run_dir),
                examination: document.examination.as_ref(),
            })
        };
        let text = |width| Ok(self.with_input(session, |input| first_screen(&input, width)));
        ending::print(&session.directory, saved, args, progress, json, text)
    }
}

/// Returns whether a server or its host counted anything.
fn tells(counters: &Counters) -> bool {
    let told = [COUNTERS, "process", "diskstats", "cgroup"];
    let mut sources = counters.sources().into_iter();
    sources.any(|source| told.contains(&source) || source.starts_with(COUNTERS_OF_MEMBER))
}

/// Opens the run of a member, which lies in the folder of the deployment's run and nowhere else.
pub fn open_member(directory: &RunDirectory, run: &MemberRun) -> Result<Session> {
    if !MemberRun::is_folder(&run.folder) {
        let why = format!("{:?} is not the name of a member's folder", run.folder);
        return Err(Usage(why).into());
    }
    let (directory, document) = RunDirectory::open(&directory.path().join(&run.folder))?;
    if document.is_of_deployment() {
        return Err(Usage("it is the run of a deployment itself".into()).into());
    }
    Ok(Session::reopen(directory, document))
}

/// Returns whether the run was watched to its end. Something is counted in any that was, if not by the server, of its
/// process or host.
fn was_watched(document: &RunDocument) -> bool {
    let examination = document.examination.as_ref();
    examination.is_some_and(|examination| examination.cost.is_some())
}

fn without_counters() -> Limitation {
    Limitation {
        what: "nothing that was counted is known, so that findings are missing, and gains of others differ".into(),
        why: "server.parquet is not in the run's directory".into(),
        remedy: "copy the run again with all its files".into(),
    }
}

fn of_these_calls_alone(filters: &str) -> Limitation {
    Limitation {
        what: format!(
            "the trace recorded {filters}, and what is said of calls, bytes and waiting is of these alone: it may be \
             much more in all"
        ),
        why: "it was asked for no more (--sample, --min-latency)".into(),
        remedy: "trace again without these options".into(),
    }
}

/// Finds who used the disk, in a second pass over the events.
fn device_use(directory: &RunDirectory, trace: &TraceAnalysis) -> Result<DeviceUse> {
    let mut finder = DeviceUseFinder::new(trace);
    directory
        .for_each_event(|event| finder.push(event))
        .context(READING)?;
    Ok(finder.finish())
}

#[cfg(test)]
mod tests {
    use seekscope_run::CounterSample;

    use super::*;

    /// The host tells of the process of each member, whoever may log in to them.
    #[test]
    fn a_deployment_is_seen_through_the_runs_of_its_members() {
        let folder = tempfile::tempdir().unwrap();
        for (name, source, blind) in [("seen", "process", false), ("unseen", "client", true)] {
            let run = MemberRun {
                member: "db1:27017".into(),
                shard: None,
                folder: MemberRun::folder_of(1),
            };
            let mut document = RunDocument::begin("doctor", Vec::new());
            document.examination.get_or_insert_default().member_runs = vec![run.clone()];
            let path = folder.path().join(name);
            let directory = RunDirectory::create(&path, &document).unwrap();
            let of_member = RunDocument::begin("doctor", Vec::new());
            let member = RunDirectory::create(&path.join(&run.folder), &of_member).unwrap();
            let sample = CounterSample {
                t_ns: 1,
                source: source.into(),
                name: "cpu_ns".into(),
                value: 1.0,
            };
            member.counter_writer().unwrap().write(&[sample]).unwrap();
            member.finish_records().unwrap();
            // Its lock is free when the deployment is concluded.
            drop(member);
            directory.finish_records().unwrap();
            let conclusion = Conclusion::of(&directory, &mut document).unwrap();
            assert_eq!(conclusion.is_blind, blind, "{name}");
        }
    }

    #[test]
    fn what_told_nothing_is_told_from_what_told_little() {
        let folder = tempfile::tempdir().unwrap();
        for (name, sources, blind) in [
            ("nothing", &["client", "pressure"][..], true),
            ("little", &["client", "serverStatus"][..], false),
        ] {
            let mut document = RunDocument::begin("doctor", Vec::new());
            let directory = RunDirectory::create(&folder.path().join(name), &document).unwrap();
            let samples = sources.iter().map(|source| CounterSample {
                t_ns: 1,
                source: (*source).into(),
                name: "cpu_ns".into(),
                value: 1.0,
            });
            let samples: Vec<CounterSample> = samples.collect();
            directory.counter_writer().unwrap().write(&samples).unwrap();
            directory.finish_records().unwrap();
            let conclusion = Conclusion::of(&directory, &mut document).unwrap();
            assert_eq!(conclusion.is_blind, blind, "{name}");
        }
    }
}
