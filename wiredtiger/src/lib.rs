//! WiredTiger's data files, decoded from bytes: which leaf pages a tree has, in key order, and where
//! they lie. No I/O of its own; it says which bytes it wants and is handed them.

pub mod tree;

pub use tree::{BlockAddress, Leaf, LeafKind, Tree};
