//! Compares two sets of documents, regardless of order, without keeping either.

use twox_hash::XxHash3_128;

/// Number of documents, and the sum of their hashes modulo 2^128. A set with one document changed, lost or
/// duplicated has the same sum with a probability of 2^-128; the seed is drawn for each reordering, so that
/// no document can be crafted to collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) seed: u64,
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    pub(crate) sum: u128,
}

impl Checksum {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            documents: 0,
            bytes: 0,
            sum: 0,
        }
    }

    pub(crate) fn hash(seed: u64, document: &[u8]) -> u128 {
        XxHash3_128::oneshot_with_seed(seed, document)
    }

    /// Adds a document with this hash.
    pub(crate) fn add(&mut self, hash: u128, bytes: usize) {
        self.documents += 1;
        self.bytes += bytes as u64;
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds documents with this total size in bytes.
    pub(crate) fn add_batch(&mut self, hashes: &[u128], bytes: usize) {
        self.documents += hashes.len() as u64;
        self.bytes += bytes as u64;
        self.sum = hashes
            .iter()
            .fold(self.sum, |sum, hash| sum.wrapping_add(*hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(documents: &[&[u8]]) -> Checksum {
        let mut sum = Checksum::new(7);
        for document in documents {
            sum.add(Checksum::hash(7, document), document.len());
        }
        sum
    }

    #[test]
    fn only_the_order_may_differ() {
        let sums = sum(&[b"a", b"bb", b"a"]);
        assert_eq!(sums, sum(&[b"bb", b"a", b"a"]));
        assert_eq!((sums.documents, sums.bytes), (3, 4));
        assert_ne!(sums, sum(&[b"bb", b"a"]));
        // The same document twice does not cancel out, as it would with XOR.
        assert_ne!(sums.sum, sum(&[b"bb", b"c", b"c"]).sum);
        assert_ne!(Checksum::hash(1, b"a"), Checksum::hash(2, b"a"));
    }
}
