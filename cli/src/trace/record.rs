//! Recording, from the command line to a finished run.

use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{
    CacheState, Disk, HostFacts, Limitation, Phase, ProcessIo, TraceFacts, monotonic_ns,
};
use seekscope_server::ProcFs;
use seekscope_server::process::io_between;
use seekscope_trace::{EventSink, LiveSource, Recording, TraceOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::flight_recorder::{FlightRecorder, FlightState};
use super::live::{Tee, TraceView, new_window};
use super::traced::Traced;
use super::{choices, counting, show};
use crate::args::RecordArgs;
use crate::ending;
use crate::exit::{BrokenOff, CommandFailed, Inconsistent, Interrupted};
use crate::interruption::Interruption;
use crate::live_terminal::LiveTerminal;
use crate::progress::Progress;
use crate::session::Session;

/// How soon the end of the processes or of the time is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Minimum free space: a trace must not fill the disk that it is about.
const FREE_BYTES_MIN: u64 = 512 << 20;
const WHAT: &str = "trace";

/// Why a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The time was up, the command ended, or no time was set and the processes ended or Ctrl-C came.
    AsAsked,
    /// A signal came before the time was up.
    Interrupted(&'static str),
    /// Recording could not go on, or what was recorded ended before the time was up.
    Early(String),
    /// The command that was traced failed by itself.
    CommandFailed(ExitStatus),
}

/// Runs the command to its end; the run directory is complete either way.
pub async fn run(args: &RecordArgs, arguments: Vec<String>) -> Result<()> {
    let interruption = Interruption::listen();
    choices::check(args)?;
    let progress = Progress::new(args.output.quiet || args.mode.live);
    let mut session = Session::begin(WHAT, arguments, args.out.as_deref())?;
    session.document.host = Some(HostFacts::read(Path::new("/")));
    session.save()?;
    let recorded = record(args, &mut session, &interruption, progress).await;
    let worked = recorded.and_then(|ended| match (ended, session.unaccounted()) {
        (_, Some(why)) => Err(Inconsistent(why).into()),
        (Ended::Interrupted(signal), None) => Err(Interrupted(signal).into()),
        (Ended::Early(why), None) => Err(BrokenOff(why).into()),
        (Ended::CommandFailed(status), None) => Err(CommandFailed(status).into()),
        (Ended::AsAsked, None) => Ok(()),
    });
    // Also after a live view, which had the terminal until now.
    let progress = Progress::new(args.output.quiet);
    ending::end(&mut session, worked, progress, |session| {
        show(session, &args.output, progress)
    })
}

async fn record(
    args: &RecordArgs,
    session: &mut Session,
    interruption: &Interruption,
    progress: Progress,
) -> Result<Ended> {
    let mut traced = tokio::select! {
        biased;
        signal = interruption.first() => return Err(Interrupted(signal).into()),
        traced = Traced::find(&args.who, session, progress) => traced?,
    };
    let mut options = TraceOptions::of(traced.followed.clone());
    choices::apply(args, &mut options);
    let source = LiveSource::attach(&options)?;
    progress.say(announcement(args, &traced, &source));
    note_uncovered(session, args, &source);
    let before = counters(&traced);
    let mut phase = phase_of(&traced);
    session.open_phase(&phase)?;
    let (ended, mut facts) = if args.mode.aggregate {
        session.limit(Limitation {
            what: "latencies are not exact: each stands for a range whose upper end is \
                 twice its lower end"
                .into(),
            why:
                "--aggregate counts calls by such ranges in the kernel, and the upper end is shown"
                    .into(),
            remedy: "without --aggregate, each call is timed".into(),
        });
        counting::count(args, session, interruption, &mut traced, source).await?
    } else {
        follow(args, session, interruption, &mut traced, source, progress).await?
    };
    phase.ended_ns = monotonic_ns();
    phase.process_io = before
        .zip(counters(&traced))
        .map(|(before, after)| io_between(&before, &after));
    facts.ended_early = traced.ended_early();
    let limitations = traced.limitations_of_ends(args.duration);
    limitations.into_iter().for_each(|l| session.limit(l));
    let ended = traced.with_ends(ended, args.duration);
    phase.trace = Some(facts.with_share_of(phase.process_io, phase.duration_ns()));
    session.document.phases = vec![phase];
    traced.learn_names(session).await;
    if let Some(command) = &mut traced.command {
        // Ends it if the time was up first.
        command.end();
        if let (Ended::AsAsked, Some(status)) = (&ended, command.failed()) {
            return Ok(Ended::CommandFailed(status));
        }
    }
    Ok(ended)
}

/// Returns the sums of the kernel's counters of the processes; `None` if there are none of all that is followed.
fn counters(traced: &Traced) -> Option<ProcessIo> {
    let all = traced.counted().into_iter();
    let all = all.map(|pid| ProcFs::host().io(pid).ok());
    all.reduce(|sum, one| Some(sum?.plus(&one?)))?
}

fn phase_of(traced: &Traced) -> Phase {
    Phase {
        name: WHAT.into(),
        activity: format!("the I/O of {}", traced.name),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "a trace does not change what it observes".into(),
        },
        started_ns: monotonic_ns(),
        ended_ns: 0,
        index_build: None,
        trace: None,
        process_io: None,
    }
}

/// Returns an announcement of what will be done.
fn announcement(args: &RecordArgs, traced: &Traced, source: &LiveSource) -> String {
    let until = match args.duration {
        Some(time) => format!("for {time:?}; Ctrl-C ends it early"),
        None if traced.command.is_some() => "until it ends, or Ctrl-C".into(),
        None => "until Ctrl-C".into(),
    };
    let mut text = format!(
        "Recording the I/O of {} {until}. Nothing is changed in it.\n  tracing mechanism: {}",
        traced.name,
        source.way_in()
    );
    for group in source.coverage() {
        let covered = if group.covered { "" } else { "not covered: " };
        text.push_str(&format!("\n  {}: {covered}{}", group.group, group.how));
    }
    text
}

/// Records in the run what was asked for and cannot be traced on this kernel.
fn note_uncovered(session: &mut Session, args: &RecordArgs, source: &LiveSource) {
    for group in source.refused() {
        session.limit(Limitation {
            what: format!("{} were not traced", group.group),
            why: group.how,
            remedy: if args.what.op.is_empty() {
                String::new()
            } else {
                "leave it out of --op".into()
            },
        });
    }
}

/// Records events until something ends it.
async fn follow(
    args: &RecordArgs,
    session: &mut Session,
    interruption: &Interruption,
    traced: &mut Traced,
    source: LiveSource,
    progress: Progress,
) -> Result<(Ended, TraceFacts)> {
    let mut sink: Box<dyn EventSink + Send> = Box::new(session.directory.io_writer()?);
    let mut flight = None;
    if let Some(span) = args.mode.ring {
        let recorder =
            FlightRecorder::new(sink, span, args.mode.ring_memory, args.mode.dump_latency);
        flight = Some(recorder.state());
        sink = Box::new(recorder);
    }
    let mut view = None;
    if args.mode.live {
        let window = new_window(session.document.device.clone());
        let name = session.naming();
        sink = Box::new(Tee::new(sink, Arc::clone(&window), Box::new(name)));
        view = Some(LiveTerminal::start(TraceView::new(window))?);
    }
    let recording = Recording::start(Box::new(source), sink);
    if let Some(command) = &traced.command {
        command.go_on()?;
    }
    let step = progress.step("recording");
    let waited = wait(
        args,
        session,
        interruption,
        traced,
        &recording,
        flight.as_deref(),
    )
    .await;
    drop(step);
    drop(view);
    if let Some(flight) = &flight {
        flight.dump.store(true, Ordering::Relaxed);
    }
    let (mut facts, _sink) = recording.stop()?;
    if let Some(flight) = &flight {
        note_flight(session, &mut facts, flight);
    }
    Ok((waited?, facts))
}

/// Waits for whatever comes first: the time, the end of the processes, a signal, or a failure.
async fn wait(
    args: &RecordArgs,
    session: &Session,
    interruption: &Interruption,
    traced: &mut Traced,
    recording: &Recording,
    flight: Option<&FlightState>,
) -> Result<Ended> {
    // Without a handler the signal would end this process.
    let mut dump = flight
        .map(|_| signal(SignalKind::user_defined1()))
        .transpose()?;
    let asked = async {
        match &mut dump {
            Some(dump) => loop {
                dump.recv().await;
                if let Some(flight) = flight {
                    flight.dump.store(true, Ordering::Relaxed);
                }
            },
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        signal = interruption.first() => Ok(by_signal(args, traced, signal)),
        ended = until_over(args, session, traced, || recording.has_failed()) => Ok(ended),
        () = asked => Ok(Ended::AsAsked),
    }
}

/// Returns how a signal ends the recording: a trace that has no end of its own, neither a duration nor that of a command,
/// ends that way as asked.
pub fn by_signal(args: &RecordArgs, traced: &Traced, signal: &'static str) -> Ended {
    match (args.duration, &traced.command) {
        (None, None) => Ended::AsAsked,
        _ => Ended::Interrupted(signal),
    }
}

/// Waits until the time is up, the processes have ended, the disk is nearly full, or `failed` returns true. Notes which
/// processes end before.
pub async fn until_over(
    args: &RecordArgs,
    session: &Session,
    traced: &mut Traced,
    failed: impl Fn() -> bool,
) -> Ended {
    let started = tokio::time::Instant::now();
    loop {
        let left = args
            .duration
            .map(|time| time.saturating_sub(started.elapsed()));
        tokio::time::sleep(left.map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN))).await;
        // The others are traced on.
        traced.note_ends(started.elapsed());
        let command_ended = traced.command.as_mut().is_some_and(|c| c.ended().is_some());
        if failed() || left.is_some_and(|left| left.is_zero()) || command_ended {
            return Ended::AsAsked;
        }
        if !traced.is_alive() {
            let (who, after) = (traced.who(), started.elapsed());
            // A command has its own end.
            let asked = args.duration.filter(|_| traced.command.is_none());
            return asked.map_or(Ended::AsAsked, |asked| {
                Ended::Early(BrokenOff::ended_early(who, after, Some(asked)).0)
            });
        }
        if let Some(why) = disk_is_full(session.directory.path()) {
            return Ended::Early(why);
        }
    }
}

/// Returns why recording cannot go on, once the disk that holds the run is nearly full.
pub fn disk_is_full(run: &Path) -> Option<String> {
    let space = rustix::fs::statvfs(run).ok()?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    (free_bytes < FREE_BYTES_MIN).then(|| {
        format!(
            "the recording was ended because less than {} MiB are free on the disk that holds {}. \
             Choose another place with --out, or record less (--aggregate, --sample, \
             --min-latency)",
            FREE_BYTES_MIN >> 20,
            run.display()
        )
    })
}

/// Records a flight recorder's displaced events: they were seen and handed over, but not written.
fn note_flight(session: &mut Session, facts: &mut TraceFacts, flight: &FlightState) {
    facts.overwritten = flight.overwritten.load(Ordering::Relaxed);
    facts.written = facts.written.saturating_sub(facts.overwritten);
    let too_young = flight.too_young.load(Ordering::Relaxed);
    if too_young > 0 {
        session.limit(Limitation {
            what: "the flight recorder held less than the requested time".into(),
            why: format!("{too_young} events were dropped too early because its memory was full"),
            remedy: "give it more memory with --ring-memory".into(),
        });
    }
}
