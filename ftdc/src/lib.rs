//! Decodes MongoDB's diagnostic files ("full time diagnostic data capture", FTDC) from bytes; it reads no files
//! itself.
//!
//! A server writes one sample of `serverStatus` and the like each second into
//! `dbPath/diagnostic.data/metrics.*`. Such a file is a sequence of BSON documents ([`entries()`]); those of
//! type 1 hold a compressed [`Chunk`] of a few hundred samples. The format is described in
//! `src/mongo/db/ftdc/README.md` of the server's sources; where that contradicts itself (order of the two
//! counts, length of a run of zeros), their `compressor.cpp` decides.
//!
//! All input is treated as hostile: sizes, counts and nesting are bounded by constants that say why.

mod chunk;
mod entries;
mod metrics;
#[cfg(any(test, feature = "writing"))]
pub mod writing;

pub use chunk::{Chunk, Series};
pub use entries::{Entries, Entry, entries};

/// The reason why bytes are not what a server writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FtdcError {
    #[error("the document at byte {at} is cut off or damaged, and what follows it cannot be read")]
    Torn { at: usize },
    #[error("a chunk is damaged: {why}")]
    Damaged { why: &'static str },
}
