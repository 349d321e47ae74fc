//! What to try next, and what to recommend: Bayesian optimisation under noise, as ask and tell.
//!
//! All state is the history: [`Optimiser::propose`] gives the same answer for the same history and seed,
//! whether the session ran through or was resumed.

mod acquisition;
mod design;
mod history;
mod model;
mod propose;
mod setting;
mod tpe;

pub use history::{Goal, History, Outcome, Trial};
pub(crate) use model::{Learnt, Model};
pub use propose::{Optimiser, Origin, Proposal};
pub(crate) use setting::{Setting, settings};
