//! What came of the kills, by the phase that they hit.

use std::collections::BTreeMap;
use std::fmt;

use super::examination::Documents;

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
    /// Differences of names, options and indexes.
    pub definitions: Vec<String>,
    /// What writers saw that cannot be.
    pub impossible: Vec<String>,
    /// What went wrong with the recovery itself.
    pub faults: Vec<String>,
}

impl Trial {
    pub fn sound(&self) -> bool {
        let said = [&self.definitions, &self.impossible, &self.faults];
        self.documents.sound() && said.iter().all(|list| list.is_empty())
    }

    /// Everything that is wrong.
    pub fn complaints(&self) -> impl Iterator<Item = &String> {
        let lists = [
            &self.definitions,
            &self.documents.said,
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

    /// Did every trial end with everything in its place?
    pub fn sound(&self) -> bool {
        self.trials().all(Trial::sound)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(
            f,
            "{:18} {:>6} {:>9} {:>9} {:>12} {:>8} {:>7} {:>5} {:>7} {:>6} {:>6} {:>11} {:>9}",
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
            "definitions",
            "recovery"
        )?;
        for (phase, trials) in &self.rows {
            let sum = |of: fn(&Trial) -> u64| trials.iter().map(of).sum::<u64>();
            let ended = |ending| trials.iter().filter(|t| t.ending == ending).count();
            writeln!(
                f,
                "{phase:18} {:6} {:9} {:9} {:12} {:8} {:7} {:5} {:7} {:6} {:6} {:11} {:9}",
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
                sum(|t| (t.definitions.len() as u64) + t.documents.broken_indexes),
                sum(|t| (t.faults.len() + t.impossible.len()) as u64),
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
