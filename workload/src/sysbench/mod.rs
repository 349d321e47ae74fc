//! Implements sysbench-mongodb: its data and its transaction, identical to the byte and to the draw.
//!
//! [`settings`] has the defaults of its eras, [`data`] the documents, [`mod@load`] and [`run`] the virtual
//! users. Features that the original lacks are options that results name: the rows of the last, partial batch
//! (on unless `exact_original`), skewed ids, a real transaction around the commands, and times of every step.
//!
//! Data are loaded like in the original, from one stream of random numbers per collection; but several
//! virtual users may send the batches of a collection in parallel, which the original cannot.

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
