//! Counts that the kernel programs keep per file and operation, instead of sending events.

use seekscope_run::IoOp;

use crate::decode::FileKey;

/// Latency buckets: bucket i holds latencies from 2^i to 2^(i+1) - 1 ns, the last all above.
pub const LATENCY_BUCKETS: usize = 40;

/// The key of an entry: `struct total_key` in bpf/record.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KernelTotals {
    pub(crate) file: FileKey,
    pub(crate) op: IoOp,
}

/// The counts of an entry: `struct totals` in bpf/record.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawTotals {
    pub calls: u64,
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    pub device_read_bytes: u64,
    pub hits: u64,
    pub misses: u64,
    pub waited_for_others: u64,
    pub direct: u64,
    /// Sum over all calls.
    pub latency_ns: u64,
    pub latency_buckets: [u64; LATENCY_BUCKETS],
}

/// Counts for one file and operation since they were last fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTotals {
    pub file_id: u32,
    pub op: IoOp,
    pub totals: RawTotals,
}

impl RawTotals {
    /// Returns what was added since `before`. All counts only rise.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut buckets = self.latency_buckets;
        for (count, earlier) in buckets.iter_mut().zip(before.latency_buckets) {
            *count = count.saturating_sub(earlier);
        }
        let since = |figure: fn(&Self) -> u64| figure(self).saturating_sub(figure(before));
        Self {
            calls: since(|t| t.calls),
            errors: since(|t| t.errors),
            bytes: since(|t| t.bytes),
            device_read_bytes: since(|t| t.device_read_bytes),
            hits: since(|t| t.hits),
            misses: since(|t| t.misses),
            waited_for_others: since(|t| t.waited_for_others),
            direct: since(|t| t.direct),
            latency_ns: since(|t| t.latency_ns),
            latency_buckets: buckets,
        }
    }
}

impl KernelTotals {
    /// Decodes an entry of the table; `None` for one that no program writes.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<(Self, RawTotals)> {
        let words = |bytes: &[u8]| -> Vec<u64> {
            bytes
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok())
                .map(u64::from_ne_bytes)
                .collect()
        };
        let word = |at: usize| Some(u32::from_ne_bytes(key.get(at..at + 4)?.try_into().ok()?));
        let file = FileKey {
            inode: *words(key).first()?,
            device: word(8)?,
        };
        let op = IoOp::from_code(u8::try_from(word(12)?).ok()?)?;
        let value = words(value);
        let [
            calls,
            errors,
            bytes,
            device_read_bytes,
            hits,
            misses,
            waited,
            direct,
            latency_ns,
            rest @ ..,
        ] = value.as_slice()
        else {
            return None;
        };
        let totals = RawTotals {
            calls: *calls,
            errors: *errors,
            bytes: *bytes,
            device_read_bytes: *device_read_bytes,
            hits: *hits,
            misses: *misses,
            waited_for_others: *waited,
            direct: *direct,
            latency_ns: *latency_ns,
            latency_buckets: rest.try_into().ok()?,
        };
        Some((Self { file, op }, totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_table() {
        let mut key = 77u64.to_ne_bytes().to_vec();
        key.extend((254u32 << 20).to_ne_bytes());
        key.extend(u32::from(IoOp::Fsync as u8).to_ne_bytes());
        let value: Vec<u8> = (0..49u64).flat_map(u64::to_ne_bytes).collect();
        let (of, totals) = KernelTotals::decode(&key, &value).unwrap();
        assert_eq!(
            (of.file.inode, of.file.major(), of.op),
            (77, 254, IoOp::Fsync)
        );
        assert_eq!((totals.calls, totals.latency_ns), (0, 8));
        assert_eq!(
            (totals.latency_buckets[0], totals.latency_buckets[39]),
            (9, 48)
        );
        assert!(KernelTotals::decode(&key, &value[..40]).is_none());
        assert!(
            KernelTotals::decode(&[0; 16], &value).is_none(),
            "no operation 0"
        );
    }
}
