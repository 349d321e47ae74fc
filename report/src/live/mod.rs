//! Shows a running trace on a terminal: files, rates, patterns, latencies, and positions in the file.
//!
//! [`LiveWindow`] counts events in bounded memory, [`LiveSnapshot`] is its state at one moment, and
//! [`draw()`] turns a snapshot and the reader's [`Controls`] into a frame. `cli` handles the terminal itself,
//! its keys and its restoration. [`top`] adds the figures that server and disk report ([`vitals`]), for
//! `seekscope top`.

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
