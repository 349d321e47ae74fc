//! The scans of one collection: which is named, and what the index for it spares.

use seekscope_run::OperationSeen;
use seekscope_run::units::format_list;

use super::reading::took_s;
use super::{Kind, is_seen_often};
use crate::Evidence;
use crate::wording::duration;

/// The most of a collection's other scans that are told of.
const OTHERS_TOLD: usize = 3;

/// The scans of one collection, with the time that each kind took, s.
pub(super) struct Scans<'a> {
    all: Vec<(&'a OperationSeen, Kind, f64)>,
    /// The dearest of those that were seen often and that an index would spare, else the dearest of those seen often.
    first: usize,
}

impl<'a> Scans<'a> {
    /// Groups scans by their collections.
    pub(super) fn by_collection(
        evidence: &Evidence<'_>,
        all: impl Iterator<Item = (&'a OperationSeen, Kind)>,
    ) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for (operation, kind) in all {
            let took_s = took_s(evidence, operation).unwrap_or(0.0);
            let is_of_it = |known: &&mut Self| known.all[0].0.namespace == operation.namespace;
            match found.iter_mut().find(is_of_it) {
                Some(scans) => scans.all.push((operation, kind, took_s)),
                None => found.push(Self {
                    all: vec![(operation, kind, took_s)],
                    first: 0,
                }),
            }
        }
        for scans in &mut found {
            let rank = |(operation, kind, _): &(&OperationSeen, Kind, f64)| {
                (is_seen_often(operation), kind.is_spared())
            };
            for at in 1..scans.all.len() {
                let (now, first) = (&scans.all[at], &scans.all[scans.first]);
                if rank(now) > rank(first) || (rank(now) == rank(first) && now.2 > first.2) {
                    scans.first = at;
                }
            }
        }
        found
    }

    /// Returns what is said first.
    pub(super) fn first(&self) -> (&'a OperationSeen, Kind) {
        let (operation, kind, _) = self.all[self.first];
        (operation, kind)
    }

    /// Returns the share of the time that all of them take which the index for the first would spare: what it takes, and
    /// others that ask by the same fields.
    pub(super) fn spared_share(&self) -> f64 {
        let (first, _) = self.first();
        let asks_for = |operation: &OperationSeen| {
            let filter = operation.filter.clone()?;
            Some((filter.fields, filter.equal, filter.keys))
        };
        let is_spared = |operation: &OperationSeen, kind: Kind| {
            kind.is_spared() && asks_for(operation) == asks_for(first)
        };
        let sum = |of: &dyn Fn(&OperationSeen, Kind) -> bool| -> f64 {
            let meant = self
                .all
                .iter()
                .filter(|(operation, kind, _)| of(operation, *kind));
            meant.map(|(_, _, took_s)| took_s).sum()
        };
        let all_s = sum(&|_, _| true);
        match all_s > 0.0 {
            true => sum(&is_spared) / all_s,
            false => f64::from(u8::from(self.first().1.is_spared())),
        }
    }

    /// Names the dearest of the other scans of the collection, with what they took.
    pub(super) fn others(&self, evidence: &Evidence<'_>) -> Option<String> {
        let all = self.all.iter().enumerate();
        let others = all.filter(|(at, _)| *at != self.first);
        let mut others: Vec<_> = others.map(|(_, other)| other).collect();
        others.sort_by(|a, b| b.2.total_cmp(&a.2));
        let observed_s = evidence.observed_s().unwrap_or(0.0);
        let told = others.iter().map(|(operation, _, took_s)| {
            let what = format!("{}{}", operation.kind, selection(operation));
            match *took_s > 0.0 && observed_s > 0.0 {
                true => format!(
                    "{what} ({} per hour)",
                    duration(took_s / observed_s * 3600.0)
                ),
                false => what,
            }
        });
        let told: Vec<String> = told.collect();
        let list = format_list(&told, OTHERS_TOLD, ", ");
        match told.len() {
            0 => None,
            1 => Some(format!(
                "One other kind of operation read all of the collection, too: {list}."
            )),
            others => Some(format!(
                "{others} other kinds of operations read all of the collection, too: {list}."
            )),
        }
    }
}

/// Returns what an operation selects by, as the end of a phrase.
pub(super) fn selection(operation: &OperationSeen) -> String {
    let fields = operation.filter.iter().flat_map(|filter| &filter.fields);
    let fields: Vec<&str> = fields.map(String::as_str).collect();
    match fields.is_empty() {
        true => String::new(),
        false => format!(" by {}", fields.join(", ")),
    }
}
