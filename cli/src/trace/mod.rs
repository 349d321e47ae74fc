//! `seekscope trace`.

#[expect(dead_code, reason = "the recording that it shows is being written")]
mod live;

pub use live::restore_terminal;
