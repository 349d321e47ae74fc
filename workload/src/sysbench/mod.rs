//! sysbench-mongodb: its data and its transaction, to the byte and to the draw.
//!
//! [`settings`] has the defaults of its eras, [`data`] the documents, [`mod@load`] and [`run`] the virtual
//! users. What the original does not have are options that results name: the rows of the last, partial
//! batch (on unless `exact_original`), skewed ids, a real transaction around the commands, and times of
//! every step.
//!
//! Data are loaded as the original loads them, from one stream of random numbers per collection; but
//! several virtual users may send the batches of a collection side by side, which the original cannot.

#[cfg(test)]
mod actor_tests;
pub mod data;
pub mod expected;
pub mod load;
pub mod run;
pub mod settings;
mod steps;

pub use load::{SysbenchIndexes, SysbenchLoad};
pub use run::SysbenchRun;
pub use settings::{Era, Ids, SysbenchSettings};
