//! Presents findings and records in readable form: on the terminal and as an HTML report.
//!
//! Works from a run's records alone. For traces ([`mod@trace`]) it shows what `pattern` says. For disk runs
//! ([`disk`]) it compares the steps with one another, and says what follows. For benchmarks ([`mod@bench`])
//! it shows what their records say, and compares whole runs. For examinations ([`doctor`]) it shows the
//! findings, and the answers that they are based on.

pub mod advise;
mod balancer;
pub mod bench;
pub mod disk;
pub mod doctor;
mod escape;
pub mod facts;
mod html;
pub mod layout;
pub mod live;
pub mod numbers;
pub mod page;
pub mod reorder;
pub mod table;
pub mod terminal;
mod text;
pub mod trace;
pub mod tune;
mod wording;
