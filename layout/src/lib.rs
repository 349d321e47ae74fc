//! How the leaf pages of a database's files lie on disk: reads data directories without disturbing
//! them, measures the order, and predicts what a scan costs.
//!
//! Reading: [`data_directory::DataDirectory`] finds the files and their names and walks them
//! ([`walked_file`]), by means of `snapshot.rs` and `tree_reading.rs`; [`device_map`] says where a
//! file's bytes lie on the device; [`lone_file`] reads files without their directory. The server
//! may replace anything a moment after it was read: every block is checked against its parent, and
//! a walk that was overtaken starts again.
//!
//! Judging: [`order`] measures how key order and disk order relate, [`strip`] draws it, [`decay`]
//! says how fast it is lost, [`scan_prediction`] what a scan costs on a disk; [`typical_disks`] has
//! disks for where none was measured.

pub mod data_directory;
mod data_file;
pub mod decay;
pub mod device_map;
pub mod error;
mod fiemap;
mod gate;
mod live;
pub mod lone_file;
pub mod order;
mod page_cache;
mod recognise;
mod restarts;
pub mod scan_prediction;
mod snapshot;
pub mod strip;
pub mod table_files;
mod tree_reading;
pub mod typical_disks;
mod unlisted;
mod views;
pub mod walked_file;

pub use data_directory::DataDirectory;
pub use device_map::DeviceMap;
pub use error::LayoutError;
pub use lone_file::walk_lone;
pub use table_files::TableFile;
pub use walked_file::{TreeSource, WalkOptions, WalkedFile};
