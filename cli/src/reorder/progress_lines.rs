//! Shows the progress of a reordering, as steps and lines on stderr.

use std::sync::{Mutex, PoisonError};

use seekscope_reorder::{CaughtUp, PauseReason, Progress as Told, Step as Work};
use seekscope_report::layout::sentences::format_s;
use seekscope_run::units::{format_bytes, format_count};

use crate::progress::{Progress, Step};

/// The current step is the line that is shown.
pub struct ProgressLines {
    progress: Progress,
    step: Mutex<Option<Step>>,
    end: Mutex<End>,
}

/// What the run's records keep of it.
#[derive(Debug, Default)]
pub struct End {
    /// Sentences that were said meanwhile.
    pub said: Vec<String>,
    /// Whether writers were let go on when everything was rolled back; `None` if it was not.
    pub undone: Option<bool>,
}

impl ProgressLines {
    pub fn new(progress: Progress) -> Self {
        Self {
            progress,
            step: Mutex::default(),
            end: Mutex::default(),
        }
    }

    /// Removes the line that is shown, and returns what is kept.
    pub fn end(self) -> End {
        self.end
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, text: impl std::fmt::Display) {
        let step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = step.as_ref() {
            step.note(text);
        }
    }
}

impl Told for ProgressLines {
    fn step(&self, work: Work) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        // Remove the old line before the new one appears.
        drop(step.take());
        *step = Some(self.progress.step(work.to_string()));
    }

    fn copied(&self, documents: u64, bytes: u64, expected_documents: u64) {
        self.note(format_args!(
            "{} of {} documents, {}",
            format_count(documents),
            format_count(expected_documents.max(documents)),
            format_bytes(bytes)
        ));
    }

    fn verified(&self, documents: u64, expected_documents: u64) {
        self.note(format_args!(
            "{} of {} documents",
            format_count(documents),
            format_count(expected_documents.max(documents))
        ));
    }

    fn caught_up(&self, round: CaughtUp) {
        self.note(round_text(&round));
    }

    fn paused(&self, reason: Option<PauseReason>) {
        if let Some(reason) = reason {
            self.note(format_args!("paused: {reason}"));
        }
    }

    fn begun_anew(&self, dropped_documents: Option<u64>) {
        let sentence = begun_anew_text(dropped_documents);
        self.progress.say(&sentence);
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.said.push(sentence);
    }

    fn undone(&self, writers_let_go: bool) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.undone = Some(writers_let_go);
    }
}

/// Says that an earlier copy is of no use, and how much of it there was.
fn begun_anew_text(dropped_documents: Option<u64>) -> String {
    match dropped_documents {
        Some(documents) => format!(
            "The copy is started again: the earlier one, of {} documents, was dropped.",
            format_count(documents)
        ),
        None => "The copy is started again: the earlier one was dropped.".into(),
    }
}

/// Describes a round, and what is left if that takes more than a moment.
fn round_text(round: &CaughtUp) -> String {
    let left = match round.remaining_s() {
        _ if round.is_last() => String::new(),
        Some(seconds) => format!(", about {} more", format_s(seconds)),
        None => ", which does not end while others write this fast".into(),
    };
    format!(
        "round {}, {} changes in {}, {} came meanwhile{left}",
        round.round,
        format_count(round.changes),
        format_s(round.seconds),
        format_count(round.came)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_round_is_not_said_to_have_no_end() {
        let text = |changes, came, seconds| {
            round_text(&CaughtUp {
                round: 1,
                changes,
                came,
                seconds,
            })
        };
        assert!(
            text(0, 1, 0.3).ends_with("1 came meanwhile"),
            "{}",
            text(0, 1, 0.3)
        );
        assert!(text(9_000, 3_000, 3.0).ends_with("more"));
        assert!(text(9_000, 9_900, 3.0).ends_with("this fast"));
    }

    #[test]
    fn a_dropped_copy_and_a_rollback_are_kept_for_the_records() {
        let lines = ProgressLines::new(Progress::new(true));
        lines.begun_anew(Some(80_000));
        lines.begun_anew(None);
        lines.undone(true);
        let End { said, undone } = lines.end();
        assert_eq!(undone, Some(true));
        assert!(
            said[0].contains("of 80,000 documents, was dropped"),
            "{said:?}"
        );
        assert!(
            said[1].ends_with("the earlier one was dropped."),
            "{said:?}"
        );
    }
}
