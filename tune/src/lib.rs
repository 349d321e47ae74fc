//! Finds better settings quickly and proves them honestly. Pure logic: the caller starts servers and runs
//! loads.
//!
//! A [`space::Space`] of knobs is what may be tuned. An [`optimiser::Optimiser`] says what to run next, given
//! the [`optimiser::History`] of trials, and what it would recommend. [`early_stop::EarlyStop`] ends runs
//! that cannot win. A [`duel`] of fresh, interleaved runs proves a gain or its absence; nothing measured
//! during the search does. An [`analysis::Analysis`] says which knobs matter and which changes are not worth
//! making. A [`session::Session`] does all of this in order: it asks for runs, is given their results, and
//! concludes. [`synthetic`] responses test all of this without a server.

pub mod analysis;
pub mod duel;
pub mod early_stop;
mod gp;
pub mod optimiser;
pub mod session;
pub mod space;
pub mod synthetic;
