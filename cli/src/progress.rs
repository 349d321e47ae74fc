//! Shows steps and progress bars to a waiting person, on stderr.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use seekscope_report::terminal::message;
use seekscope_run::visible;

/// Where progress is shown. On a terminal steps become bars; elsewhere each step is one line.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    quiet: bool,
    terminal: bool,
    step_lines: bool,
}

impl Progress {
    /// Quiet means no progress and no hints.
    pub fn new(quiet: bool) -> Self {
        Self {
            quiet,
            terminal: stderr().is_terminal(),
            step_lines: true,
        }
    }

    /// Returns a reporter for work in many small steps, whose caller prints one line for several of them: a step is
    /// a bar on a terminal, and prints nothing elsewhere.
    #[must_use]
    pub fn without_step_lines(self) -> Self {
        Self {
            step_lines: false,
            ..self
        }
    }

    /// Returns the characters per line of tables on stdout. A file or pipe gets wide ones.
    pub fn width(&self) -> u16 {
        let columns = rustix::termios::tcgetwinsize(stdout()).map_or(0, |size| size.ws_col);
        if columns == 0 { 160 } else { columns.max(80) }
    }

    /// Prints lines for people. They may contain text from a server or a file, so control characters are made
    /// visible.
    pub fn say(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// Prints a warning, or an error that ends nothing, quiet or not.
    pub fn complain(&self, text: impl AsRef<str>) {
        // A closed stderr is no reason to fail.
        let _ = writeln!(stderr(), "{}", message(text.as_ref()));
    }

    /// Begins a step of unknown length.
    pub fn step(&self, text: impl Into<String>) -> Step {
        self.bar(text.into(), None)
    }

    /// Begins a step that counts up to `total` things.
    pub fn counted(&self, text: impl Into<String>, total: u64) -> Step {
        self.bar(text.into(), Some(total))
    }

    fn bar(&self, text: String, total: Option<u64>) -> Step {
        let text = visible(&text);
        if self.quiet || !self.terminal {
            if self.step_lines {
                self.say(format!("  {text}"));
            }
            let hidden = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            return Step(hidden, text);
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template = match total {
            Some(_) => "  {spinner} {msg} [{bar:30}] {human_pos}/{human_len} {rate}, {eta} left",
            None => "  {spinner} {msg} {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> ").with_key("rate", write_rate));
        }
        bar.set_message(text.clone());
        bar.enable_steady_tick(Duration::from_millis(120));
        Step(bar, text)
    }
}

/// Writes whole things per second: indicatif's own rate shows meaningless digits.
fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A progress bar that cannot be drawn is no reason to fail.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

/// A running step; its line disappears from the terminal when it is dropped.
#[derive(Debug)]
pub struct Step(ProgressBar, String);

impl Step {
    /// Shows how the step is going, after its description.
    pub fn note(&self, text: impl std::fmt::Display) {
        self.0.set_message(format!("{}: {text}", self.1));
    }

    /// Sets the count.
    pub fn at(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
