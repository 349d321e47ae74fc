//! What a trace that only counts keeps: how often each file was used over an interval, and how long that took.

use serde::{Deserialize, Serialize};

use crate::IoOp;

/// Totals of one file and operation over one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTotals {
    /// Start of the interval, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    pub duration_ns: u64,
    pub file_id: u32,
    #[serde(with = "op_name")]
    pub op: IoOp,
    pub calls: u64,
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes sent to the block layer for reading, read-ahead included.
    pub device_read_bytes: u64,
    pub hits: u64,
    pub misses: u64,
    pub waited_for_others: u64,
    pub direct: u64,
    /// Sum of the latencies of the calls.
    pub latency_sum_ns: u64,
    /// Entry i counts the calls of 2^i to 2^(i+1) - 1 ns; the last also counts all longer ones.
    pub latency_counts: Vec<u64>,
}

impl FileTotals {
    /// Returns an upper bound of the latency that this many of a thousand calls did not exceed, ns: the end of
    /// its bucket, so at most twice the true value. 0 if there are no calls.
    pub fn latency_quantile_ns(counts: &[u64], per_mille: u64) -> u64 {
        let calls: u64 = counts.iter().sum();
        let wanted = calls.saturating_mul(per_mille).div_ceil(1000).max(1);
        let mut below = 0;
        for (bucket, count) in counts.iter().enumerate() {
            below += count;
            if *count > 0 && below >= wanted {
                return (1u64 << (bucket + 1).min(63)) - 1;
            }
        }
        0
    }
}

/// Stores an operation as the word that `io.parquet` has.
mod op_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::IoOp;

    pub(super) fn serialize<S: Serializer>(op: &IoOp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(op.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<IoOp, D::Error> {
        let name = String::deserialize(from)?;
        IoOp::from_name(&name).ok_or_else(|| D::Error::custom("unknown operation"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_end_of_its_bucket() {
        let mut counts = vec![0; 40];
        counts[10] = 99;
        counts[20] = 1;
        let quantile = |per_mille| FileTotals::latency_quantile_ns(&counts, per_mille);
        assert_eq!((quantile(500), quantile(990)), (2047, 2047));
        assert_eq!(
            (quantile(995), quantile(1000)),
            ((1 << 21) - 1, (1 << 21) - 1)
        );
        assert_eq!(FileTotals::latency_quantile_ns(&[0; 40], 500), 0);
    }
}
