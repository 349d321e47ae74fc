//! Says what limits the verdict: what the server would not tell, and that it has only just started.

use seekscope_doctor::evidence::{COUNTERS, Counters};
use seekscope_run::units::{format_list, format_ns, whole};
use seekscope_run::{Lacking, RunDocument};

use crate::numbers::format_share;

/// A server that was up for less than this when the watch began has read little of what its caches will hold, ms.
const YOUNG_MS: f64 = 300_000.0;
/// A cache below this share of its size evicts nothing for lack of room, and has been filling if it grew by this much
/// of its size.
const FULL_SHARE: f64 = 0.7;
const FILLING_SHARE: f64 = 0.1;
/// Things that were not told that are named.
const UNTOLD_MAX: usize = 4;

/// Names what the server does not tell without a login or a right, where that includes its counters: next to all that is
/// concluded of its work comes from them.
pub(super) fn untold(document: &RunDocument, counters: &Counters) -> Option<String> {
    if document.is_of_deployment() || counters.sources().contains(&COUNTERS) {
        return None;
    }
    let untold = &document.examination.as_ref()?.examined()?.untold;
    let whom = match untold.first()?.lacking {
        Lacking::Login => "without a login",
        Lacking::Right => "with the rights of this login",
    };
    let told: Vec<&str> = untold.iter().map(|one| one.what.as_str()).collect();
    Some(format!(
        "The server does not tell {whom}: {}. What follows is concluded from its process and its disk alone, and \
         says nothing of its queries, its cache and its settings.",
        format_list(&told, UNTOLD_MAX, "; ")
    ))
}

/// Says that the server has only just started, or still fills its cache, and that it is to be looked at again.
pub(super) fn cold_start(counters: &Counters) -> Option<String> {
    const AGAIN: &str = "what is read for the first time has to come from the disk, whatever the cache; ask again in \
                         some minutes.";
    let gauge = |name: &str| counters.get(COUNTERS, name);
    let up_ms = gauge("uptimeMillis").and_then(|series| series.first());
    if let Some(up_ms) = up_ms.filter(|up_ms| *up_ms < YOUNG_MS) {
        return Some(format!(
            "The server had been up for {} when the watch began: {AGAIN}",
            format_ns(whole(up_ms * 1e6))
        ));
    }
    let filled = gauge("wiredTiger.cache.bytes currently in the cache")?;
    let most = gauge("wiredTiger.cache.maximum bytes configured")?.last()?;
    let [begin, end] = [filled.first()?, filled.last()?].map(|bytes| bytes / most);
    let is_filling = begin < FULL_SHARE && end - begin >= FILLING_SHARE;
    is_filling.then(|| {
        format!(
            "The server's cache was still filling, from {} to {} during the watch: {AGAIN}",
            format_share(begin),
            format_share(end)
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::CounterSample;
    use seekscope_run::{ExaminationRecord, MemberRecord, Untold};

    use super::*;

    fn counted(values: &[(&str, u64, f64)]) -> Counters {
        let sample = |&(name, t_ns, value): &(&str, u64, f64)| CounterSample {
            source: COUNTERS.into(),
            name: name.into(),
            t_ns,
            value,
        };
        Counters::new(values.iter().map(sample))
    }

    #[test]
    fn what_a_server_does_not_tell_is_named() {
        let mut document = RunDocument::begin("doctor", Vec::new());
        assert_eq!(untold(&document, &Counters::default()), None);
        let lack = |document: &mut RunDocument, lacking| {
            let member = MemberRecord {
                untold: vec![Untold {
                    what: "its parameters".into(),
                    lacking,
                }],
                ..MemberRecord::default()
            };
            document.examination = Some(ExaminationRecord {
                members: vec![member],
                ..ExaminationRecord::default()
            });
        };
        lack(&mut document, Lacking::Login);
        let told = untold(&document, &Counters::default()).unwrap();
        let expected = "The server does not tell without a login: its parameters. What follows";
        assert!(told.starts_with(expected), "{told}");
        assert_eq!(
            untold(&document, &counted(&[("uptimeMillis", 1, 1.0)])),
            None
        );
        lack(&mut document, Lacking::Right);
        let told = untold(&document, &Counters::default()).unwrap();
        assert!(
            told.contains("with the rights of this login: its p"),
            "{told}"
        );
    }

    /// A regression: ten seconds after its start, waits for cold files were unexplained.
    #[test]
    fn a_server_that_has_just_started_is_looked_at_again() {
        let young = cold_start(&counted(&[("uptimeMillis", 1, 10_000.0)])).unwrap();
        assert!(
            young.starts_with("The server had been up for 10.0 s when"),
            "{young}"
        );
        let filling = |from: f64| {
            let cache = "wiredTiger.cache.bytes currently in the cache";
            cold_start(&counted(&[
                ("uptimeMillis", 1, 1e9),
                ("wiredTiger.cache.maximum bytes configured", 1, 100.0),
                (cache, 1, from),
                (cache, 2, 75.0),
            ]))
        };
        assert!(filling(13.0).unwrap().contains("from 13.0 % to 75.0 %"));
        assert_eq!(filling(72.0), None);
    }
}
