//! Watches the server: everything in parallel, on one clock, for the time asked for.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::units::nanoseconds;
use seekscope_run::{DeviceFacts, HostSettings, Limitation, MemberRecord, MemberState};
use seekscope_server::examination::{Examination, ExaminationOptions};
use seekscope_server::{ProcFs, Server};
use seekscope_stats::SplitMix64;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::contract::{may_trace, may_trace_primary};
use super::cost;
use super::counters;
use super::guard::{Guard, Harm};
use super::history;
use super::leaf_order::LeafWalk;
use super::subject::Subject;
use super::{Asked, Builds, leaf_order};
use crate::doctor::measurement::{Measurement, attach, observed};
use crate::progress::Progress;
use crate::session::Session;
use crate::trace::disk_is_full;

/// The limitation of a server that ended while it was watched.
pub const SERVER_GONE: &str = "the server ended while it was watched";
/// Time that starting and concluding may take in addition to the time asked for.
pub const EXTRA_MAX: Duration = Duration::from_secs(20);
/// Time to watch before we start anything, as the guard's baseline.
const BASELINE: Duration = Duration::from_secs(2);
/// How often to look at running operations.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time limit for the walk over the data files before an index is built for this run.
const WALK_MAX: Duration = Duration::from_secs(10);
/// How often the guard looks.
pub(super) const GUARD_EVERY: Duration = Duration::from_secs(1);
/// Time for one more sample of the counters once the server has gone; they are read every second.
const LAST_SAMPLE: Duration = Duration::from_millis(1_200);

/// What was gathered so far. Kept outside of the future that a signal drops.
pub struct Gathering {
    examination: Option<Examination>,
    walk: Option<LeafWalk>,
    guard: Guard,
    ended_early: Option<String>,
    /// The time was up and no signal came.
    complete: bool,
}

impl Gathering {
    /// Returns an empty gathering; nothing has begun yet.
    pub fn new(session: &Session) -> Self {
        let device = session.document.device.as_ref();
        Self {
            examination: None,
            walk: None,
            guard: Guard::new(device.map(DeviceFacts::counted_device)),
            ended_early: None,
            complete: false,
        }
    }

    /// Watches for the time asked for, or until the indexes are built.
    pub async fn watch(
        &mut self,
        session: &mut Session,
        asked: &Asked,
        subject: &Subject,
        builds: Option<&mut Builds>,
        progress: Progress,
    ) -> Result<()> {
        // A server that is lost meanwhile can be asked for none of them.
        note_host_settings(session, subject);
        let writer = Arc::new(Mutex::new(session.directory.counter_writer()?));
        let device = session.document.device.as_ref();
        let device = device.map(|device| device.counted_device().to_string());
        let counted =
            counters::of_examined(&subject.server, subject.pid, device.as_deref(), &writer);
        let moments = Moments::default();
        let questions = async {
            // The guard's baseline is taken before any queries.
            moments.calm.notified().await;
            let server = &subject.server;
            questions(&mut self.examination, asked, server, &writer, &moments).await
        };
        let observed = async {
            let watched = Watched {
                session,
                guard: &mut self.guard,
                walk: &mut self.walk,
                ended_early: &mut self.ended_early,
                moments: &moments,
            };
            watched.observe(asked, subject, builds, progress).await
        };
        tokio::select! {
            failed = counted => match failed? {},
            failed = questions => match failed? {},
            observed = observed => observed?,
        }
        let record = session.document.examination.as_ref();
        self.complete = record.is_none_or(|record| record.server_lost_after_ns.is_none());
        Ok(())
    }

    /// Ends everything and stores what was gathered in the session, even after a signal.
    pub async fn end(mut self, session: &mut Session, subject: &Subject) -> Result<()> {
        session.close_phase()?;
        let mut commands = 0;
        match (self.examination.take(), self.complete) {
            (Some(examination), true) => {
                commands = keep_answers(session, examination).await;
            }
            // After Ctrl-C, don't make the user wait for answers.
            (Some(examination), false) => {
                let members = std::iter::once(examination.examined()).chain(examination.others());
                let members = members.cloned().collect();
                keep_members(session, members);
                let record = session.document.examination.get_or_insert_default();
                record.deployment = examination.deployment();
            }
            (None, complete) => {
                if complete {
                    session.limit(Limitation {
                        what: "the server's settings and collections are not known".into(),
                        why: "it did not answer within the time".into(),
                        remedy: "ask for more time with --for".into(),
                    });
                }
            }
        }
        if let Some(walk) = self.walk.take() {
            leaf_order::keep(session, walk.finish());
        }
        if self.complete {
            note_host_settings(session, subject);
        }
        if let (true, Some(data)) = (self.complete, &subject.data) {
            history::read(session, data).await?;
        }
        let cost = cost::cost(&session.document, commands, self.ended_early);
        session.document.examination.get_or_insert_default().cost = Some(cost);
        session.save()
    }
}

/// Records this host's settings if the server runs here.
fn note_host_settings(session: &mut Session, subject: &Subject) {
    let document = &mut session.document;
    if let (Some(data), Some(device), Some(host)) =
        (&subject.data, &document.device, &document.host)
    {
        let settings = HostSettings::read(Path::new("/"), subject.pid, data, device, host);
        document.examination.get_or_insert_default().host = Some(settings);
    }
}

/// Asks again for what is compared with the beginning, and records all answers. Returns the number of commands
/// that were sent.
pub async fn keep_answers(session: &mut Session, examination: Examination) -> u64 {
    let examined = examination.finish().await;
    for limitation in examined.limitations {
        session.limit(limitation);
    }
    keep_members(session, examined.members);
    let examination = session.document.examination.get_or_insert_default();
    examination.deployment = examined.deployment;
    examination.cluster = examined.cluster;
    examined.commands
}

fn keep_members(session: &mut Session, members: Vec<MemberRecord>) {
    session.document.examination.get_or_insert_default().members = members;
}

/// Asks the server everything once, then watches its operations; counts of other members run in parallel.
pub async fn questions(
    slot: &mut Option<Examination>,
    asked: &Asked,
    server: &Server,
    writer: &counters::SharedWriter,
    moments: &Moments,
) -> Result<std::convert::Infallible> {
    let options = ExaminationOptions {
        collections: asked.namespaces.clone(),
        others: asked.others.clone(),
        ..ExaminationOptions::default()
    };
    let examination = Examination::begin(server, &ProcFs::host(), &options).await;
    let others = counters::of_others(examination.samplers_of_others(), writer);
    let examination = slot.insert(examination);
    moments.told.notify_one();
    let looks = async {
        let mut random = SplitMix64::new(u64::from(std::process::id()));
        loop {
            examination.look().await;
            let change = examination.examined().role_change;
            if change.is_some_and(|change| change.state == MemberState::Primary) {
                moments.is_primary.store(true, Ordering::Relaxed);
            }
            // At no regular times: they could be those between the queries of a job that runs every second.
            sleep(LOOK_EVERY.mul_f64(0.5 + random.unit_f64())).await;
        }
    };
    tokio::select! {
        failed = others => failed,
        () = looks => unreachable!("looking never ends"),
    }
}

fn gone(after: Duration) -> Limitation {
    Limitation {
        what: SERVER_GONE.into(),
        why: format!("its process had gone, or it answered nobody, after {:.0} s", after.as_secs_f64()),
        remedy: "look into the server's log and the kernel's (out of memory?), and ask again when it is up".into(),
    }
}

/// State used during the observation.
struct Watched<'a> {
    session: &'a mut Session,
    guard: &'a mut Guard,
    walk: &'a mut Option<LeafWalk>,
    ended_early: &'a mut Option<String>,
    moments: &'a Moments,
}

/// Events that other tasks wait for.
#[derive(Debug, Default)]
pub struct Moments {
    /// The baseline has been taken.
    calm: Notify,
    /// The server has answered the initial queries. Some count documents by reading them all, which must not
    /// warm up an index build.
    pub told: Notify,
    /// The data files were walked, or it took too long.
    walked: Notify,
    /// The server has become the primary of its set meanwhile.
    is_primary: AtomicBool,
}

impl Watched<'_> {
    /// Starts with our counters alone, then runs everything, until the time is up.
    async fn observe(
        mut self,
        asked: &Asked,
        subject: &Subject,
        builds: Option<&mut Builds>,
        progress: Progress,
    ) -> Result<()> {
        let begun = Instant::now();
        {
            let _step = progress.step("watching the server before anything is traced");
            let baseline = BASELINE.min(asked.args.duration() / 4);
            self.guard.baseline(&subject.server, baseline).await;
            self.moments.calm.notify_one();
        }
        *self.walk = LeafWalk::begin(self.session, subject, asked);
        let traced = self.is_to_be_traced(asked, subject);
        let phase = match builds.as_deref() {
            Some(builds) => {
                let (activity, namespace) = builds.activity();
                observed(activity, namespace, builds.disk())
            }
            None => asked.own_work(),
        };
        let pid = subject.pid;
        let process = pid.and_then(|pid| ProcFs::host().identity(pid).ok());
        // On another thread: counters and queries go on meanwhile.
        let attached = spawn_blocking(move || pid.filter(|_| traced).map(attach)).await?;
        let mut measurement = Some(Measurement::begin(self.session, pid, attached, phase)?);
        // The time asked for is that of the trace; the baseline comes on top.
        let started = Instant::now();
        let step = builds.is_none().then(|| {
            progress.counted(
                "watching what the server does by itself, seconds",
                asked.args.duration().as_secs(),
            )
        });
        let moments = self.moments;
        let over = async {
            let Some(builds) = builds else {
                tokio::time::sleep_until(started + asked.args.duration()).await;
                return Ok(());
            };
            moments.told.notified().await;
            moments.walked.notified().await;
            builds.run(&subject.server, progress).await
        };
        tokio::pin!(over);
        let mut ticks = interval_at(started + GUARD_EVERY, GUARD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let done = loop {
            tokio::select! {
                done = &mut over => break done,
                _ = ticks.tick() => {}
            }
            if let Some(step) = &step {
                step.at(started.elapsed().as_secs());
            }
            let has_ended = |process| !ProcFs::host().is_alive(process);
            if process.as_ref().is_some_and(has_ended) || self.guard.finds_nobody() {
                let after = started.elapsed();
                // Its control group counts how it ended.
                tokio::time::sleep(LAST_SAMPLE).await;
                let record = self.session.document.examination.get_or_insert_default();
                record.server_lost_after_ns = Some(nanoseconds(after));
                self.session.limit(gone(after));
                break Ok(());
            }
            let walks = self.walk.as_ref().is_some_and(LeafWalk::is_under_way);
            if !walks || started.elapsed() > WALK_MAX {
                moments.walked.notify_one();
            }
            let events = measurement.as_ref().and_then(Measurement::events);
            self.guard.look(&subject.server, events).await;
            self.heed_guard(&mut measurement, begun, progress);
            if moments.is_primary.load(Ordering::Relaxed) && !may_trace_primary(asked) {
                self.spare_primary(&mut measurement, begun, progress);
            }
        };
        self.note_silence(started);
        drop(measurement);
        if let Some(walk) = self.walk.as_ref() {
            walk.stop();
        }
        self.session.close_phase()?;
        done
    }

    /// Records the longest time since `started` in which the server answered nobody.
    fn note_silence(&mut self, started: Instant) {
        let silence = self.guard.silence(started, Instant::now());
        let record = self.session.document.examination.get_or_insert_default();
        record.silence = silence;
    }

    /// Returns whether to trace; if it is not permitted, adds a limitation.
    fn is_to_be_traced(&mut self, asked: &Asked, subject: &Subject) -> bool {
        let allowed = may_trace(asked, subject);
        if let Err((why, remedy)) = &allowed {
            self.session.limit(Limitation {
                what: "the server's reads and writes were not traced: no access patterns, latencies or figures per file".into(),
                why: why.clone(),
                remedy: remedy.clone(),
            });
        }
        allowed.is_ok()
    }

    /// Stops what does harm: first the reading of data files, then the trace. A trace that broke off ends both.
    fn heed_guard(
        &mut self,
        measurement: &mut Option<Measurement>,
        begun: Instant,
        progress: Progress,
    ) {
        let failed = measurement.as_ref().is_some_and(Measurement::has_failed);
        let traced = is_traced(measurement.as_ref());
        let why = match self.guard.judge() {
            Some(Harm::Disk(why)) if self.stop_walk(&why, traced, progress) => None,
            Some(Harm::Disk(why) | Harm::Cpu(why)) => Some(why),
            None => disk_is_full(self.session.directory.path()),
        };
        if why.is_some() || failed {
            if let Some(walk) = self.walk.as_ref() {
                walk.stop();
            }
            *measurement = None;
        }
        if let (Some(why), true, None) = (why, traced, &self.ended_early) {
            self.tell_end(&why, begun.elapsed().as_secs(), progress);
        }
    }

    /// Says that the trace has ended and the rest goes on.
    fn tell_end(&mut self, why: &str, after_s: u64, progress: Progress) {
        progress.say(format!("Tracing was stopped: {why}. Counters go on."));
        *self.ended_early = Some(format!("tracing was stopped after {after_s} s: {why}"));
    }

    /// Ends the trace of a server that has become the primary, which others depend on.
    fn spare_primary(
        &mut self,
        measurement: &mut Option<Measurement>,
        begun: Instant,
        progress: Progress,
    ) {
        if !is_traced(measurement.as_ref()) || self.ended_early.is_some() {
            return;
        }
        *measurement = None;
        let why = "it became the primary, which others depend on";
        let after_s = begun.elapsed().as_secs();
        self.tell_end(why, after_s, progress);
        self.session.limit(Limitation {
            what: format!("the trace ends after {after_s} s"),
            why: why.into(),
            remedy: "ask again, or permit tracing the primary with --trace-primary".into(),
        });
    }

    /// Stops reading data files, which causes nearly all of our disk traffic. Returns false if none were being
    /// read.
    fn stop_walk(&mut self, why: &str, traced: bool, progress: Progress) -> bool {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.is_under_way()) else {
            return false;
        };
        walk.stop_for(why.to_string());
        let rest = if traced {
            "Tracing goes"
        } else {
            "Counters go"
        };
        progress.say(format!(
            "Reading the internal pages of the data files was stopped: {why}. {rest} on."
        ));
        true
    }
}

fn is_traced(measurement: Option<&Measurement>) -> bool {
    measurement.is_some_and(|measurement| measurement.events().is_some())
}
