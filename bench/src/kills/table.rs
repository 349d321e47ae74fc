//! What came of the kills, by the phase that they hit, and of each combination in a line.

use std::collections::BTreeMap;
use std::fmt;

use super::combination::{During, Victim};
use super::examination::Documents;

/// The phase of a run that was left alone.
pub const NOT_KILLED: &str = "not killed";

/// What the collection is after the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Nothing was reordered.
    #[default]
    Nothing,
    /// The copy has taken the original's place.
    Reordered,
    AsBefore,
}

/// One kill.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    /// What `reorder` had recorded when it came.
    pub phase: &'static str,
    pub ending: Ending,
    /// Writes acknowledged, without an answer, refused.
    pub done: u64,
    pub in_doubt: u64,
    pub refused: u64,
    pub documents: Documents,
    /// What the command left: differences of names, options, indexes and settings, and what it had started.
    pub left: Vec<String>,
    /// What is wrong with its exit code, its message, or its run when that is shown again.
    pub exit: Vec<String>,
    /// What writers saw that cannot be.
    pub impossible: Vec<String>,
    /// What went wrong with the recovery itself.
    pub faults: Vec<String>,
    /// How the command ended; no code after a kill of its own.
    pub code: Option<i32>,
    /// What it said last.
    pub message: String,
    /// How long it took, recovery included, s.
    pub seconds: f64,
}

impl Trial {
    pub fn sound(&self) -> bool {
        let said = [&self.left, &self.exit, &self.impossible, &self.faults];
        self.documents.sound() && said.iter().all(|list| list.is_empty())
    }

    /// Everything that is wrong.
    pub fn complaints(&self) -> impl Iterator<Item = &String> {
        let lists = [
            &self.left,
            &self.documents.said,
            &self.exit,
            &self.faults,
            &self.impossible,
        ];
        lists.into_iter().flatten()
    }
}

/// All kills of one kind.
#[derive(Debug, Clone)]
pub struct Table {
    title: String,
    rows: BTreeMap<&'static str, Vec<Trial>>,
}

impl Table {
    /// Returns an empty table for one combination.
    pub fn of(during: During, victim: Victim) -> Self {
        Self::new(format!("{} killed during {}", victim.name(), during.name()))
    }

    pub fn new(title: String) -> Self {
        Self {
            title,
            rows: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, trial: Trial) {
        self.rows.entry(trial.phase).or_default().push(trial);
    }

    pub fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.rows.values().flatten()
    }

    /// The heading of [`Self::in_a_line`].
    pub fn heading() -> String {
        format!(
            "{:34} {:>5} {:>5} {:>7} {:>11} {:>14} {:>6} {:>8}",
            "", "kills", "lost", "doubled", "left behind", "wrong endings", "others", "seconds"
        )
    }

    /// All kills together, without the run that was not killed.
    pub fn in_a_line(&self) -> String {
        let killed = || self.trials().filter(|trial| trial.phase != NOT_KILLED);
        let sum = |of: fn(&Trial) -> u64| killed().map(of).sum::<u64>();
        format!(
            "{:34} {:5} {:5} {:7} {:11} {:14} {:6} {:8.0}",
            self.title,
            killed().count(),
            sum(|t| t.documents.lost),
            sum(|t| t.documents.doubled),
            sum(left),
            sum(|t| t.exit.len() as u64),
            sum(|t| t.documents.undead + t.documents.wrong + faults(t)),
            killed().map(|trial| trial.seconds).sum::<f64>(),
        )
    }

    /// Returns whether every trial ended with everything in its place.
    pub fn sound(&self) -> bool {
        self.trials().all(Trial::sound)
    }
}

fn left(trial: &Trial) -> u64 {
    trial.left.len() as u64 + trial.documents.broken_indexes
}

fn faults(trial: &Trial) -> u64 {
    (trial.faults.len() + trial.impossible.len()) as u64
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(
            f,
            "{:18} {:>6} {:>9} {:>9} {:>12} {:>8} {:>7} {:>5} {:>7} {:>6} {:>6} {:>11} {:>7} {:>9}",
            "phase",
            "trials",
            "reordered",
            "as before",
            "acknowledged",
            "in doubt",
            "refused",
            "lost",
            "doubled",
            "undead",
            "wrong",
            "left behind",
            "endings",
            "recovery"
        )?;
        for (phase, trials) in &self.rows {
            let sum = |of: fn(&Trial) -> u64| trials.iter().map(of).sum::<u64>();
            let ended = |ending| trials.iter().filter(|t| t.ending == ending).count();
            writeln!(
                f,
                "{phase:18} {:6} {:9} {:9} {:12} {:8} {:7} {:5} {:7} {:6} {:6} {:11} {:7} {:9}",
                trials.len(),
                ended(Ending::Reordered),
                ended(Ending::AsBefore),
                sum(|t| t.done),
                sum(|t| t.in_doubt),
                sum(|t| t.refused),
                sum(|t| t.documents.lost),
                sum(|t| t.documents.doubled),
                sum(|t| t.documents.undead),
                sum(|t| t.documents.wrong),
                sum(left),
                sum(|t| t.exit.len() as u64),
                sum(faults),
            )?;
        }
        let sound = self.trials().filter(|trial| trial.sound()).count();
        writeln!(
            f,
            "{sound} of {} with everything in its place",
            self.trials().count()
        )
    }
}
