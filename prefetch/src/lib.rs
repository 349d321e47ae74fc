//! Reading the leaf blocks that a running scan will need next into the page cache, by rising offset,
//! ahead of the scan.
//!
//! WiredTiger reads leaves one at a time, so a cold scan of a disordered file keeps a disk at one
//! request in flight. The order of leaves is known (`seekscope-layout`), so what the scan needs next
//! is, too.
//!
//! Pure: [`sweep`] says what to read next, [`position`] where the scan is, [`guard`] how hard to
//! read, [`gain`] whether it was worth it, and how much, and `alone` what the scan would take
//! without. I/O: [`stretch_reader`] reads and gives back, [`server_reads`] watches the server, [`costs`], [`request_size`] and [`memory`] examine
//! disk and host, [`pace`] finds where the scan is. [`preparation`] examines everything before the
//! scan begins, and `attaching` attaches the tracer; [`run`](mod@run) starts the threads that read
//! (`reading`) and the one that follows the scan and says how many of them may read (`following`).

mod alone;
mod attaching;
pub mod costs;
mod error;
mod followed;
mod following;
pub mod gain;
pub mod guard;
pub mod memory;
pub mod pace;
pub mod position;
pub mod preparation;
mod reading;
pub mod request_size;
pub mod run;
pub mod server_reads;
pub mod stretch_reader;
pub mod sweep;
mod tree_watch;

pub use error::PrefetchError;
pub use preparation::{Prefetch, Request};
pub use run::{Control, Finished, Status};
