//! What the server's log tells of operations that it calls slow: how often they ran, what they took, and what they examined
//! for what they found.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LoggedOperations, OperationSeen};

use super::Examined;
use crate::Evidence;
use crate::wording::{capitalised, duration};

/// Fewest such operations of one kind; one or two may be somebody's report.
const LOGGED_MIN: u64 = 3;
/// Share of the time that must have gone to reading files for it to be told.
const READING_TOLD_MIN: f64 = 0.1;

/// Returns whether there are enough of them in the log.
pub(super) fn is_known_well(operation: &OperationSeen) -> bool {
    of(operation).is_some()
}

fn of(operation: &OperationSeen) -> Option<&LoggedOperations> {
    let logged = operation.logged.as_ref();
    logged.filter(|logged| logged.count >= LOGGED_MIN)
}

/// Returns how long those took together that the log tells of, s per second of the watch.
pub(super) fn s_per_s(evidence: &Evidence<'_>, operation: &OperationSeen) -> Option<f64> {
    Some(of(operation)?.took_us as f64 / 1e6 / evidence.slow_log_s()?)
}

/// Tells of them in words.
pub(super) fn sentence(
    evidence: &Evidence<'_>,
    operation: &OperationSeen,
    plan: &str,
) -> Option<String> {
    let logged = of(operation)?;
    let covered_s = evidence.slow_log_s()?;
    let s = |us: u64| duration(us as f64 / 1e6);
    let examined = match (logged.documents_examined, logged.keys_examined) {
        (documents, 0) => format!("{} documents", format_count(documents)),
        (documents, keys) => format!(
            "{} keys of indexes and {} documents",
            format_count(keys),
            format_count(documents)
        ),
    };
    let is_much_reading = logged.reading_us as f64 >= logged.took_us as f64 * READING_TOLD_MIN;
    let reading = match is_much_reading && logged.read_bytes > 0 {
        true => format!(
            " They spent {} of it reading {} from files.",
            s(logged.reading_us),
            format_bytes(logged.read_bytes)
        ),
        false => String::new(),
    };
    let found = match (results(operation, logged), logged.first_batches) {
        (Some(results), _) => format!(" for {} results", format_count(results)),
        (None, 0) => String::new(),
        (None, _) => " for results that were returned in several batches".into(),
    };
    let kind = format!("{} with plan {plan}", capitalised(&operation.kind));
    Some(format!(
        "{kind} was called slow {} times in {} by the server's log: {} in all, {} at most; {examined} were \
         examined{found} (getLog).{reading}",
        format_count(logged.count),
        duration(covered_s),
        s(logged.took_us),
        s(logged.longest_us)
    ))
}

/// Returns how many results they had; `None` if the log does not tell: its lines of these commands have no such number,
/// and of a sort whose results are more than one batch it has the first, while the others are rarely slow.
fn results(operation: &OperationSeen, logged: &LoggedOperations) -> Option<u64> {
    const UNTOLD: [&str; 3] = ["command distinct", "command count", "command mapreduce"];
    let kind = operation.kind.to_ascii_lowercase();
    let is_told = logged.results > 0 || !UNTOLD.contains(&kind.as_str());
    (is_told && logged.first_batches == 0).then_some(logged.results)
}

impl Examined {
    /// Returns what such operations examined, by what the log tells of the slow ones; `None` where it tells of too few or
    /// not of their results, or where what they ask for is not known.
    pub(super) fn of_logged(evidence: &Evidence<'_>, operation: &OperationSeen) -> Option<Self> {
        let covered_s = evidence.slow_log_s()?;
        let logged = of(operation).filter(|_| operation.filter.is_some())?;
        let per_s = |count: u64| count as f64 / covered_s;
        Some(Self {
            documents_per_s: per_s(logged.documents_examined),
            keys_per_s: per_s(logged.keys_examined),
            results_per_s: per_s(results(operation, logged)?),
            least_per_s: per_s(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FilterSeen, Finding, KeySeen};

    use super::super::DETECTOR;
    use super::*;
    use crate::testing::Recording;

    /// Queries of `status` that the log called slow in ten of thirty seconds.
    fn logged(plan: &str, count: u64, results: u64) -> OperationSeen {
        OperationSeen {
            kind: "query".into(),
            namespace: Some("shop.orders".into()),
            plan: Some(plan.into()),
            filter: Some(FilterSeen {
                fields: vec!["status".into()],
                equal: vec!["status".into()],
                ..FilterSeen::default()
            }),
            logged: Some(LoggedOperations {
                count,
                took_us: count * 250_000,
                longest_us: 400_000,
                documents_examined: count * 9_000,
                keys_examined: if plan == "COLLSCAN" { 0 } else { count * 9_000 },
                results,
                first_batches: 0,
                read_bytes: 5_000_000,
                reading_us: count * 100_000,
            }),
            ..OperationSeen::default()
        }
    }

    fn found(operations: Vec<OperationSeen>) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.examined().operation_looks = 30;
        recording.examined().slow_log_s = Some(10.0);
        recording.examined().operations = operations;
        recording.findings(&DETECTOR)
    }

    #[test]
    fn scans_that_no_look_saw_are_named_with_their_time() {
        let scans = found(vec![logged("COLLSCAN", 8, 40)]);
        let [scan] = scans.as_slice() else {
            panic!("{scans:#?}");
        };
        assert_eq!(scan.id, "query.collection-scan");
        assert_eq!(scan.saves_s_per_hour, Some(720.0), "8 of 0.25 s in 10 s");
        let said = scan.evidence.join(" ");
        for part in [
            "Query with plan COLLSCAN was called slow 8 times in 10.0 s by the server's log: 2.00 s in all, 400 ms at most",
            "72,000 documents were examined for 40 results (getLog). They spent 800 ms of it reading 4.77 MiB from files.",
            "It selects by status, and nearly all",
            "Those that the log calls slow took 12 min per hour; an index saves that at most (getLog)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("looks"), "{said}");
        assert_eq!(
            found(vec![logged("COLLSCAN", 2, 40)]),
            [],
            "somebody's report"
        );
    }

    #[test]
    fn the_log_tells_what_an_index_would_spare_of_each_kind() {
        let scans = found(vec![logged("COLLSCAN", 8, 36_000)]);
        assert_eq!(scans[0].saves_s_per_hour, None);
        let said = scans[0].evidence.join(" ");
        assert!(
            said.contains("one in less than 10 of the documents"),
            "{said}"
        );
        assert!(said.contains("an index would save little of it"), "{said}");
    }

    /// A regression: of the lines of `distinct`, which have no number of results, "0 results" was said.
    #[test]
    fn results_that_the_log_does_not_tell_are_not_none() {
        let distinct = |plan: &str| {
            let mut operation = logged(plan, 8, 0);
            operation.kind = "command distinct".into();
            let filter = operation.filter.as_mut().unwrap();
            (filter.reduced, filter.distinct) = (true, true);
            filter.keys = vec![KeySeen {
                field: "region".into(),
                descending: false,
            }];
            found(vec![operation])
        };
        let scan = &distinct("COLLSCAN")[0];
        let said = scan.evidence.join(" ");
        assert!(
            said.contains("72,000 documents were examined (getLog)"),
            "{said}"
        );
        assert!(!said.contains("results (getLog)"), "{said}");
        assert_eq!(
            scan.saves_s_per_hour, None,
            "how many it takes is not known"
        );
        assert_eq!(distinct("IXSCAN { kind: 1 }"), []);
        let find = &found(vec![logged("COLLSCAN", 8, 0)])[0];
        assert!(find.evidence[0].contains("for 0 results"), "{find:?}");
    }

    /// A regression: of four sorts with 700,000 results each, "404 results" was said, the first batches.
    #[test]
    fn the_first_batches_are_not_all_results() {
        let mut sorts = logged("COLLSCAN", 4, 404);
        sorts.logged.as_mut().unwrap().first_batches = 4;
        let scan = &found(vec![sorts])[0];
        let told =
            "36,000 documents were examined for results that were returned in several batches";
        assert!(scan.evidence[0].contains(told), "{scan:?}");
        assert_eq!(
            scan.saves_s_per_hour, None,
            "how many it takes is not known"
        );
    }

    #[test]
    fn the_operations_that_a_finding_is_about_are_recorded() {
        let by_day = |kind: &str| {
            let mut operation = logged("COLLSCAN", 4, 4);
            operation.kind = kind.into();
            let filter = operation.filter.as_mut().unwrap();
            (filter.fields, filter.equal) = (vec!["day".into()], vec!["day".into()]);
            operation
        };
        let all = vec![by_day("query"), logged("COLLSCAN", 8, 8), by_day("getmore")];
        let scan = found(all).remove(0);
        let kinds: Vec<&str> = scan.operations.iter().map(|of| of.kind.as_str()).collect();
        assert_eq!(kinds, ["query"], "the dearest: {scan:?}");
        let filter = scan.operations[0].filter.as_ref().unwrap();
        assert_eq!(filter.fields, ["status"]);
        let alike = found(vec![by_day("query"), by_day("getmore")]).remove(0);
        let kinds: Vec<&str> = alike.operations.iter().map(|of| of.kind.as_str()).collect();
        assert_eq!(kinds, ["query", "getmore"]);
        let by_index = found(vec![logged("IXSCAN { kind: 1 }", 8, 40)]).remove(0);
        assert_eq!(by_index.operations.len(), 1, "{by_index:?}");
    }

    #[test]
    fn more_time_that_was_seen_than_logged_counts() {
        let mut long = logged("COLLSCAN", 3, 40);
        (long.looks, long.sightings, long.at_once) = (20, 20, 1);
        long.running_us = 9_000_000;
        let mut recording = Recording::new();
        recording.examined().operation_looks = 30;
        recording.examined().slow_log_s = Some(30.0);
        recording.examined().operations = vec![long];
        let seen = recording.examine(|evidence, _| {
            let operation = &evidence.examined().unwrap().operations[0];
            super::super::reading::took_s(evidence, operation).unwrap()
                / evidence.observed_s().unwrap()
        });
        assert!((seen - 20.0 / 30.0).abs() < 1e-9, "{seen}");
    }

    #[test]
    fn an_index_that_is_read_in_vain_is_named_by_the_log() {
        let plan = "IXSCAN { kind: 1 }";
        let scans = found(vec![logged(plan, 8, 40)]);
        let [scan] = scans.as_slice() else {
            panic!("{scans:#?}");
        };
        assert_eq!(scan.id, "query.index-scan");
        assert_eq!(
            scan.title,
            "Operations on shop.orders read 1,800 keys of an index and 1,800 documents for each result"
        );
        let saves = scan.saves_s_per_hour.unwrap();
        assert!((715.0..720.0).contains(&saves), "{saves}");
        assert_eq!(found(vec![logged(plan, 8, 36_000)]), []);
        let mut served = logged("IXSCAN { status: 1 }", 8, 40);
        served.logged.as_mut().unwrap().results = 72_000;
        assert_eq!(found(vec![served]), []);
        let none = found(vec![logged(plan, 8, 0)]);
        assert_eq!(
            none[0].title,
            "Operations on shop.orders read 7,200 keys of an index per second for next to no results"
        );
    }
}
