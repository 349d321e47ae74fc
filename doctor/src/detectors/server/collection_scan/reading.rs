//! What the scans of a collection cost: the time that they took, or that their threads waited for what they read.

use seekscope_pattern::ThreadRole;
use seekscope_run::OperationSeen;

use super::{Kind, collection_of, logged};
use crate::wording::duration;
use crate::{Answers, Evidence};

/// Share of the time that was counted, or seen, which the log must tell of to be believed: it has the slow ones alone, and
/// of those that have ended.
const LOGGED_MIN: f64 = 0.5;
/// Share that is nearly all.
const NEARLY_ALL: f64 = 0.95;
/// Share of the longest scan that the server must have counted at least for its count to be believed.
const COUNTED_MIN: f64 = 0.5;
/// Time between two looks at what runs, at least, s, for runs that do not tell how many there were.
const LOOK_S: f64 = 1.0;

/// Returns how long such operations ran together that were seen in looks at what runs, s.
fn seen_running_s(evidence: &Evidence<'_>, operation: &OperationSeen) -> Option<f64> {
    let observed_s = evidence.observed_s()?;
    let looks = f64::from(operation.looks);
    let running_s = match evidence.examined()?.operation_looks {
        0 => looks * LOOK_S,
        all => looks / f64::from(all) * observed_s,
    };
    let at_once = f64::from(operation.times_seen()) / looks.max(1.0);
    Some(running_s.min(observed_s) * at_once)
}

/// Returns how long such operations ran together: by the log, or by the looks at what runs where those saw more, s.
pub(super) fn took_s(evidence: &Evidence<'_>, operation: &OperationSeen) -> Option<f64> {
    let logged = logged::s_per_s(evidence, operation).zip(evidence.observed_s());
    let logged_s = logged.map(|(s_per_s, observed_s)| s_per_s * observed_s);
    believed(logged_s, seen_running_s(evidence, operation), |s| *s)
}

/// Returns what the log tells, unless it tells of much less time than was counted or seen.
fn believed<T>(logged: Option<T>, seen: Option<T>, time: fn(&T) -> f64) -> Option<T> {
    match (logged, seen) {
        (Some(logged), Some(seen)) if time(&logged) < time(&seen) * LOGGED_MIN => Some(seen),
        (logged, seen) => logged.or(seen),
    }
}

/// The cost of a collection's scans.
pub(super) struct Reading {
    pub(super) s_per_hour: f64,
    pub(super) what: &'static str,
    pub(super) source: &'static str,
}

impl Reading {
    /// Returns the time that the operations took, by the log or as the server counts it, else what their threads waited
    /// for reads: a scan that memory serves waits for nothing and takes its time all the same.
    pub(super) fn of(
        evidence: &Evidence<'_>,
        answers: &Answers,
        operation: &OperationSeen,
        is_meant: fn(&OperationSeen) -> bool,
    ) -> Option<Self> {
        let namespace = operation.namespace.as_deref()?;
        let running = Self::running(evidence, operation, is_meant);
        let logged = Self::logged(evidence, operation, is_meant);
        believed(logged, running, |reading| reading.s_per_hour)
            .or_else(|| Self::waiting(answers, namespace))
    }

    /// Sums up what the log tells of such operations on the collection; `None` if it tells of none.
    fn logged(
        evidence: &Evidence<'_>,
        operation: &OperationSeen,
        is_meant: fn(&OperationSeen) -> bool,
    ) -> Option<Self> {
        let all = evidence.examined()?.operations.iter();
        let on_it = all.filter(|other| other.namespace == operation.namespace && is_meant(other));
        let known = on_it.filter_map(|other| logged::s_per_s(evidence, other));
        let s_per_s = known.reduce(|sum, s_per_s| sum + s_per_s)?;
        Some(Self {
            s_per_hour: s_per_s * 3600.0,
            what: "Those that the log calls slow took",
            source: "getLog",
        })
    }

    /// Estimates from running operations: the server counts the time of all operations on a collection
    /// together, and the share of each kind is how often it was seen running.
    fn running(
        evidence: &Evidence<'_>,
        operation: &OperationSeen,
        is_meant: fn(&OperationSeen) -> bool,
    ) -> Option<Self> {
        let member = evidence.examined()?;
        let namespace = &operation.namespace;
        let facts = collection_of(evidence, operation)?;
        let counted_ns = facts
            .reading_ns?
            .saturating_add(facts.writing_ns.unwrap_or(0));
        let on_it = member.operations.iter();
        let on_it = on_it.filter(|other| other.namespace == *namespace);
        let observed_s = evidence.observed_s()?;
        let (mut scanning, mut all, mut longest_s, mut at_once) = (0.0, 0.0, 0.0, 0.0);
        let mut seen_s = 0.0;
        for other in on_it {
            let seen = f64::from(other.times_seen());
            all += seen;
            if is_meant(other) {
                scanning += seen;
                seen_s += seen_running_s(evidence, other)?;
                at_once += f64::from(other.at_once.max(1));
                // What it ran before the watch began is no time of the watch.
                let running_s = (other.running_us as f64 / 1e6).min(observed_s);
                longest_s = f64::max(longest_s, running_s);
            }
        }
        let counted_s = counted_ns as f64 / 1e9 * (scanning / f64::max(all, 1.0));
        let per_hour = |s: f64| s / observed_s * 3600.0;
        // MongoDB 4.4 counts next to nothing of the time of an aggregation that groups.
        if counted_s < longest_s * COUNTED_MIN {
            return Some(Self {
                s_per_hour: per_hour(f64::max(seen_s, longest_s)),
                what: "The scans were seen running for",
                source: "currentOp",
            });
        }
        // The server counts an operation when it ends, also what ran before the watch began.
        let counted_s = f64::min(counted_s, at_once * observed_s);
        Some(Self {
            s_per_hour: per_hour(counted_s),
            what: "The scans took",
            source: "top, currentOp",
        })
    }

    /// Returns the waiting of application threads that read the collection.
    fn waiting(answers: &Answers, namespace: &str) -> Option<Self> {
        let mut users = answers.device_users.iter().filter(|user| {
            user.namespace.as_deref() == Some(namespace)
                && user.thread_role == ThreadRole::Application
                && !user.writes
        });
        let first = users.next()?;
        let waiting_s_per_s = users.fold(first.waiting_s_per_s, |sum, u| sum + u.waiting_s_per_s);
        Some(Self {
            s_per_hour: waiting_s_per_s * 3600.0,
            what: "Its readers waited",
            source: first.source(),
        })
    }

    /// `spared_share` is the share of the time of those that an index would spare.
    pub(super) fn sentence(&self, kind: Kind, spared_share: f64) -> String {
        let saved = match kind {
            _ if kind.is_spared() && spared_share < NEARLY_ALL => {
                let spared = duration(self.s_per_hour * spared_share);
                let what = format!(
                    "the one named here takes {spared} of it at most, which an index saves"
                );
                return self.with(&what);
            }
            Kind::Selective | Kind::FirstOfMatches | Kind::ByKeys => "an index saves that at most",
            Kind::WantsAll | Kind::Natural => "reading less often saves it",
            Kind::TakesMany => "an index would save little of it",
            Kind::BeyondIndex | Kind::Unknown => "what an index would save of it is not known",
        };
        self.with(saved)
    }

    fn with(&self, saved: &str) -> String {
        let Self { what, source, .. } = self;
        let s = duration(self.s_per_hour);
        format!("{what} {s} per hour; {saved} ({source}).")
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{CollectionFacts, FilterSeen};

    use super::super::DETECTOR;
    use super::*;
    use crate::testing::{Recording, START_NS};

    /// Two scans at once that were seen in each of three looks in 3 s, and had begun before.
    fn begun_before(reading_ns: u64) -> Recording {
        let mut recording = Recording::new();
        recording.document.phases[0].ended_ns = START_NS + 3_000_000_000;
        recording.examined().operation_looks = 3;
        recording.examined().operations = vec![OperationSeen {
            kind: "query".into(),
            namespace: Some("shop.orders".into()),
            plan: Some("COLLSCAN".into()),
            running_us: 10_500_000,
            looks: 3,
            at_once: 2,
            sightings: 6,
            filter: Some(FilterSeen {
                fields: vec!["status".into()],
                ..FilterSeen::default()
            }),
            ..OperationSeen::default()
        }];
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            reading_ns: Some(reading_ns),
            ..CollectionFacts::default()
        }];
        recording
    }

    fn cost(recording: &Recording) -> String {
        let found = recording.findings(&DETECTOR).remove(0);
        let mut told = found.evidence.into_iter();
        let cost = told.find(|sentence| sentence.starts_with("The scans"));
        cost.unwrap()
    }

    /// A regression: of two scans at once that had run for 10.5 s it was said that they ran for 3.5 h per hour.
    #[test]
    fn what_ran_before_the_watch_does_not_count() {
        let seen = cost(&begun_before(0));
        let begin = "The scans were seen running for 2.0 h per hour";
        assert!(seen.starts_with(begin), "{seen}");
        let mut once = begun_before(0);
        let operation = &mut once.examined().operations[0];
        (operation.looks, operation.sightings, operation.at_once) = (1, 1, 1);
        let other = OperationSeen {
            kind: "getmore".into(),
            looks: 3,
            sightings: 3,
            running_us: 0,
            ..operation.clone()
        };
        once.examined().operations.push(other);
        let seen = cost(&once);
        // A look of three, and three of three: 4 s of 3.
        let begin = "The scans were seen running for 80 min per hour";
        assert!(seen.starts_with(begin), "{seen}");
    }

    /// 2 s that the server counts are most of the 3 s in which the longest can have run.
    #[test]
    fn a_count_is_compared_with_what_ran_within_the_watch() {
        let counted = cost(&begun_before(2_000_000_000));
        let begin = "The scans took 40 min per hour";
        assert!(counted.starts_with(begin), "{counted}");
    }
}
