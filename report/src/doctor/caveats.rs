//! Says what limits the verdict: what the server would not tell, and that it has only just started.

use seekscope_doctor::evidence::{COUNTERS, Counters};
use seekscope_run::RunDocument;
use seekscope_run::units::{format_list, format_ns, whole};

use crate::numbers::format_share;

/// A server that was up for less than this when the watch began has read little of what its caches will hold, ms.
const YOUNG_MS: f64 = 300_000.0;
/// A cache below this share of its size evicts nothing for lack of room, and has been filling if it grew by so much of
/// its size.
const FULL_SHARE: f64 = 0.7;
const FILLING_SHARE: f64 = 0.1;
/// Things that were not told that are named.
const UNTOLD_MAX: usize = 4;
/// How what was not told begins in the limitations, and how the reasons do or end, where a login or a right is missing.
const UNTOLD: &str = "not known: ";
const NO_LOGIN: &str = "without a login";
const NO_RIGHT: &str = "the user may not run ";

/// Names what the server does not tell without a login or a right, where that includes its counters: next to all that is
/// concluded of its work comes from them.
pub(super) fn untold(document: &RunDocument, counters: &Counters) -> Option<String> {
    if document.is_of_deployment() || counters.sources().contains(&COUNTERS) {
        return None;
    }
    let is_refusal = |why: &str| why.ends_with(NO_LOGIN) || why.starts_with(NO_RIGHT);
    let refused = document.limitations.iter().filter(|l| is_refusal(&l.why));
    let untold: Vec<&str> = refused
        .clone()
        .filter_map(|limitation| limitation.what.strip_prefix(UNTOLD))
        .collect();
    let mut reasons = refused.map(|limitation| limitation.why.as_str());
    let whom = match reasons.any(|why| why.ends_with(NO_LOGIN)) {
        true => "without a login",
        false => "with the rights of this login",
    };
    (!untold.is_empty()).then(|| {
        format!(
            "The server does not tell {whom}: {}. What follows is concluded from its process and its disk alone, and \
             says nothing of its queries, its cache and its settings.",
            format_list(&untold, UNTOLD_MAX, "; ")
        )
    })
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
    use seekscope_run::document::Limitation;

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
        let missing = |what: &str, why: &str| Limitation {
            what: what.into(),
            why: why.into(),
            remedy: String::new(),
        };
        document.limitations = vec![
            missing(
                "not known: its parameters",
                "nobody may run getParameter without a login",
            ),
            missing("not known: its oplog", "there is none"),
        ];
        let told = untold(&document, &Counters::default()).unwrap();
        let expected = "The server does not tell without a login: its parameters. What follows";
        assert!(told.starts_with(expected), "{told}");
        assert_eq!(
            untold(&document, &counted(&[("uptimeMillis", 1, 1.0)])),
            None
        );
        document.limitations[0].why = "the user may not run getParameter".into();
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
