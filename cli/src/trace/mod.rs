//! `seekscope trace`.

#[expect(dead_code, reason = "the recording that it shows is being written")]
mod live;
mod results;
mod summary;

pub use live::restore_terminal;
pub use results::show;
