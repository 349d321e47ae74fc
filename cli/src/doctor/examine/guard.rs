//! Stops the examination before it does harm: compares the host's I/O pressure and the server's response times
//! with those before it began, and checks whether it can be the cause.
//!
//! A sick server has bad seconds without us, and those are what we came to see. So a rise alone ends nothing:
//! we must have been able to cause it, by our share of the disk's traffic or of the CPUs.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_run::units::nanoseconds;
use seekscope_run::{IoPressure, ProcessDeviceIo, Silence};
use seekscope_server::{ProcFs, Server};
use tokio::time::{Instant, sleep, timeout};

/// Number of CPUs that tracing and all other work of ours may take, programs in the kernel included.
pub const CPU_BUDGET: f64 = 0.3;
/// Consecutive looks needed for a decision: one moment is not a trend.
const LOOKS: usize = 5;
/// I/O pressure counts as risen if it exceeds the baseline by this much and is at least `PRESSURE_MIN`.
const PRESSURE_RISE: f64 = 0.25;
const PRESSURE_MIN: f64 = 0.5;
/// Our share of the disk's bytes from which we may be the cause of pressure.
const IO_SHARE: f64 = 0.1;
/// Response times count as risen if both the ratio and the difference exceed these limits.
const PING_TIMES: f64 = 5.0;
const PING_RISE_S: f64 = 0.02;
/// Number of CPUs used by us from which we may be the cause of slow responses.
const CPUS_FELT: f64 = 0.05;
/// Cost of a traced call to the calling thread, s: a few hundred ns for the programs at its start and end, and
/// as much for the record.
const EVENT_COST_S: f64 = 1.5e-6;
/// Limit at which slow responses are capped.
const PATIENCE: Duration = Duration::from_secs(1);
const SECTOR_BYTES: u64 = 512;
/// Failed pings after which the server is gone: one that restarts is back sooner, or is another one.
const GONE_AFTER: usize = 10;
/// Shortest time without an answer that is worth telling.
const SILENCE_MIN: Duration = Duration::from_secs(3);

/// Watches the host and the server for harm that we may have caused.
#[derive(Debug)]
pub struct Guard {
    /// `major:minor` of the disk under the data.
    device: Option<String>,
    baseline: Vec<Level>,
    recent: VecDeque<Level>,
    last: Option<Counts>,
    /// Consecutive pings that failed at once: no server is there.
    refused: usize,
    /// When the first of the latest pings in a row was sent that got no answer.
    silent_since: Option<Instant>,
    /// Beginning and length of the longest time without an answer.
    longest_silence: Option<(Instant, Duration)>,
}

/// What came of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ping {
    Answered(Duration),
    /// There was no answer within [`PATIENCE`].
    Late,
    /// It failed at once.
    Refused,
}

/// What of ours may harm the server, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// Our reads and writes of the disk, nearly all of which walk the data files.
    Disk(String),
    /// The CPU time of tracing and of everything else of ours.
    Cpu(String),
}

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Level {
    /// Share of the time in which tasks waited for I/O.
    pressure: Option<f64>,
    ping_s: Option<f64>,
    own_cpus: f64,
    /// Our share of the disk's bytes.
    own_io_share: f64,
}

/// The counters whose differences make a level.
#[derive(Debug, Clone, Copy)]
struct Counts {
    at: Instant,
    pressure: Option<IoPressure>,
    cpu_ns: u64,
    own_bytes: u64,
    /// `None` where the kernel counts nothing for it (ZFS, overlays).
    device_bytes: Option<u64>,
    events: u64,
}

impl Guard {
    /// Creates a guard; for `device` see [`seekscope_run::DeviceFacts::device`].
    pub fn new(device: Option<&str>) -> Self {
        Self {
            device: device.map(String::from),
            baseline: Vec::new(),
            recent: VecDeque::new(),
            last: None,
            refused: 0,
            silent_since: None,
            longest_silence: None,
        }
    }

    /// Measures the normal state, without us, for this long.
    pub async fn baseline(&mut self, server: &Server, time: Duration) {
        const BASELINE_LOOKS: u32 = 4;
        self.look(server, None).await;
        for _ in 0..BASELINE_LOOKS {
            sleep(time / BASELINE_LOOKS).await;
            self.look(server, None).await;
        }
        self.baseline = self.recent.drain(..).collect();
    }

    /// Takes a reading; `events` is the number traced so far.
    pub async fn look(&mut self, server: &Server, events: Option<u64>) {
        let asked = Instant::now();
        let ping = ping(server).await;
        self.note(asked, ping);
        let ping_s = match ping {
            Ping::Answered(time) => Some(time.as_secs_f64()),
            Ping::Late => Some(PATIENCE.as_secs_f64()),
            Ping::Refused => None,
        };
        let now = self.counts(events.unwrap_or(0));
        if let Some(last) = self.last.replace(now) {
            self.recent.push_back(level(&last, &now, ping_s));
            if self.recent.len() > LOOKS {
                self.recent.pop_front();
            }
        }
    }

    fn note(&mut self, asked: Instant, ping: Ping) {
        self.refused = match ping {
            Ping::Refused => self.refused + 1,
            _ => 0,
        };
        match ping {
            Ping::Answered(time) => {
                self.end_silence(asked + time);
                self.silent_since = None;
            }
            _ => {
                self.silent_since.get_or_insert(asked);
            }
        }
    }

    fn end_silence(&mut self, at: Instant) {
        let Some(since) = self.silent_since else {
            return;
        };
        let silence = at.saturating_duration_since(since);
        if self
            .longest_silence
            .is_none_or(|(_, longest)| silence > longest)
        {
            self.longest_silence = Some((since, silence));
        }
    }

    /// Returns the longest time in which the server did not answer, of the watch that began at `started`, up to `now`;
    /// `None` if it was shorter than seconds.
    pub fn silence(&mut self, started: Instant, now: Instant) -> Option<Silence> {
        self.end_silence(now);
        let (since, silence) = self.longest_silence?;
        (silence >= SILENCE_MIN).then(|| Silence {
            after_ns: nanoseconds(since.saturating_duration_since(started)),
            duration_ns: nanoseconds(silence),
        })
    }

    /// Returns whether the server has not answered for several seconds. One that is only slow is still there.
    pub fn finds_nobody(&self) -> bool {
        self.refused >= GONE_AFTER
    }

    /// Returns the reason to stop, if there is one. Later looks show the effect of what was stopped.
    pub fn judge(&mut self) -> Option<Harm> {
        let recent: Vec<Level> = self.recent.iter().copied().collect();
        let harm = (recent.len() == LOOKS).then(|| judge(&self.baseline, &recent))?;
        if harm.is_some() {
            self.recent.clear();
        }
        harm
    }

    fn counts(&self, events: u64) -> Counts {
        let root = Path::new("/");
        let own = ProcessDeviceIo::read(root);
        let device = self.device.as_deref().and_then(device_bytes);
        Counts {
            at: Instant::now(),
            pressure: IoPressure::read(root),
            cpu_ns: ProcFs::host().cpu_ns(std::process::id()).unwrap_or(0),
            own_bytes: own.map_or(0, |own| own.read_bytes.saturating_add(own.write_bytes)),
            device_bytes: device,
            events,
        }
    }
}

async fn ping(server: &Server) -> Ping {
    let asked = Instant::now();
    let ping = server.command("admin", doc! { "ping": 1 });
    match timeout(PATIENCE, ping).await {
        Ok(Ok(_)) => Ping::Answered(asked.elapsed()),
        Ok(Err(_)) => Ping::Refused,
        Err(_) => Ping::Late,
    }
}

/// Returns the bytes read and written since boot (Documentation/block/stat.rst: the third and seventh field, in
/// sectors).
fn device_bytes(device: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/dev/block/{device}/stat")).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let sectors = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let sectors = sectors(2)?.saturating_add(sectors(6)?);
    Some(sectors.saturating_mul(SECTOR_BYTES))
}

fn level(last: &Counts, now: &Counts, ping_s: Option<f64>) -> Level {
    let elapsed = now.at.saturating_duration_since(last.at);
    let elapsed_s = elapsed.as_secs_f64().max(1e-3);
    let own_bytes = now.own_bytes.saturating_sub(last.own_bytes) as f64;
    let device_bytes = now.device_bytes.zip(last.device_bytes);
    let own_io_share = device_bytes.map_or(0.0, |(now, last)| {
        let device_bytes = now.saturating_sub(last) as f64;
        (own_bytes / device_bytes.max(own_bytes).max(1.0)).min(1.0)
    });
    let cpu_s = now.cpu_ns.saturating_sub(last.cpu_ns) as f64 / 1e9;
    let events_s = now.events.saturating_sub(last.events) as f64 * EVENT_COST_S;
    let pressures = last.pressure.zip(now.pressure);
    Level {
        pressure: pressures.map(|(last, now)| now.share_since(&last, elapsed)),
        ping_s,
        own_cpus: (cpu_s + events_s) / elapsed_s,
        own_io_share,
    }
}

fn judge(before: &[Level], recent: &[Level]) -> Option<Harm> {
    let cpus = mean(recent, |level| Some(level.own_cpus)).unwrap_or(0.0);
    if cpus > CPU_BUDGET {
        return Some(Harm::Cpu(format!(
            "it took {cpus:.2} CPUs, and its budget is {CPU_BUDGET:.2}"
        )));
    }
    let io_share = mean(recent, |level| Some(level.own_io_share)).unwrap_or(0.0);
    let pressure_before = mean(before, |level| level.pressure).unwrap_or(0.0);
    let pressure = mean(recent, |level| level.pressure).unwrap_or(0.0);
    if pressure > (pressure_before + PRESSURE_RISE).max(PRESSURE_MIN) && io_share > IO_SHARE {
        return Some(Harm::Disk(format!(
            "tasks of this host waited for I/O {:.0} % of the time, {:.0} % before, and {:.0} % of the disk's traffic was ours",
            pressure * 100.0,
            pressure_before * 100.0,
            io_share * 100.0
        )));
    }
    let (ping_before, ping) = (
        mean(before, |level| level.ping_s)?,
        mean(recent, |level| level.ping_s)?,
    );
    let late = ping > ping_before * PING_TIMES && ping > ping_before + PING_RISE_S;
    (late && cpus > CPUS_FELT).then(|| {
        Harm::Cpu(format!(
            "the server answered a ping after {:.1} ms, {:.1} ms before, and {cpus:.2} CPUs were ours",
            ping * 1e3,
            ping_before * 1e3
        ))
    })
}

fn mean(levels: &[Level], of: impl Fn(&Level) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = levels.iter().filter_map(of).collect();
    let count = values.len();
    (count > 0).then(|| values.iter().sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Level = Level {
        pressure: Some(0.1),
        ping_s: Some(0.001),
        own_cpus: 0.02,
        own_io_share: 0.01,
    };

    #[test]
    fn a_bad_time_of_the_server_is_not_ours() {
        let bad = Level {
            pressure: Some(0.95),
            ping_s: Some(0.4),
            ..CALM
        };
        assert_eq!(judge(&[CALM; 4], &[bad; LOOKS]), None);
        let ours = |level: Level| judge(&[CALM; 4], &[level; LOOKS]).unwrap();
        let reading = Level {
            own_io_share: 0.5,
            ..bad
        };
        assert!(
            matches!(ours(reading), Harm::Disk(why) if why.contains("95 % of the time, 10 % before"))
        );
        let computing = Level {
            own_cpus: 0.1,
            ..bad
        };
        assert!(
            matches!(ours(computing), Harm::Cpu(why) if why.contains("400.0 ms, 1.0 ms before"))
        );
        let dear = Level {
            own_cpus: 0.5,
            ..CALM
        };
        assert!(matches!(ours(dear), Harm::Cpu(why) if why.contains("0.50 CPUs")));
    }

    #[test]
    fn what_was_bad_before_is_no_rise() {
        let bad = Level {
            pressure: Some(0.9),
            ping_s: Some(0.4),
            own_cpus: 0.2,
            own_io_share: 0.9,
        };
        assert_eq!(judge(&[bad; 4], &[bad; LOOKS]), None);
        let unknown = Level {
            pressure: None,
            ping_s: None,
            ..bad
        };
        assert_eq!(judge(&[], &[unknown; LOOKS]), None);
    }

    #[test]
    fn a_server_that_answers_nobody_is_noticed_whether_it_comes_back_or_not() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut guard = Guard::new(None);
        let quick = Ping::Answered(Duration::from_millis(1));
        guard.note(at(1), quick);
        assert_eq!(guard.silence(start, at(2)), None);
        guard.note(at(2), Ping::Late);
        guard.note(at(4), quick);
        assert_eq!(
            guard.silence(start, at(5)),
            None,
            "two seconds are a slow answer"
        );
        for s in 7..12 {
            guard.note(
                at(s),
                if s % 2 == 0 {
                    Ping::Late
                } else {
                    Ping::Refused
                },
            );
            assert!(!guard.finds_nobody());
        }
        let five_seconds = Silence {
            after_ns: 7_000_000_000,
            duration_ns: 5_000_000_000,
        };
        assert_eq!(guard.silence(start, at(12)), Some(five_seconds));
        guard.note(at(12), quick);
        guard.note(at(13), Ping::Late);
        let longest = guard.silence(start, at(14)).unwrap();
        let seconds = longest.duration_ns / 1_000_000_000;
        assert_eq!(
            (longest.after_ns, seconds),
            (7_000_000_000, 5),
            "the longest"
        );
    }

    #[test]
    fn a_few_looks_decide_nothing() {
        let mut guard = Guard::new(None);
        let dear = Level {
            own_cpus: 9.0,
            ..CALM
        };
        for _ in 1..LOOKS {
            guard.recent.push_back(dear);
            assert_eq!(guard.judge(), None);
        }
        guard.recent.push_back(dear);
        assert!(guard.judge().is_some());
        assert_eq!(guard.judge(), None, "what was stopped shows in new looks");
    }
}
