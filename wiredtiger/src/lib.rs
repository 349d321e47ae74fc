//! Decodes WiredTiger's data files from bytes: which leaf pages a tree has, in key order, and where
//! they lie. The crate does no I/O of its own; it says which bytes it wants and is given them.
//!
//! The way through a data directory: [`turtle::Turtle`] → the rows of `WiredTiger.wt`
//! ([`walk::TreeWalk`] with [`walk::Visit::Rows`]) → [`metadata::Metadata`] → a file's
//! [`file_config::FileConfig`] and its newest checkpoint → its tree ([`walk::Visit::InternalPages`])
//! and its free space ([`extents::ExtentList`]). `FORMAT.md` has the byte layouts.
//!
//! All input is treated as hostile: lengths are bounded by what contains them, memory by constants
//! that say why.

pub mod accounting;
mod address;
pub mod block;
mod block_map;
pub mod bytes;
pub mod catalogue;
mod cells;
pub mod checkpoint;
mod compression;
pub mod config;
pub mod extents;
pub mod file_config;
pub mod lone;
pub mod metadata;
mod packed_leaf;
mod pages;
pub mod size_storer;
pub mod tree;
pub mod turtle;
pub mod views;
pub mod walk;
mod wanted;

pub use accounting::Accounting;
pub use block::{BlockError, BlockFault, BlockFormat, Compressor};
pub use catalogue::Catalogue;
pub use checkpoint::{Checkpoint, CheckpointCookie};
pub use extents::{Extent, ExtentList};
pub use file_config::{FileConfig, FileConfigError, IndexIdentity, Refusal};
pub use metadata::Metadata;
pub use tree::{BlockAddress, InternalPage, Leaf, LeafKind, Tree};
pub use turtle::{Turtle, TurtleError};
pub use views::View;
pub use walk::{KeyValue, TreeWalk, Visit};
