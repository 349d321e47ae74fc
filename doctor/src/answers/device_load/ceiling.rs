//! Finds limits that flatten the load: of a control group, or of the volume as the survey found it.
//!
//! Both kinds grant a fixed rate, so seconds in which the rate comes near it are seconds in which something
//! waited for it (token buckets; Documentation/admin-guide/cgroup-v2.rst, `io.max`).

use seekscope_run::IoLimit;
use seekscope_run::units::{format_bytes, whole};

use super::SOURCE;
use crate::Evidence;
use crate::evidence::Series;

/// A second that uses this share of the limit counts as at the limit: the kernel grants in slices of 0.1 s,
/// and the boundaries of seconds and slices do not coincide.
const NEAR: f64 = 0.85;
/// Slices per second in which the kernel grants requests (`throtl_slice` of block/blk-throttle.c).
const SLICES_PER_S: f64 = 10.0;
/// A second above this share proves that the limit is not in force for this load.
const BEYOND: f64 = 1.3;
/// Share of what a group has queued, or was granted before it was counted, that may be left over.
const LEFT_MAX: f64 = 0.25;
/// The most bytes beyond the limit that a second may count because the requests are large: a few of the largest that the
/// kernel reads ahead.
const LARGE_REQUESTS_BYTES: f64 = (64 << 20) as f64;
/// Fewest seconds at the limit; also required is a share of the seconds with any such I/O.
const SECONDS_MIN: usize = 5;
const SECONDS_SHARE_MIN: f64 = 0.2;
/// A watch of fewer seconds, in which a group comes to this share of its limit on average, is one at the limit, for single
/// seconds are too few to tell.
const SHORT_WATCH: usize = 2 * SECONDS_MIN;
const NEAR_ON_AVERAGE: f64 = 0.9;

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ceiling {
    /// The limit in words, e.g. "cgroup /db read IOPS 150/s".
    pub(crate) name: String,
    /// True if it bounds writes, false for reads.
    pub(crate) of_writes: bool,
    /// Whether it bounds bytes and not requests.
    pub(crate) in_bytes: bool,
    pub(crate) limit_per_s: f64,
    /// Mean use per second.
    pub(crate) used_per_s: f64,
    /// Share (0..=1) of all seconds that were at the limit.
    pub(crate) share: f64,
    /// Share (0..=1) of the seconds with such I/O that were at the limit.
    pub(crate) busy_share: f64,
    /// True if it applies before the disk's queue, so that the disk's own latency does not include it.
    pub(crate) before_disk: bool,
    /// The control group's limit, for one of those.
    pub(crate) limit: Option<IoLimit>,
}

/// Returns the limit that was reached in the most seconds, if any was.
pub(crate) fn reached(evidence: &Evidence<'_>) -> Option<Ceiling> {
    let groups = evidence
        .host_settings()
        .map_or(&[][..], |h| &h.surroundings.io_limits);
    let of_groups = groups.iter().filter_map(|limit| of_group(evidence, limit));
    of_groups
        .chain(of_volume(evidence))
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

fn of_group(evidence: &Evidence<'_>, limit: &IoLimit) -> Option<Ceiling> {
    let (of_writes, in_bytes) = (limit.is_of_writes(), limit.is_in_bytes());
    let names = counters_of(limit);
    let limit_per_s = limit.per_s as f64;
    let rates = group_rates(evidence, names);
    let granted_per_s = match in_bytes {
        true => limit_per_s,
        false => granted_one_by_one(limit_per_s),
    };
    let evened = || {
        let counted = own_rates(evidence, names)?;
        let evened = match (of_writes, in_bytes) {
            (true, _) => served(&counted, limit_per_s),
            (false, true) => granted(&counted, limit_per_s),
            (false, false) => None,
        };
        judge(&evened?, limit_per_s, granted_per_s)
    };
    let mut ceiling = judge(&rates, limit_per_s, granted_per_s)
        .or_else(evened)
        .or_else(|| judge_short(&rates, limit_per_s, granted_per_s))?;
    ceiling.name = limit_in_words(limit);
    ceiling.of_writes = of_writes;
    ceiling.in_bytes = in_bytes;
    ceiling.before_disk = true;
    ceiling.limit = Some(limit.clone());
    Some(ceiling)
}

/// Returns the names of the counters of which a control group's limit bounds the sum.
fn counters_of(limit: &IoLimit) -> &'static [&'static str] {
    match (limit.is_of_writes(), limit.is_in_bytes()) {
        (false, true) => &["read_bytes"],
        (true, true) => &["write_bytes"],
        // The limit counts requests before the scheduler merges them.
        (false, false) => &["reads", "reads_merged"],
        (true, false) => &["writes", "writes_merged"],
    }
}

/// Returns the mean use of a control group's limit, as a share of it; `None` where nothing counts it.
pub(crate) fn used_share(evidence: &Evidence<'_>, limit: &IoLimit) -> Option<f64> {
    let rates = group_rates(evidence, counters_of(limit));
    let mean_per_s = rates.iter().sum::<f64>() / rates.len() as f64;
    (!rates.is_empty()).then(|| mean_per_s / limit.per_s.max(1) as f64)
}

/// Returns a control group's limit in words, e.g. "cgroup /db read IOPS 150/s".
pub(crate) fn limit_in_words(limit: &IoLimit) -> String {
    let (cgroup, per_s) = (&limit.cgroup, limit.per_s);
    match limit.what.strip_suffix(" bytes/s") {
        Some(direction) => format!(
            "cgroup {cgroup} {direction} bandwidth {}/s",
            format_bytes(per_s)
        ),
        None => format!("cgroup {cgroup} {} {per_s}/s", limit.what),
    }
}

/// Checks token buckets that the disk's survey found.
fn of_volume(evidence: &Evidence<'_>) -> Option<Ceiling> {
    let volume = evidence.expected().filter(|disk| disk.measured)?;
    let model = &volume.model;
    let requests = model
        .iops_bucket
        .map(|b| (b.per_s, false, ["reads", "writes"]));
    let bytes = model
        .bytes_bucket
        .map(|b| (b.per_s, true, ["read_bytes", "write_bytes"]));
    let judged = [requests, bytes]
        .into_iter()
        .flatten()
        .filter_map(|(per_s, in_bytes, names)| {
            let mut ceiling = judge(&rates_of(evidence, SOURCE, &names)?, per_s, per_s)?;
            ceiling.name = match in_bytes {
                true => format!("the volume's {}/s", format_bytes(whole(per_s))),
                false => format!("the volume's {per_s:.0} requests/s"),
            };
            ceiling.in_bytes = in_bytes;
            Some(ceiling)
        });
    judged.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Returns rates from the control group's own counters, where it has them; else the disk's.
fn group_rates(evidence: &Evidence<'_>, names: &[&str]) -> Vec<f64> {
    own_rates(evidence, names)
        .or_else(|| rates_of(evidence, SOURCE, names))
        .unwrap_or_default()
}

/// Returns rates from the control group's own counters, of which there is one for each limit.
fn own_rates(evidence: &Evidence<'_>, names: &[&str]) -> Option<Vec<f64>> {
    rates_of(evidence, "cgroup", &names[..1])
}

/// Returns the sums of the counters' rates, step by step.
fn rates_of(evidence: &Evidence<'_>, source: &str, names: &[&str]) -> Option<Vec<f64>> {
    let mut sums: Vec<f64> = Vec::new();
    for name in names {
        let rates = evidence.counters.get(source, name).map(Series::rates)?;
        sums.resize(sums.len().max(rates.len()), 0.0);
        for (sum, (_, rate)) in sums.iter_mut().zip(rates) {
            *sum += rate;
        }
    }
    Some(sums)
}

/// Returns the rates at which a group was served that had its writes counted when they were queued: a checkpoint queues
/// in a second what the limit grants in the next thirty. `None` if that does not add up, because the limit was not in
/// force.
fn served(queued: &[f64], limit_per_s: f64) -> Option<Vec<f64>> {
    let mut waiting = 0.0;
    let rates = queued.iter().map(|rate| {
        waiting += rate;
        let served = f64::min(waiting, limit_per_s);
        waiting -= served;
        served
    });
    let rates: Vec<f64> = rates.collect();
    (waiting <= LEFT_MAX * queued.iter().sum::<f64>()).then_some(rates)
}

/// Returns the rates at which a group was granted the bytes that it read. A request is counted once the group has been
/// granted all of it: one of 16 MiB after a second and a half at 10 MiB/s. That is what is queued, with time reversed.
/// `None` if that does not add up, because the limit was not in force.
fn granted(counted: &[f64], limit_per_s: f64) -> Option<Vec<f64>> {
    let most = counted.iter().copied().fold(0.0, f64::max);
    if most > limit_per_s + LARGE_REQUESTS_BYTES {
        return None;
    }
    let backwards: Vec<f64> = counted.iter().rev().copied().collect();
    let mut rates = served(&backwards, limit_per_s)?;
    rates.reverse();
    Some(rates)
}

/// Returns what a limit of requests grants to a thread that sends one after the other, per second: whole ones in each
/// slice, so of 12 per second 10.
fn granted_one_by_one(requests_per_s: f64) -> f64 {
    let whole = (requests_per_s / SLICES_PER_S).floor() * SLICES_PER_S;
    if whole > 0.0 { whole } else { requests_per_s }
}

/// `granted_per_s` is what the limit grants at least to those that wait for it.
fn judge(rates: &[f64], limit_per_s: f64, granted_per_s: f64) -> Option<Ceiling> {
    let limit = limit_per_s.max(1.0);
    let near = |rate: &&f64| (NEAR * granted_per_s..=BEYOND * limit).contains(*rate);
    let beyond = rates.iter().filter(|rate| **rate > BEYOND * limit).count();
    let at_limit = rates.iter().filter(near).count();
    let busy = rates.iter().filter(|rate| **rate > 0.0).count().max(1);
    let busy_share = at_limit as f64 / busy as f64;
    if at_limit < SECONDS_MIN || busy_share < SECONDS_SHARE_MIN || beyond * 4 > at_limit {
        return None;
    }
    let share = at_limit as f64 / rates.len() as f64;
    Some(Ceiling {
        share,
        busy_share,
        ..Ceiling::used(rates, limit_per_s)
    })
}

/// Judges a watch as a whole that is too short to be judged by its seconds.
fn judge_short(rates: &[f64], limit_per_s: f64, granted_per_s: f64) -> Option<Ceiling> {
    if rates.is_empty() || rates.len() >= SHORT_WATCH {
        return None;
    }
    let used = Ceiling::used(rates, limit_per_s);
    let near = NEAR_ON_AVERAGE * granted_per_s..=BEYOND * limit_per_s.max(1.0);
    let share = (used.used_per_s / granted_per_s.max(1.0)).min(1.0);
    near.contains(&used.used_per_s).then_some(Ceiling {
        share,
        busy_share: share,
        ..used
    })
}

impl Ceiling {
    /// Returns a limit that was used at these rates.
    fn used(rates: &[f64], limit_per_s: f64) -> Self {
        Self {
            name: String::new(),
            of_writes: false,
            in_bytes: false,
            limit_per_s,
            used_per_s: rates.iter().sum::<f64>() / rates.len() as f64,
            share: 0.0,
            busy_share: 0.0,
            before_disk: false,
            limit: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::TokenBucket;

    use super::*;
    use crate::evidence::Counters;
    use crate::testing::{OBSERVED_S, Recording, START_NS, flash};

    fn limited(per_s: f64, source: &str) -> Recording {
        let mut recording = Recording::new();
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/db".into(),
            device: "254:0".into(),
            what: "read IOPS".into(),
            per_s: 150,
        });
        recording.values(source, "reads", |s| s * per_s);
        recording.values(source, "reads_merged", |_| 0.0);
        recording
    }

    fn found(recording: &Recording) -> Option<Ceiling> {
        recording.examine(|evidence, _| reached(evidence))
    }

    #[test]
    fn a_group_at_its_limit() {
        for source in ["cgroup", "diskstats"] {
            let ceiling = found(&limited(148.0, source)).unwrap();
            assert_eq!(ceiling.name, "cgroup /db read IOPS 150/s");
            assert!(ceiling.before_disk && !ceiling.of_writes && ceiling.share == 1.0);
        }
    }

    /// A regression: in a watch of three seconds no limit was seen to be reached.
    #[test]
    fn a_short_watch_at_the_limit() {
        let last = |per_s: f64, seconds: u32| {
            let recording = limited(per_s, "cgroup");
            recording.examine(|evidence, _| {
                let begin_ns = START_NS + u64::from(OBSERVED_S - seconds) * 1_000_000_000;
                let mut counters: Counters = evidence.counters.clone();
                counters.forget_before(begin_ns);
                reached(&Evidence {
                    counters: &counters,
                    ..*evidence
                })
            })
        };
        for per_s in [140.0, 175.0] {
            let ceiling = last(per_s, 3).unwrap();
            assert!(ceiling.before_disk && ceiling.share > 0.9, "{ceiling:?}");
            assert!((ceiling.used_per_s - per_s).abs() < 1e-6, "{ceiling:?}");
        }
        assert_eq!(last(130.0, 3), None, "it has room");
        assert_eq!(last(300.0, 3), None, "it is not in force");
        assert_eq!(last(148.0, 30).unwrap().share, 1.0);
    }

    /// A regression: bytes that a checkpoint queues are counted at once, and written in half a minute.
    #[test]
    fn writes_that_are_counted_when_they_are_queued() {
        let written = |per_checkpoint: f64| {
            let mut recording = Recording::new();
            recording.host().surroundings.io_limits.push(IoLimit {
                cgroup: "/db".into(),
                device: "254:0".into(),
                what: "write bytes/s".into(),
                per_s: 8 << 20,
            });
            let queued = move |s: f64| ((s + 10.0) / 30.0).floor() * per_checkpoint + s * 500_000.0;
            recording.values("cgroup", "write_bytes", queued);
            found(&recording)
        };
        let ceiling = written(120e6).unwrap();
        assert!(ceiling.of_writes && ceiling.share > 0.4, "{ceiling:?}");
        assert_eq!(written(20e6), None, "written in two seconds");
        assert_eq!(written(900e6), None, "the limit is not in force");
    }

    /// A regression: read-ahead of 16 MiB at 20 MB/s shows 16 or 32 MiB in a second, and never 20 MB.
    #[test]
    fn reads_that_are_counted_once_all_of_them_is_granted() {
        let read = |request_bytes: f64, per_s: f64| {
            let mut recording = Recording::new();
            recording.host().surroundings.io_limits.push(IoLimit {
                cgroup: "/db".into(),
                device: "254:0".into(),
                what: "read bytes/s".into(),
                per_s: 20 << 20,
            });
            let counted = move |s: f64| (s * per_s / request_bytes).floor() * request_bytes;
            recording.values("cgroup", "read_bytes", counted);
            found(&recording)
        };
        const MIB: f64 = 1_048_576.0;
        for request_bytes in [16.0 * MIB, 48.0 * MIB] {
            let ceiling = read(request_bytes, 20.0 * MIB).unwrap();
            assert!(!ceiling.of_writes && ceiling.share > 0.9, "{ceiling:?}");
        }
        assert_eq!(read(16.0 * MIB, 2.0 * MIB), None, "far below it");
        assert_eq!(read(16.0 * MIB, 50.0 * MIB), None, "it is not in force");
        assert_eq!(
            read(200.0 * MIB, 20.0 * MIB),
            None,
            "no request is so large"
        );
    }

    #[test]
    fn seconds_without_such_reads_are_seconds() {
        let mut recording = limited(0.0, "diskstats");
        recording.values("cgroup", "reads", |s| {
            let (rounds, rest) = ((s / 10.0).floor(), s % 10.0);
            150.0 * (rounds * 5.0 + rest.min(5.0))
        });
        let ceiling = found(&recording).unwrap();
        assert!((0.45..0.55).contains(&ceiling.share), "{ceiling:?}");
        assert_eq!(ceiling.busy_share, 1.0);
    }

    /// A journal that is synced by one thread at 12 writes per second: 9 to 11 of them get through.
    #[test]
    fn a_small_limit_is_granted_in_whole_requests_per_slice() {
        let of = |per_s: f64| {
            let mut recording = Recording::new();
            recording.host().surroundings.io_limits.push(IoLimit {
                cgroup: "/db".into(),
                device: "254:0".into(),
                what: "write IOPS".into(),
                per_s: 12,
            });
            recording.values("cgroup", "writes", |s| (s * per_s).floor());
            found(&recording)
        };
        assert!(of(9.8).unwrap().of_writes);
        assert_eq!(of(6.0), None);
        assert_eq!(granted_one_by_one(150.0), 150.0);
        assert_eq!(granted_one_by_one(39.0), 30.0);
        assert_eq!(granted_one_by_one(3.0), 3.0);
    }

    #[test]
    fn limits_that_do_not_bind() {
        assert_eq!(found(&limited(60.0, "diskstats")), None, "far below it");
        assert_eq!(found(&limited(900.0, "diskstats")), None, "others read too");
        assert_eq!(found(&Recording::new()), None);
    }

    #[test]
    fn a_volume_at_its_baseline() {
        let mut recording = Recording::new();
        let mut model = flash(1e-3);
        model.iops_bucket = Some(TokenBucket {
            per_s: 3000.0,
            burst: 0.0,
        });
        recording.ability(model);
        recording.values("diskstats", "reads", |s| s * 2000.0);
        recording.values("diskstats", "writes", |s| s * 990.0);
        assert_eq!(
            found(&recording).unwrap().name,
            "the volume's 3000 requests/s"
        );
    }
}
