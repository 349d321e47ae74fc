//! How a collection should be stored: the shapes of the queries on it, a sample of its documents, ways of storing
//! them that fit those shapes, and what each way costs, measured on a server of our own.
//!
//! Nothing is written to the server that is asked. Read [`shape`] first (what is kept of a query), then
//! [`mod@proposals`] (which ways are tried, and why), [`trial`] (how ways are measured), [`predict`] (from the sample to
//! the whole collection) and [`mod@verdict`] (which way is advised).

pub mod collection;
pub mod error;
pub mod index_keys;
pub mod left_out;
pub mod observe;
pub mod predict;
pub mod proposals;
pub mod sample;
pub mod shape;
pub mod since;
pub mod trial;
pub mod usage;
pub mod values;
pub mod verdict;
pub mod way;

pub use error::AdviceError;
pub use observe::Observer;
pub use proposals::{Present, Proposal, proposals};
pub use sample::{FieldFacts, SampleFacts};
pub use shape::{ToldError, ToldQuery, told, told_or_left_out};
pub use trial::{Trial, TrialOptions};
pub use usage::Usage;
pub use verdict::{check_answers, verdict, weigh};
pub use way::Way;
