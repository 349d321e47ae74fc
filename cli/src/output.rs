//! What goes to stdout.

use std::io::Write;

use anyhow::{Context, Result};

/// Prints one JSON document.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// Prints text.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe (head, less) may have had enough: that is success.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}
