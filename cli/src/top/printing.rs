//! Prints frames on stdout, as text or as one line of JSON each.

use std::io::{ErrorKind, Write, stdout};

use anyhow::{Context, Result};
use seekscope_report::live::top::{Order, TopFrame, TopOutput, plain_text};

use crate::args::TopArgs;

/// Prints frames on stdout.
pub struct Printer {
    order: Order,
    files: u16,
    width: u16,
    as_json: bool,
    is_first: bool,
}

impl Printer {
    pub fn new(args: &TopArgs, width: u16) -> Self {
        Self {
            order: args.sort.order(),
            files: args.files,
            width,
            as_json: args.json,
            is_first: true,
        }
    }

    /// Prints a frame at once; returns false if nobody is reading any more.
    pub fn print(&mut self, frame: &TopFrame) -> Result<bool> {
        let text = if self.as_json {
            serde_json::to_string(&TopOutput::of(frame, self.order, self.files))? + "\n"
        } else {
            let gap = if self.is_first { "" } else { "\n" };
            let text = plain_text(frame, self.order, self.width, self.files);
            format!("{gap}{text}")
        };
        self.is_first = false;
        let mut out = stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // The reader of a pipe (head, less) may have had enough: that is success.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true).context("cannot write to stdout"),
        }
    }
}
