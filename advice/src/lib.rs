//! How a collection should be stored: the shapes of the queries on it, a sample of its documents, ways of storing
//! them that fit those shapes, and what each way costs, measured on a server of our own.
//!
//! Nothing is written to the server that is asked. Read [`shape`] first (what is kept of a query), then [`way`]
//! (what is proposed, and why), [`trial`] (how ways are measured), [`predict`] (from the sample to the whole
//! collection) and [`mod@verdict`] (which way is advised).

pub mod collection;
pub mod error;
pub mod observe;
pub mod predict;
pub mod sample;
pub mod shape;
pub mod trial;
pub mod values;
pub mod verdict;
pub mod way;

pub use error::AdviceError;
pub use observe::Observer;
pub use sample::{FieldFacts, SampleFacts};
pub use shape::{ToldError, told};
pub use trial::{Trial, TrialOptions};
pub use verdict::{check_answers, verdict};
pub use way::{Proposal, Way, proposals};
