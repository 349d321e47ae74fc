//! Where the lines go. This crate prints nothing itself.

use std::io;

/// The two channels of the old program's transcript and of what is new.
pub trait Output {
    /// A line of the transcript (standard output), without its line feed. It should be visible at
    /// once: people watch the samples. An error stops the run.
    fn line(&mut self, text: &str) -> io::Result<()>;

    /// A remark on the input or the measurement (standard error); never part of the transcript.
    fn notice(&mut self, text: &str);
}
