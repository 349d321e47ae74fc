//! A `.wt` file without its data directory: finding its tree by searching the file.
//!
//! From MongoDB 4.2 on, each checkpoint ends its list of free blocks in a description of itself.
//! Before, the root is an internal page that no other one points at, whose whole tree is intact.
//!
//! [`LoneScan`] is fed with the file from front to back and looks at the start of every allocation
//! unit; what it finds are blocks worth reading, which [`LoneSearch`] wants. Whatever comes out is a
//! guess until a walk has succeeded.

mod scan;
mod search;

use thiserror::Error;

use crate::block::BlockFormat;
use crate::checkpoint::CheckpointCookie;
use crate::file_config::{FileConfig, FileConfigError};
use crate::tree::BlockAddress;

pub use scan::LoneScan;
pub use search::LoneSearch;

/// Why nothing has been found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoneError {
    #[error("the file does not start like a WiredTiger file (magic number, checksum)")]
    NotWiredTiger,
    #[error("the file is encrypted, which is not read")]
    Encrypted,
    #[error(
        "no checkpoint and no intact tree found; a tree that is a single leaf, as MongoDB up to 4.0 \
         wrote it, cannot be found without its data directory"
    )]
    NothingFound,
    #[error("the newest checkpoint's description: {0}")]
    Config(#[from] FileConfigError),
    #[error("blocks that the search asked for have not been supplied")]
    NotSupplied,
}

/// How a tree was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoneSource {
    /// A checkpoint that describes itself.
    Checkpoint {
        config: Box<FileConfig>,
        cookie: CheckpointCookie,
    },
    /// An internal page without a parent. The compressor is a guess.
    Orphan,
}

/// A tree that may be the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoneTree {
    pub source: LoneSource,
    /// The higher, the newer.
    pub write_generation: u64,
    /// `None`: the tree is empty.
    pub root: Option<BlockAddress>,
    /// The list of free blocks, if known.
    pub avail: Option<BlockAddress>,
    pub format: BlockFormat,
    /// What no block lies beyond.
    pub file_bytes: u64,
}
