//! Measures what users of other load wait before, during and after an index build.

use hdrhistogram::Histogram;
use seekscope_client::Second;

use super::lab::Built;

/// Returns p99 of response time before, during and after the build, ns; seconds that contain its begin or end
/// count as during. `None` if one of the three had no operation.
pub fn p99_ns(seconds: &[Second], build: &Built) -> Option<[u64; 3]> {
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
        let times = times.as_ref().filter(|times| !times.is_empty())?;
        Some(times.value_at_quantile(0.99))
    };
    Some([
        p99(&stretches[0])?,
        p99(&stretches[1])?,
        p99(&stretches[2])?,
    ])
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
            response: Some(histogram(&[response_ns])),
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
        let [before, during, after] = p99_ns(&seconds, &build()).unwrap();
        assert!(before.abs_diff(2000) < 5 && during.abs_diff(5000) < 5 && after.abs_diff(8000) < 8);
    }

    #[test]
    fn without_a_before_or_after_there_is_nothing_to_compare() {
        let seconds: Vec<Second> = (2..5).map(|s| second(s * SECOND_NS, 1000)).collect();
        assert_eq!(p99_ns(&seconds, &build()), None);
        assert_eq!(p99_ns(&[], &build()), None);
    }
}
