//! Where the lines go. This crate prints nothing itself.

use std::io;

/// The two output channels: the old program's transcript, and everything new.
pub trait Output {
    /// Prints a line of the transcript (standard output), without its line feed. It should be
    /// visible at once, because people watch the samples. An error stops the run.
    fn line(&mut self, text: &str) -> io::Result<()>;

    /// Prints a remark on the input or the measurement (standard error); never part of the
    /// transcript.
    fn notice(&mut self, text: &str);
}
