//! A trace under way, on a terminal: files, rates, patterns, latencies, and where in the file.
//!
//! [`LiveWindow`] counts events in bounded memory, [`LiveSnapshot`] is what it says at one moment,
//! and [`draw()`] turns a snapshot and the reader's [`Controls`] into a frame. The terminal itself,
//! its keys and its restoration are the business of `cli`. [`top`] adds what server and disk say of
//! themselves ([`vitals`]), for `seekscope top`.

mod controls;
mod counts;
mod draw;
mod file_activity;
mod heat;
mod map;
mod recent;
mod snapshot;
#[cfg(test)]
mod tests;
pub mod top;
pub mod vitals;
mod window;

pub use controls::{Controls, Key};
pub use draw::{Glyphs, draw};
pub use snapshot::LiveSnapshot;
pub use window::LiveWindow;
