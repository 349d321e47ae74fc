//! Measures what users of other load wait before, during and after an index build.

use hdrhistogram::Histogram;
use seekscope_client::Second;

use super::lab::Built;

/// A percentile needs at least one operation beyond it.
const OPERATIONS_MIN: u64 = 100;
/// Seconds that contain the begin or the end of a build count as during it: of a shorter build they would be nearly all
/// that is counted.
const BUILD_NS_MIN: u64 = 2_000_000_000;

/// Returns p99 of response time before, during and after the build, ns; seconds that contain its begin or end
/// count as during. `None` for each that had too few operations or was too short to tell, and if there was none at all.
pub fn p99_ns(seconds: &[Second], build: &Built) -> Option<[Option<u64>; 3]> {
    let mut stretches = [const { None::<Histogram<u64>> }; 3];
    for second in seconds {
        let ended_ns = second.t_ns.saturating_add(second.duration_ns);
        let stretch = if ended_ns <= build.started_ns {
            0
        } else if second.t_ns < build.ended_ns {
            1
        } else {
            2
        };
        for operation in &second.operations {
            let times = operation.response.as_ref().unwrap_or(&operation.service);
            match &mut stretches[stretch] {
                // Both have the engine's bounds.
                Some(sum) => sum.add(times).ok()?,
                empty => *empty = Some(times.clone()),
            }
        }
    }
    let p99 = |times: &Option<Histogram<u64>>| {
        let times = times
            .as_ref()
            .filter(|times| times.len() >= OPERATIONS_MIN)?;
        Some(times.value_at_quantile(0.99))
    };
    let is_long = build.ended_ns.saturating_sub(build.started_ns) >= BUILD_NS_MIN;
    let [before, during, after] = &stretches;
    let told = [p99(before), p99(during).filter(|_| is_long), p99(after)];
    told.iter().any(Option::is_some).then_some(told)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use seekscope_client::OperationSecond;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn histogram(ns: &[u64]) -> Histogram<u64> {
        let mut times = Histogram::new(3).unwrap();
        ns.iter().for_each(|ns| times.record(*ns).unwrap());
        times
    }

    fn second(t_ns: u64, response_ns: u64) -> Second {
        let operation = OperationSecond {
            operation: 0,
            done: 1,
            errors: BTreeMap::new(),
            documents: 1,
            bytes: 1,
            service: histogram(&[1]),
            response: Some(histogram(&[response_ns; 50])),
        };
        Second {
            t_ns,
            duration_ns: SECOND_NS,
            operations: vec![operation],
            transactions: 1,
            in_flight: 1.0,
            backlog: 0,
            lag: histogram(&[]),
            client_cpu_ns: 0,
        }
    }

    fn build() -> Built {
        Built::between(5 * SECOND_NS / 2, 9 * SECOND_NS / 2)
    }

    #[test]
    fn seconds_are_before_during_or_after_the_build() {
        let seconds: Vec<Second> = (0..8)
            .map(|s| second(s * SECOND_NS, 1000 * (s + 1)))
            .collect();
        let told = p99_ns(&seconds, &build()).unwrap();
        let [before, during, after] = told.map(Option::unwrap);
        assert!(before.abs_diff(2000) < 5 && during.abs_diff(5000) < 5 && after.abs_diff(8000) < 8);
    }

    #[test]
    fn too_few_operations_and_too_short_builds_tell_nothing() {
        let seconds: Vec<Second> = (1..6).map(|s| second(s * SECOND_NS, 1000)).collect();
        let told = p99_ns(&seconds, &build()).unwrap();
        assert_eq!(
            told.map(|p99| p99.is_some()),
            [false, true, false],
            "50 before and after"
        );
        let seconds: Vec<Second> = (0..8).map(|s| second(s * SECOND_NS, 1000)).collect();
        let short = Built::between(5 * SECOND_NS / 2, 9 * SECOND_NS / 2 - 1);
        let told = p99_ns(&seconds, &short).unwrap();
        assert_eq!(told.map(|p99| p99.is_some()), [true, false, true]);
        assert_eq!(p99_ns(&[], &build()), None);
    }
}
