//! A `.wt` file without its data directory: finding its tree by searching the file.
//!
//! From MongoDB 4.2 on, each checkpoint ends its list of free blocks with a description of itself.
//! In older files the root is an internal page that no other page points at and whose whole tree is
//! intact.
//!
//! [`LoneScan`] is fed the file from front to back and looks at the start of every allocation unit.
//! It finds blocks worth reading, which [`LoneSearch`] then asks for. Every result is a guess until
//! a walk has succeeded.

mod scan;
mod search;

use thiserror::Error;

use crate::block::BlockFormat;
use crate::checkpoint::CheckpointCookie;
use crate::file_config::{FileConfig, FileConfigError};
use crate::tree::BlockAddress;

pub use scan::{LoneScan, begins_like_a_file};
pub use search::LoneSearch;

/// Why nothing has been found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoneError {
    #[error("the file does not begin as a WiredTiger file does (magic number, checksum)")]
    NotWiredTiger,
    #[error("the file is encrypted, and seekscope cannot read encrypted files")]
    Encrypted,
    #[error(
        "the file has neither a readable checkpoint nor an intact tree; a tree that consists of a \
         single leaf page, as written by MongoDB up to 4.0, cannot be found without its data \
         directory"
    )]
    NothingFound,
    #[error("the description of the newest checkpoint is not valid: {0}")]
    Config(#[from] FileConfigError),
    #[error("blocks that the search requested were not supplied")]
    NotSupplied,
}

/// How a tree was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoneSource {
    /// The tree was found by a checkpoint that describes itself.
    Checkpoint {
        config: Box<FileConfig>,
        cookie: CheckpointCookie,
    },
    /// The tree was found by an internal page without a parent. The compressor is a guess.
    Orphan,
}

/// A tree that may be the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoneTree {
    pub source: LoneSource,
    /// The higher, the newer.
    pub write_generation: u64,
    /// `None` if the tree is empty.
    pub root: Option<BlockAddress>,
    /// The list of free blocks, if known.
    pub avail: Option<BlockAddress>,
    pub format: BlockFormat,
    /// The length beyond which no block lies.
    pub file_bytes: u64,
}
