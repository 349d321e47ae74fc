//! The number of threads in each step: 1, 2, 4, 8 … and finally as many as were requested.

/// Number of samples in each step.
pub(crate) const SAMPLES_PER_STEP: usize = 8;

/// Returns the thread counts of the steps, rising to `threads`; none for 0.
pub(crate) fn thread_counts(threads: u32) -> impl Iterator<Item = u32> {
    let doubling = |&count: &u32| count.checked_mul(2);
    let below = std::iter::successors(Some(1), doubling).take_while(move |&count| count < threads);
    below.chain((threads > 0).then_some(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_what_was_asked_for() {
        let steps = |threads| thread_counts(threads).collect::<Vec<_>>();
        assert!(steps(0).is_empty());
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(2), [1, 2]);
        assert_eq!(steps(3), [1, 2, 3]);
        assert_eq!(steps(20), [1, 2, 4, 8, 16, 20]);
        assert_eq!(steps(32), [1, 2, 4, 8, 16, 32]);
        assert_eq!(steps(u32::MAX).len(), 33);
    }
}
