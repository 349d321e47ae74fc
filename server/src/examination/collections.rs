//! Asks about the largest and busiest collections of a server, within limits: servers have up to hundreds of
//! thousands of them, and each question costs the server time.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mongodb::bson::{DateTime, Document, doc};
use seekscope_run::{CollectionFacts, MemberState};

use super::asking::{Asker, NoAnswer};
use super::listing::{BUCKETS, COLLECTIONS_LISTED_MAX, OWN_DATABASES, Scope, list};
use super::statistics::{self, Statistics};
use super::{ExaminationOptions, rights};
use crate::namespace::Namespace;
use crate::replies::{at, number};

/// Collections asked about only at the end, because they turned out to be busy.
const LATECOMERS_MAX: usize = 5;
/// Collections asked about although nobody uses them.
const IDLE_MAX: usize = 5;
/// An answer that took longer was expensive: some servers read all of a collection to count it. It is not worth
/// asking again for what moved meanwhile.
const DEAR: Duration = Duration::from_millis(100);
/// The collections that were chosen, with what the server said of each.
#[derive(Debug, Default)]
pub(super) struct Collections {
    asked: Vec<(Namespace, Statistics)>,
    pub(super) left_out: u64,
    collections_max: usize,
    /// The reply to `top` once the first questions had been answered.
    top: Top,
    /// Whether a collection on which `top` shows no work is idle.
    top_tells_all: bool,
}

/// Time of operations by namespace; empty if the server does not provide it.
pub(super) type Top = HashMap<String, Busy>;

/// Number of operations on a collection since the server started, and the time that they took, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Busy {
    pub(super) operations: u64,
    pub(super) reading_us: u64,
    pub(super) writing_us: u64,
    pub(super) total_us: u64,
}

impl Collections {
    /// Finds the collections and asks about some. A server that does not answer in time is not asked about any
    /// more: some read all of a collection to count it. Only a few idle collections are examined, since their
    /// files may have to be opened for it.
    pub(super) async fn begin(
        &mut self,
        asker: &mut Asker,
        options: &ExaminationOptions,
        state: MemberState,
    ) {
        self.collections_max = options.collections_max;
        self.top = top(asker).await;
        // Secondaries do not count what they write when they follow their primary.
        let writes_by_itself = [MemberState::Primary, MemberState::Standalone].contains(&state);
        self.top_tells_all = writes_by_itself && !self.top.is_empty();
        let knows_busy = self.top_tells_all && self.top.keys().any(|n| user_namespace(n).is_some());
        let all = list(asker, Scope::Users, !knows_busy).await;
        let idle_max = if self.top_tells_all {
            IDLE_MAX
        } else {
            usize::MAX
        };
        let chosen = choose(&all, options, &self.top, idle_max);
        for namespace in &chosen {
            match ask(asker, namespace).await {
                Ok(Some(mut statistics)) => {
                    let in_time = add_indexes(asker, namespace, &mut statistics).await;
                    self.asked.push((namespace.clone(), statistics));
                    if !in_time {
                        break;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let what = if options.collections.contains(namespace) {
                        format!("the size of {namespace}")
                    } else {
                        "the size of some collections".into()
                    };
                    asker.note(&what, &error, rights::remedy("collStats"));
                    if error.is_late() {
                        break;
                    }
                }
            }
        }
        self.left_out = u64::try_from(all.len().saturating_sub(self.asked.len())).unwrap_or(0);
        self.look_past_our_questions(asker).await;
    }

    /// Reads `top` again, since the server also counts our questions as work on a collection.
    async fn look_past_our_questions(&mut self, asker: &mut Asker) {
        if self.top.is_empty() || self.asked.is_empty() {
            return;
        }
        // Without an answer the earlier one is kept, and every collection seems to have been busy.
        if let Ok(reply) = asker.ask("admin", doc! { "top": 1 }).await {
            let now = read_top(&reply);
            if !now.is_empty() {
                self.top = now;
            }
        }
    }

    /// Asks again about what was used, and fills in what has happened since the beginning.
    pub(super) async fn finish(&mut self, asker: &mut Asker) {
        let top = if self.top.is_empty() {
            Top::new()
        } else {
            top(asker).await
        };
        if self.ask_again(asker, &top).await {
            self.add_latecomers(asker, &top).await;
        }
        for (namespace, statistics) in &mut self.asked {
            let name = namespace.to_string();
            // What was not there at the beginning had done nothing before.
            let before = self.top.get(&name).copied().unwrap_or_default();
            if let Some(after) = top.get(&name) {
                let ns = |after: u64, before: u64| after.checked_sub(before)?.checked_mul(1_000);
                let facts = &mut statistics.facts;
                facts.reading_ns = ns(after.reading_us, before.reading_us);
                facts.writing_ns = ns(after.writing_us, before.writing_us);
                facts.operations = after.operations.checked_sub(before.operations);
            }
        }
    }

    /// Asks again about the chosen collections. Returns whether all answers came in time.
    async fn ask_again(&mut self, asker: &mut Asker, top: &Top) -> bool {
        for (namespace, before) in &mut self.asked {
            let idle = self.top_tells_all && is_idle(&namespace.to_string(), &self.top, top);
            if idle || before.took > DEAR {
                continue;
            }
            match ask(asker, namespace).await {
                Ok(Some(mut after)) => {
                    after.take_over_indexes(before);
                    let is_known = after.knows_keys();
                    let in_time = is_known || add_indexes(asker, namespace, &mut after).await;
                    *before = difference(before, after);
                    if !in_time {
                        return false;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let what = "how much data of some collections moved between file and cache";
                    asker.note(what, &error, rights::remedy("collStats"));
                    if error.is_late() {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Adds collections that unexpectedly turned out to be busy.
    async fn add_latecomers(&mut self, asker: &mut Asker, top: &Top) {
        let asked: HashSet<String> = self.asked.iter().map(|(n, _)| n.to_string()).collect();
        let during = |name: &str, busy: &Busy| {
            let before = self.top.get(name).copied().unwrap_or_default();
            busy.total_us.saturating_sub(before.total_us)
        };
        let mut others: Vec<(u64, Namespace)> = top
            .iter()
            .filter(|(name, _)| !asked.contains(*name))
            .map(|(name, busy)| (during(name, busy), name))
            .filter(|(busy_us, _)| *busy_us > 0)
            .filter_map(|(busy_us, name)| Some((busy_us, user_namespace(name)?)))
            .collect();
        others.sort_by(|a, b| b.cmp(a));
        let room = self.collections_max.min(LATECOMERS_MAX);
        for (_, namespace) in others.into_iter().take(room) {
            match ask(asker, &namespace).await {
                Ok(Some(mut statistics)) => {
                    let in_time = add_indexes(asker, &namespace, &mut statistics).await;
                    self.asked.push((namespace, statistics));
                    self.left_out = self.left_out.saturating_sub(1);
                    if !in_time {
                        break;
                    }
                }
                Err(error) if error.is_late() => break,
                _ => {}
            }
        }
    }

    /// Returns the collections that were asked about, at most `max`.
    pub(super) fn namespaces(&self, max: usize) -> Vec<Namespace> {
        let asked = self.asked.iter().take(max);
        asked.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Returns the facts, the largest collection first.
    pub(super) fn into_facts(self) -> Vec<CollectionFacts> {
        let mut facts: Vec<CollectionFacts> =
            self.asked.into_iter().map(|(_, s)| s.facts).collect();
        facts.sort_by_key(|facts| std::cmp::Reverse(facts.storage_bytes));
        facts
    }
}

/// Asks about one collection; `None` if there is no such collection.
async fn ask(asker: &mut Asker, namespace: &Namespace) -> Result<Option<Statistics>, NoAnswer> {
    let (database, collection) = (namespace.database(), namespace.collection());
    let asked = Instant::now();
    let shards = statistics::ask(asker, database, collection).await?;
    let mut statistics = Statistics::read(&namespace.to_string(), &shards);
    statistics.took = asked.elapsed();
    let is_there = statistics.facts.storage_bytes > 0 || statistics.facts.documents > 0;
    Ok(is_there.then_some(statistics))
}

/// Adds keys and uses of a collection's indexes. Returns whether the answer came in time.
async fn add_indexes(
    asker: &mut Asker,
    namespace: &Namespace,
    statistics: &mut Statistics,
) -> bool {
    let (database, collection) = (namespace.database(), namespace.collection());
    match statistics::ask_indexes(asker, database, collection).await {
        Ok(indexes) => {
            statistics.add_indexes(&indexes, DateTime::now());
            true
        }
        Err(error) => {
            let remedy = rights::remedy("indexStats");
            asker.note(
                "the keys of indexes, and how often they are used",
                &error,
                remedy,
            );
            !error.is_late()
        }
    }
}

/// Returns whether nothing was done with a collection between two replies to `top`.
fn is_idle(name: &str, before: &Top, after: &Top) -> bool {
    let total_us = |top: &Top| top.get(name).map(|busy| busy.total_us);
    !before.is_empty() && !after.is_empty() && total_us(before) == total_us(after)
}

/// Returns the later figures, and what moved between file and cache meanwhile.
fn difference(before: &Statistics, mut after: Statistics) -> Statistics {
    let moved = |after: Option<u64>, before: Option<u64>| after?.checked_sub(before?);
    after.facts.read_into_cache_bytes =
        moved(after.read_into_cache_bytes, before.read_into_cache_bytes);
    after.facts.written_from_cache_bytes = moved(
        after.written_from_cache_bytes,
        before.written_from_cache_bytes,
    );
    after
}

/// Chooses the collections requested in any case; then the busiest since the server started; then at most
/// `idle_max` of the rest in their order, with databases by size if that matters.
fn choose(
    all: &[Namespace],
    options: &ExaminationOptions,
    top: &Top,
    idle_max: usize,
) -> Vec<Namespace> {
    let busy_us = |namespace: &Namespace| {
        top.get(&namespace.to_string())
            .map_or(0, |busy| busy.total_us)
    };
    let by_time = all.iter().map(|n| (busy_us(n), n));
    let (mut busy, idle): (Vec<_>, Vec<_>) = by_time.partition(|(busy_us, _)| *busy_us > 0);
    // The sort is stable, so equally busy ones keep their order.
    busy.sort_by_key(|(busy_us, _)| std::cmp::Reverse(*busy_us));
    let mut chosen: Vec<Namespace> = Vec::new();
    let others = busy.into_iter().chain(idle.into_iter().take(idle_max));
    let others = others.map(|(_, namespace)| namespace);
    for namespace in options.collections.iter().chain(others) {
        if chosen.len() >= options.collections_max.max(options.collections.len()) {
            break;
        }
        if !chosen.contains(namespace) {
            chosen.push(namespace.clone());
        }
    }
    chosen
}

fn user_namespace(name: &str) -> Option<Namespace> {
    let namespace: Namespace = name.parse().ok()?;
    let collection = namespace.collection();
    let is_own = OWN_DATABASES.contains(&namespace.database())
        || collection.contains('$')
        || (collection.starts_with("system.") && !collection.starts_with(BUCKETS));
    (!is_own).then_some(namespace)
}

/// Returns the reply to `top`. Routers have no such command.
pub(super) async fn top(asker: &mut Asker) -> Top {
    let what = "how long operations on each collection take";
    let reply = asker.ask_or_note("admin", doc! { "top": 1 }, what).await;
    read_top(&reply)
}

fn read_top(reply: &Document) -> Top {
    let totals = reply.get_document("totals").into_iter().flatten();
    let busy = totals.filter_map(|(name, times)| {
        let times = times.as_document()?;
        let us = |kind| at(times, &[kind, "time"]).and_then(number).unwrap_or(0);
        let busy = Busy {
            operations: at(times, &["total", "count"]).and_then(number).unwrap_or(0),
            reading_us: us("readLock"),
            writing_us: us("writeLock"),
            total_us: us("total"),
        };
        Some((name.clone(), busy))
    });
    busy.take(COLLECTIONS_LISTED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::super::OthersAsked;
    use super::*;

    fn namespace(text: &str) -> Namespace {
        text.parse().unwrap()
    }

    /// Returns a reply to `top` as from mongod 4.2.2.
    fn top_reply(orders_us: i64, reading_us: i64) -> Document {
        let times = |us: i64, reading_us: i64| {
            doc! {
                "total": { "time": us, "count": 7 }, "readLock": { "time": reading_us, "count": 4 },
                "writeLock": { "time": us - reading_us, "count": 3 }, "queries": { "time": 1, "count": 1 },
            }
        };
        doc! { "totals": {
            "note": "all times in microseconds", "sdu.orders": times(orders_us, reading_us),
            "local.oplog.rs": times(9_000_000, 0), "sdu.small": times(1, 1),
        }, "ok": 1.0 }
    }

    #[test]
    fn the_named_then_the_busiest() {
        let top = read_top(&top_reply(500, 400));
        assert_eq!(top.len(), 3);
        assert_eq!(top["sdu.orders"].reading_us, 400);
        let all: Vec<Namespace> = (0..10_000)
            .map(|n| namespace(&format!("sdu.c{n}")))
            .chain(["sdu.small", "sdu.orders"].map(namespace))
            .collect();
        let options = ExaminationOptions {
            collections: vec![namespace("sdu.named"), namespace("sdu.small")],
            collections_max: 4,
            others: OthersAsked::Nobody,
        };
        let names = |chosen: Vec<Namespace>| -> Vec<String> {
            chosen.iter().map(|n| n.collection().into()).collect()
        };
        let chosen = choose(&all, &options, &top, usize::MAX);
        assert_eq!(names(chosen), ["named", "small", "orders", "c0"]);
        let options = ExaminationOptions::default();
        let chosen = choose(&all, &options, &top, 2);
        assert_eq!(names(chosen), ["orders", "small", "c0", "c1"]);
        assert_eq!(choose(&all, &options, &top, usize::MAX).len(), 20);
    }

    #[test]
    fn what_nobody_used_meanwhile() {
        let (before, after) = (
            read_top(&top_reply(500, 400)),
            read_top(&top_reply(501, 400)),
        );
        assert!(!is_idle("sdu.orders", &before, &after));
        assert!(is_idle("sdu.small", &before, &after));
        assert!(is_idle("sdu.never_used", &before, &after));
        assert!(!is_idle("sdu.small", &before, &Top::new()), "not known");
        assert!(!is_idle("sdu.small", &Top::new(), &after), "not known");
    }

    #[test]
    fn what_moved_meanwhile() {
        let at = |read, written| Statistics {
            read_into_cache_bytes: read,
            written_from_cache_bytes: written,
            ..Statistics::default()
        };
        let facts = difference(&at(Some(100), None), at(Some(150), Some(7))).facts;
        assert_eq!(facts.read_into_cache_bytes, Some(50));
        assert_eq!(facts.written_from_cache_bytes, None);
        let restarted = difference(&at(Some(100), None), at(Some(5), None)).facts;
        assert_eq!(restarted.read_into_cache_bytes, None);
    }

    #[test]
    fn what_is_nobodys_business() {
        for own in [
            "local.oplog.rs",
            "config.chunks",
            "sdu.system.views",
            "a.$cmd",
            "odd",
        ] {
            assert_eq!(user_namespace(own), None, "{own}");
        }
        assert!(user_namespace("sdu.system.buckets.weather").is_some());
    }

    #[test]
    fn hostile_replies_are_survived() {
        assert!(read_top(&doc! { "totals": 5 }).is_empty());
        let odd = doc! { "totals": { "a.b": { "total": 5, "readLock": { "time": -1 } } } };
        assert_eq!(read_top(&odd)["a.b"], Busy::default());
    }
}
