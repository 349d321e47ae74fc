//! Observes the shards behind a router during a step: what their primaries count, and whether chunks are moved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use seekscope_run::units::{format_count, whole};
use seekscope_run::{
    BenchStep, COUNTERS_OF_MEMBER, CounterSample, Limitation, ShardFigures, StepShards,
};
use seekscope_server::cluster::MovedOf;
use seekscope_server::examination::Routed;
use seekscope_server::{Sampler, Server, ServerError, cluster};

use super::remedy_for;
use crate::bench::target::Target;

/// The observation of one step, or of several that run at the same time.
#[derive(Debug)]
pub struct ShardWatch {
    server: Server,
    /// The collections, as `database.collection`.
    collections: Vec<String>,
    /// Each shard's name, and the address of its primary if that answers.
    shards: Vec<(String, Option<String>)>,
    counters: ShardCounters,
    balancer_on: Option<bool>,
    moves_before: Option<u64>,
    moved_chunks: Option<u64>,
    missing: Vec<Limitation>,
}

/// What primaries have counted so far, each second. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ShardCounters {
    by_member: Arc<Mutex<BTreeMap<String, Vec<Moment>>>>,
}

/// A primary's counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Moment {
    t_ns: u64,
    inserts: f64,
    queries: f64,
    updates: f64,
    deletes: f64,
    reads: f64,
    reads_us: f64,
    writes: f64,
    writes_us: f64,
}

impl ShardWatch {
    /// Begins to observe; `None` unless the server is a router.
    pub async fn begin(target: &Target, database: &str, collections: Vec<String>) -> Option<Self> {
        let routed = target.routed()?;
        let server = target.server().ok()?.clone();
        let shards = routed.shards.iter().map(|shard| {
            let primary = shard.primary.as_ref();
            (shard.name.clone(), primary.map(|one| one.name.clone()))
        });
        let mut watch = Self {
            shards: shards.collect(),
            collections: collections
                .into_iter()
                .map(|collection| format!("{database}.{collection}"))
                .collect(),
            counters: ShardCounters::default(),
            balancer_on: None,
            moves_before: None,
            moved_chunks: None,
            missing: Vec::new(),
            server,
        };
        let on = cluster::balancer_on(&watch.server).await;
        watch.balancer_on = watch.note(on, "whether the balancer is on");
        watch.moves_before = watch.moves().await;
        watch.sample(target).await;
        Some(watch)
    }

    /// Returns where the samples of the step go.
    pub fn counters(&self) -> ShardCounters {
        self.counters.clone()
    }

    /// Looks a last time, right after the step.
    pub async fn end(&mut self, target: &Target) {
        self.sample(target).await;
        let before = self.moves_before;
        let after = match before {
            Some(_) => self.moves().await,
            None => None,
        };
        // The log is of limited size: a count that fell says nothing.
        self.moved_chunks = after
            .zip(before)
            .and_then(|(after, before)| after.checked_sub(before));
    }

    /// Returns the figures of a step.
    pub fn of_step(&self, step: &BenchStep) -> StepShards {
        let figures = self.shards.iter().map(|(shard, primary)| {
            let primary = primary.clone();
            let figures = primary
                .as_ref()
                .and_then(|name| self.counters.over(name, step));
            ShardFigures {
                shard: shard.clone(),
                primary,
                ..figures.unwrap_or_default()
            }
        });
        StepShards {
            shards: figures.collect(),
            ..self.of_balancer()
        }
    }

    /// Returns what is known of the balancer, without figures of shards.
    pub fn of_balancer(&self) -> StepShards {
        StepShards {
            shards: Vec::new(),
            balancer_on: self.balancer_on,
            moved_chunks: self.moved_chunks,
        }
    }

    /// Returns what is not known, and what disturbed the step.
    pub fn limitations(&self, step: &str) -> Vec<Limitation> {
        let mut told = self.missing.clone();
        if let Some(moved) = self.moved_chunks.filter(|moved| *moved > 0) {
            told.push(Limitation {
                what: format!(
                    "during \"{step}\" {} of its collections' chunks were moved between shards, so its figures \
                     include that work",
                    format_count(moved)
                ),
                why: "the balancer, or somebody else, moved them".into(),
                remedy: "sh.stopBalancer() while a benchmark runs, or a larger --pre-split, so that there is nothing \
                         to balance"
                    .into(),
            });
        }
        told
    }

    async fn moves(&mut self) -> Option<u64> {
        let moves = cluster::moves(&self.server, MovedOf::Collections(&self.collections)).await;
        let moves = moves.map(|moves| Some(moves.chunks()));
        self.note(moves, "how many chunks were moved between shards meanwhile")
    }

    fn note<T>(&mut self, asked: Result<Option<T>, ServerError>, what: &str) -> Option<T> {
        match asked {
            Ok(told) => told,
            Err(error) => {
                self.missing.push(Limitation {
                    what: format!("{what} is not known"),
                    remedy: remedy_for(&error),
                    why: error.to_string(),
                });
                None
            }
        }
    }

    /// Asks all primaries at once.
    async fn sample(&self, target: &Target) {
        let primaries = target.routed().into_iter().flat_map(Routed::primaries);
        let samples = primaries
            .map(|one| async { Sampler::of_member(&one.name, &one.server).sample().await });
        for samples in join_all(samples).await {
            self.counters.note(&samples);
        }
    }
}

impl ShardCounters {
    /// Keeps what belongs to a member; other rows are ignored.
    pub fn note(&self, samples: &[CounterSample]) {
        let Some(first) = samples.first() else {
            return;
        };
        let Some(member) = first.source.strip_prefix(COUNTERS_OF_MEMBER) else {
            return;
        };
        let mut all = self
            .by_member
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let moments = all.entry(member.to_string()).or_default();
        moments.push(Moment::of(samples));
        // Samples around a step are taken beside those of every second.
        moments.sort_by_key(|moment| moment.t_ns);
    }

    /// Returns what a member did during a step without its warm-up; `None` if it was asked too seldom.
    fn over(&self, member: &str, step: &BenchStep) -> Option<ShardFigures> {
        let all = self
            .by_member
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let moments = all.get(member)?;
        // Before the step begins and after it has ended, nothing is sent, so the outermost samples hold all of it. One
        // that was asked for right before a moment may have been answered right after it.
        let warmed_up = step
            .warm_up_ended_ns
            .and_then(|from_ns| moments.iter().rev().find(|moment| moment.t_ns <= from_ns));
        let (first, last) = (warmed_up.or(moments.first())?, moments.last()?);
        let begun_ns = first.t_ns.max(step.started_ns);
        let measured_ns = last.t_ns.min(step.ended_ns).checked_sub(begun_ns)?;
        last.since(first, measured_ns)
    }
}

impl Moment {
    fn of(samples: &[CounterSample]) -> Self {
        let mut moment = Self {
            t_ns: samples.first().map_or(0, |sample| sample.t_ns),
            ..Self::default()
        };
        for sample in samples {
            let value = match sample.name.as_str() {
                "opcounters.insert" => &mut moment.inserts,
                "opcounters.query" => &mut moment.queries,
                "opcounters.update" => &mut moment.updates,
                "opcounters.delete" => &mut moment.deletes,
                "opLatencies.reads.ops" => &mut moment.reads,
                "opLatencies.reads.latency" => &mut moment.reads_us,
                "opLatencies.writes.ops" => &mut moment.writes,
                "opLatencies.writes.latency" => &mut moment.writes_us,
                _ => continue,
            };
            *value = sample.value;
        }
        moment
    }

    /// Returns what was done since an earlier moment; `None` if the server was restarted between the two.
    fn since(&self, earlier: &Self, measured_ns: u64) -> Option<ShardFigures> {
        let counted = |of: fn(&Self) -> f64| {
            let grown = of(self) - of(earlier);
            (grown >= 0.0).then_some(grown)
        };
        let [inserts, queries, updates, deletes] = [
            counted(|m| m.inserts)?,
            counted(|m| m.queries)?,
            counted(|m| m.updates)?,
            counted(|m| m.deletes)?,
        ];
        let mean_ns = |us: Option<f64>, count: Option<f64>| {
            let (us, count) = (us?, count?);
            (count > 0.0).then(|| us * 1e3 / count)
        };
        let measured_s = measured_ns as f64 / 1e9;
        let all = inserts + queries + updates + deletes;
        Some(ShardFigures {
            measured_s: Some(measured_s),
            inserts: Some(whole(inserts)),
            queries: Some(whole(queries)),
            updates: Some(whole(updates)),
            deletes: Some(whole(deletes)),
            operations_per_s: (measured_s > 0.0).then(|| all / measured_s),
            read_latency_ns: mean_ns(counted(|m| m.reads_us), counted(|m| m.reads)),
            write_latency_ns: mean_ns(counted(|m| m.writes_us), counted(|m| m.writes)),
            ..ShardFigures::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn samples(t_s: u64, inserts: f64, reads: (f64, f64)) -> Vec<CounterSample> {
        let sample = |name: &str, value| CounterSample {
            t_ns: t_s * S,
            source: format!("{COUNTERS_OF_MEMBER}a:1"),
            name: name.into(),
            value,
        };
        vec![
            sample("opcounters.insert", inserts),
            sample("opcounters.command", 1e6),
            sample("opLatencies.reads.ops", reads.0),
            sample("opLatencies.reads.latency", reads.1),
        ]
    }

    fn over(counters: &ShardCounters, warm_up_ended_s: Option<u64>) -> Option<ShardFigures> {
        let step = BenchStep {
            started_ns: 11 * S,
            ended_ns: 21 * S,
            warm_up_ended_ns: warm_up_ended_s.map(|s| s * S),
            ..BenchStep::default()
        };
        counters.over("a:1", &step)
    }

    #[test]
    fn what_is_counted_is_the_step_without_its_warm_up() {
        let counters = ShardCounters::default();
        for (t_s, inserts, reads) in [
            (22, 1100.0, (30.0, 900.0)),
            (10, 100.0, (10.0, 100.0)),
            (16, 600.0, (20.0, 500.0)),
        ] {
            counters.note(&samples(t_s, inserts, reads));
        }
        let whole = over(&counters, None).unwrap();
        assert_eq!((whole.inserts, whole.measured_s), (Some(1000), Some(10.0)));
        assert_eq!(whole.operations_per_s, Some(100.0));
        assert_eq!(whole.read_latency_ns, Some(40_000.0));
        assert_eq!(whole.write_latency_ns, None);
        let warm = over(&counters, Some(16)).unwrap();
        assert_eq!((warm.inserts, warm.measured_s), (Some(500), Some(5.0)));
        assert_eq!(over(&ShardCounters::default(), None), None);
    }

    #[test]
    fn a_restart_leaves_nothing_known() {
        let counters = ShardCounters::default();
        counters.note(&samples(10, 100.0, (10.0, 100.0)));
        counters.note(&samples(22, 5.0, (1.0, 10.0)));
        assert_eq!(over(&counters, None), None);
    }
}
