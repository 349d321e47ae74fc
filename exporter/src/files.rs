//! What the kernel counted of each file, with a bound on the number of files that have series of their own.
//!
//! The files for which threads waited longest have their own series, all others are summed as one. A file that comes
//! in begins at 0, and so does a kind of call that is new to it, since a rate does not tell what a counter begins with;
//! what it counted in the reading with which it came in is added with the next one, and what was counted before that
//! stays with the others, so no counter ever goes back. A file comes in where there is room, or in place of one for
//! which threads waited less than half as long over the last hours, but not before that one has been shown for a while:
//! what is shown does not flap between scrapes. A file that is hardly waited for displaces none, and files that the
//! server keeps for itself come after those of its users. One that comes back within an hour goes on where it was.

use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use seekscope_run::{FileRole, IoKind};

use crate::latencies::Latencies;
use crate::metrics::{
    FILE_BYTES, FILE_CACHE_HITS, FILE_CACHE_MISSES, FILE_DEVICE_READ_BYTES, FILE_ERRORS,
    FILE_LATENCY,
};
use crate::page::{Labels, Page};

/// Waited time counts half after this time.
const HALF_LIFE_S: f64 = 3600.0;
/// How long a file is shown at least, unless it is hardly waited for.
const SHOWN_MIN_NS: u64 = 600_000_000_000;
/// A file without a call for this long gives way to any of its kind that is waited for, as it may have been dropped.
const UNUSED_NS: u64 = 900_000_000_000;
/// After this time without a call a file is not shown any more, as it may not exist any more, and its waiting is
/// forgotten. For as long, what was counted of a file that is not shown any more is kept, as it may come back.
const IDLE_MAX_NS: u64 = 3_600_000_000_000;
/// A file comes in in place of another with this many times its waited time.
const AHEAD: f64 = 2.0;
/// A file that was waited for less than this over the last hours displaces none, ns.
const TRIVIAL_NS: f64 = 1e7;
/// The same for files that the server keeps for itself, each of which is waited for a little at each checkpoint.
const TRIVIAL_INTERNAL_NS: f64 = 1e8;
/// What the collections of the server's own databases begin with.
const INTERNAL: [&str; 3] = ["admin.", "config.", "local."];
/// Waited time below this is forgotten, ns: where many files come and go, most are used once.
const WAITED_MIN_NS: f64 = 1e6;

/// The collection that stands for all files without series of their own. A namespace has a dot, so none is called so.
pub const OTHERS: &str = "other";

/// What a file is to its readers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// [`FileRole::name`].
    pub role: &'static str,
    /// `database.collection`; empty if it is none's, or unknown.
    pub collection: String,
    /// Empty if it is no index.
    pub index: String,
}

impl FileName {
    /// Names a collection's own file.
    pub fn of_collection(namespace: &str) -> Self {
        Self {
            role: FileRole::Collection.name(),
            collection: namespace.into(),
            index: String::new(),
        }
    }

    /// Returns whether it is a table whose collection is not known.
    pub(crate) fn is_nameless(&self) -> bool {
        self.collection.is_empty()
    }

    /// Returns whether it is a file that the server keeps for itself, or one of which nothing is known. The journal is
    /// none: whoever writes waits for it.
    fn is_internal(&self) -> bool {
        let is_of_server = || INTERNAL.iter().any(|it| self.collection.starts_with(it));
        self.role != FileRole::Journal.name() && (self.is_nameless() || is_of_server())
    }

    pub(crate) fn labels(&self, server: &str) -> Labels {
        vec![
            ("server", server.into()),
            ("role", self.role.into()),
            ("collection", self.collection.clone()),
            ("index", self.index.clone()),
        ]
    }

    fn others() -> Self {
        Self {
            role: FileRole::Other.name(),
            collection: OTHERS.into(),
            index: String::new(),
        }
    }
}

/// Calls of one kind on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCalls {
    pub name: FileName,
    pub kind: IoKind,
    pub calls: Calls,
}

/// What the calls of one kind on one file did, as the kernel programs count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    pub device_read_bytes: u64,
    pub hits: u64,
    pub misses: u64,
    /// How long they took; how many they are.
    pub latencies: Latencies,
}

impl Calls {
    fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.device_read_bytes += other.device_read_bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.latencies.add(&other.latencies);
    }
}

/// Calls of each kind that was seen.
#[derive(Debug, Clone, Default, PartialEq)]
struct ByKind(BTreeMap<&'static str, Calls>);

impl ByKind {
    fn add(&mut self, kind: IoKind, calls: &Calls) {
        self.0.entry(kind.name()).or_default().add(calls);
    }

    fn add_all(&mut self, other: &Self) {
        for (kind, calls) in &other.0 {
            self.0.entry(kind).or_default().add(calls);
        }
    }

    /// Adds what another did of the kinds that are known here, and returns the rest.
    fn add_known(&mut self, other: &Self) -> Self {
        let mut rest = Self::default();
        for (kind, calls) in &other.0 {
            match self.0.get_mut(kind) {
                Some(known) => known.add(calls),
                None => drop(rest.0.insert(kind, *calls)),
            }
        }
        rest
    }

    /// Adds the kinds of another, with nothing counted.
    fn begin(&mut self, other: &Self) {
        for kind in other.0.keys() {
            self.0.entry(kind).or_default();
        }
    }

    fn latency_ns(&self) -> u64 {
        self.0.values().map(|calls| calls.latencies.sum_ns()).sum()
    }

    fn series(&self) -> usize {
        let mut page = Page::default();
        self.add_to(&mut page, &Vec::new());
        page.series_max()
    }

    fn add_to(&self, page: &mut Page, labels: &Labels) {
        for (kind, calls) in &self.0 {
            let mut with_op = labels.clone();
            with_op.push(("op", (*kind).into()));
            page.add_histogram(&FILE_LATENCY, with_op.clone(), calls.latencies);
            page.add(&FILE_ERRORS, with_op.clone(), calls.errors as f64);
            if *kind != IoKind::Sync.name() {
                page.add(&FILE_BYTES, with_op, calls.bytes as f64);
            }
            if *kind == IoKind::Read.name() {
                let device_bytes = calls.device_read_bytes as f64;
                page.add(&FILE_DEVICE_READ_BYTES, labels.clone(), device_bytes);
                page.add(&FILE_CACHE_HITS, labels.clone(), calls.hits as f64);
                page.add(&FILE_CACHE_MISSES, labels.clone(), calls.misses as f64);
            }
        }
    }
}

/// A file with series of its own.
#[derive(Debug, Clone)]
struct Shown {
    counted: ByKind,
    /// What it did of kinds that were new to it: their counters begin at 0, and this is added with the next reading.
    deferred: ByKind,
    series: usize,
    /// [`FileName::is_internal`].
    is_internal: bool,
    waited_ns: f64,
    since_ns: u64,
    last_call_ns: u64,
}

impl Shown {
    fn is_trivial(&self) -> bool {
        let least_ns = match self.is_internal {
            true => TRIVIAL_INTERNAL_NS,
            false => TRIVIAL_NS,
        };
        self.waited_ns < least_ns
    }

    /// Compares by the claim to a place: longer waiting is more, and the server's own files come last where they are
    /// hardly waited for.
    fn by_claim(&self, other: &Self) -> Ordering {
        let claim_ns = |file: &Self| match file.is_internal && file.is_trivial() {
            true => 0.0,
            false => file.waited_ns,
        };
        let by_waiting = claim_ns(self).total_cmp(&claim_ns(other));
        by_waiting.then_with(|| other.is_internal.cmp(&self.is_internal))
    }

    /// Returns whether this file, which is new, comes in in place of one that is shown.
    fn takes_place_of(&self, shown: &Self, now_ns: u64) -> bool {
        let is_settled = now_ns.saturating_sub(shown.since_ns) >= SHOWN_MIN_NS;
        let may_leave = is_settled || shown.is_trivial();
        if shown.is_internal && !self.is_internal {
            return may_leave && (shown.is_trivial() || self.waited_ns >= shown.waited_ns);
        }
        let is_same_kind = self.is_internal == shown.is_internal;
        let is_unused = now_ns.saturating_sub(shown.last_call_ns) >= UNUSED_NS;
        let is_ahead = may_leave && self.waited_ns > AHEAD * shown.waited_ns;
        !self.is_trivial() && (is_ahead || (is_unused && is_same_kind))
    }
}

/// A file without series of its own.
#[derive(Debug, Clone, Default)]
struct Waiting {
    waited_ns: f64,
    last_call_ns: u64,
    /// What was counted of it when it was shown, and since when it is not.
    left: Option<(ByKind, u64)>,
}

/// The files of one server.
#[derive(Debug, Clone, Default)]
pub struct Files {
    shown: BTreeMap<FileName, Shown>,
    /// All others, recent time counting more.
    waiting: HashMap<FileName, Waiting>,
    others: ByKind,
    /// What others did of kinds that were new to their sum: it begins at 0, and this is added with the next reading.
    deferred: ByKind,
    read_ns: Option<u64>,
}

impl Files {
    /// Adds what was counted since the last time. `now_ns` is CLOCK_MONOTONIC; there is room for `series_max` series,
    /// those of all others together included.
    pub fn add(
        &mut self,
        now_ns: u64,
        counted: impl IntoIterator<Item = FileCalls>,
        series_max: usize,
    ) {
        self.forget_slowly(now_ns);
        self.others.add_all(&std::mem::take(&mut self.deferred));
        for shown in self.shown.values_mut() {
            shown.counted.add_all(&std::mem::take(&mut shown.deferred));
        }
        let mut newly: HashMap<FileName, ByKind> = HashMap::new();
        for FileCalls { name, kind, calls } in counted {
            if calls.latencies.calls() > 0 {
                self.begin_for_others(kind.name());
                newly.entry(name).or_default().add(kind, &calls);
            }
        }
        let mut strangers = Vec::new();
        for (name, counted) in newly {
            let waited_ns = counted.latency_ns() as f64;
            match self.shown.get_mut(&name) {
                Some(shown) => {
                    let unseen = shown.counted.add_known(&counted);
                    shown.counted.begin(&unseen);
                    shown.deferred = unseen;
                    shown.series = shown.counted.series();
                    shown.waited_ns += waited_ns;
                    shown.last_call_ns = now_ns;
                }
                None => {
                    let waiting = self.waiting.entry(name.clone()).or_default();
                    waiting.waited_ns += waited_ns;
                    waiting.last_call_ns = now_ns;
                    let left = waiting.left.clone();
                    let mut begun = left.map(|(left, _)| left).unwrap_or_default();
                    begun.begin(&counted);
                    let stranger = Shown {
                        series: begun.series(),
                        counted: begun,
                        deferred: counted,
                        is_internal: name.is_internal(),
                        waited_ns: waiting.waited_ns,
                        since_ns: now_ns,
                        last_call_ns: now_ns,
                    };
                    strangers.push((name, stranger));
                }
            }
        }
        let is_idle = |shown: &Shown| now_ns.saturating_sub(shown.last_call_ns) >= IDLE_MAX_NS;
        let idle = self.shown.iter().filter(|(_, shown)| is_idle(shown));
        let idle: Vec<FileName> = idle.map(|(name, _)| name.clone()).collect();
        idle.iter().for_each(|name| self.put_out(name));
        self.let_all_in(strangers, now_ns, series_max);
        self.shrink_to(series_max);
    }

    /// Lets those in for which there is room; what the others did is added to the sum of all others.
    fn let_all_in(
        &mut self,
        mut strangers: Vec<(FileName, Shown)>,
        now_ns: u64,
        series_max: usize,
    ) {
        strangers
            .sort_by(|(name_a, a), (name_b, b)| b.by_claim(a).then_with(|| name_a.cmp(name_b)));
        // Where one finds no place, none of its kind that has less of a claim does: users' files, and the server's own.
        let mut is_full = [false; 2];
        for (name, stranger) in strangers {
            let is_full = &mut is_full[usize::from(stranger.is_internal)];
            let refused = match *is_full {
                true => Some(stranger),
                false => self.let_in(name, stranger, now_ns, series_max).err(),
            };
            if let Some(refused) = refused {
                self.add_to_others(&refused.deferred);
                *is_full = true;
            }
        }
    }

    /// Begins the sum of a kind at 0, if it is new to the others: there is room for it from then on.
    fn begin_for_others(&mut self, kind: &'static str) {
        if let Entry::Vacant(sum) = self.others.0.entry(kind) {
            sum.insert(Calls::default());
            self.deferred.0.insert(kind, Calls::default());
        }
    }

    fn add_to_others(&mut self, counted: &ByKind) {
        for (kind, calls) in &counted.0 {
            self.begin_for_others(kind);
            let sums = match self.deferred.0.contains_key(kind) {
                true => &mut self.deferred,
                false => &mut self.others,
            };
            sums.0.entry(kind).or_default().add(calls);
        }
    }

    /// Lets a file in, if there is room or others have to make room for it; otherwise gives it back.
    fn let_in(
        &mut self,
        name: FileName,
        stranger: Shown,
        now_ns: u64,
        series_max: usize,
    ) -> Result<(), Shown> {
        let mut leaving = Vec::new();
        let mut free = series_max.saturating_sub(self.series());
        let mut least: Vec<(&FileName, &Shown)> = self.shown.iter().collect();
        least.sort_by(|(_, a), (_, b)| a.by_claim(b));
        for (other, shown) in least {
            if free >= stranger.series {
                break;
            }
            if stranger.takes_place_of(shown, now_ns) {
                free += shown.series;
                leaving.push(other.clone());
            }
        }
        if free < stranger.series {
            return Err(stranger);
        }
        leaving.into_iter().for_each(|name| self.put_out(&name));
        self.waiting.remove(&name);
        self.shown.insert(name, stranger);
        Ok(())
    }

    fn put_out(&mut self, name: &FileName) {
        if let Some(shown) = self.shown.remove(name) {
            self.add_to_others(&shown.deferred);
            let waiting = Waiting {
                waited_ns: shown.waited_ns,
                last_call_ns: shown.last_call_ns,
                left: Some((shown.counted, self.read_ns.unwrap_or_default())),
            };
            self.waiting.insert(name.clone(), waiting);
        }
    }

    /// Puts files out until the bound holds, after it became smaller or files got more series.
    pub(crate) fn shrink_to(&mut self, series_max: usize) {
        while self.series() > series_max {
            let least = self.shown.iter().min_by(|(_, a), (_, b)| a.by_claim(b));
            let Some(name) = least.map(|(name, _)| name.clone()) else {
                return;
            };
            self.put_out(&name);
        }
    }

    fn forget_slowly(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.read_ns.replace(now_ns).unwrap_or(now_ns));
        let remains = 0.5f64.powf(elapsed_ns as f64 / 1e9 / HALF_LIFE_S);
        for shown in self.shown.values_mut() {
            shown.waited_ns *= remains;
        }
        self.waiting.retain(|_, waiting| {
            waiting.waited_ns *= remains;
            let left = waiting.left.as_ref();
            let may_come_back =
                left.is_some_and(|(_, left_ns)| now_ns.saturating_sub(*left_ns) < IDLE_MAX_NS);
            let is_used = now_ns.saturating_sub(waiting.last_call_ns) < IDLE_MAX_NS;
            (is_used && waiting.waited_ns >= WAITED_MIN_NS) || may_come_back
        });
    }

    /// Returns the number of series, those of all others together included.
    pub fn series(&self) -> usize {
        let shown: usize = self.shown.values().map(|shown| shown.series).sum();
        shown + self.series_of_others()
    }

    /// Returns the number of series of all others together, which are the fewest that there are.
    pub(crate) fn series_of_others(&self) -> usize {
        self.others.series()
    }

    /// Returns the number of files that have been counted lately without series of their own.
    pub fn among_others(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn add_to(&self, page: &mut Page, server: &str) {
        for (name, shown) in &self.shown {
            shown.counted.add_to(page, &name.labels(server));
        }
        self.others.add_to(page, &FileName::others().labels(server));
    }
}

#[cfg(test)]
mod tests;
