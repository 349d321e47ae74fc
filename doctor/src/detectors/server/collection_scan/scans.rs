//! The scans of one collection: which is named, and what the index for it spares.

use seekscope_run::units::format_list;
use seekscope_run::{OperationKind, OperationSeen};

use super::reading::took_s;
use super::{Kind, is_seen_often};
use crate::Evidence;
use crate::wording::duration;

/// The most of a collection's other scans that are told of.
const OTHERS_TOLD: usize = 3;

/// The scans of one kind, with the time that they took.
struct Scan<'a> {
    operation: &'a OperationSeen,
    kind: Kind,
    took_s: f64,
}

/// The scans of one collection.
pub(super) struct Scans<'a> {
    all: Vec<Scan<'a>>,
    /// The dearest of those that were seen often and that an index would spare, else the dearest of those seen often.
    first: usize,
}

impl Scan<'_> {
    /// What is named first has the highest rank.
    fn rank(&self) -> (bool, bool) {
        (is_seen_often(self.operation), self.kind.is_spared())
    }

    fn asks_like(&self, other: &Self) -> bool {
        let asks_for = |scan: &Self| {
            let filter = scan.operation.filter.as_ref();
            filter.map(|filter| {
                (
                    filter.fields.clone(),
                    filter.equal.clone(),
                    filter.keys.clone(),
                )
            })
        };
        asks_for(self) == asks_for(other)
    }
}

impl<'a> Scans<'a> {
    /// Groups scans by their collections.
    pub(super) fn by_collection(
        evidence: &Evidence<'_>,
        all: impl Iterator<Item = (&'a OperationSeen, Kind)>,
    ) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for (operation, kind) in all {
            let scan = Scan {
                operation,
                kind,
                took_s: took_s(evidence, operation).unwrap_or(0.0),
            };
            let is_of_it =
                |known: &&mut Self| known.all[0].operation.namespace == operation.namespace;
            match found.iter_mut().find(is_of_it) {
                Some(scans) => scans.add(scan),
                None => found.push(Self {
                    all: vec![scan],
                    first: 0,
                }),
            }
        }
        found
    }

    fn add(&mut self, scan: Scan<'a>) {
        let first = &self.all[self.first];
        let is_dearer = scan.rank() == first.rank() && scan.took_s > first.took_s;
        if scan.rank() > first.rank() || is_dearer {
            self.first = self.all.len();
        }
        self.all.push(scan);
    }

    /// Returns what is said first.
    pub(super) fn first(&self) -> (&'a OperationSeen, Kind) {
        let first = &self.all[self.first];
        (first.operation, first.kind)
    }

    /// Returns the share of the time that all of them take which the index for the first would spare: what it takes, and
    /// others that ask by the same fields.
    pub(super) fn spared_share(&self) -> f64 {
        let first = &self.all[self.first];
        let all_s: f64 = self.all.iter().map(|scan| scan.took_s).sum();
        if all_s <= 0.0 {
            return f64::from(u8::from(first.kind.is_spared()));
        }
        let all = self.all.iter();
        let spared = all.filter(|scan| scan.kind.is_spared() && scan.asks_like(first));
        spared.map(|scan| scan.took_s).sum::<f64>() / all_s
    }

    /// Returns the kinds of operations that are spoken of: the first, and others that ask by the same fields and are
    /// spared by an index as it is.
    pub(super) fn kinds(&self) -> Vec<OperationKind> {
        let first = &self.all[self.first];
        let is_meant = |scan: &&Scan<'_>| {
            scan.asks_like(first) && scan.kind.is_spared() == first.kind.is_spared()
        };
        let meant = self.all.iter().filter(is_meant);
        OperationKind::of_all(meant.map(|scan| scan.operation))
    }

    /// Names the dearest of the other scans of the collection, with what they took.
    pub(super) fn others(&self, evidence: &Evidence<'_>) -> Option<String> {
        let all = self.all.iter().enumerate();
        let others = all.filter(|(at, _)| *at != self.first);
        let mut others: Vec<_> = others.map(|(_, other)| other).collect();
        others.sort_by(|a, b| b.took_s.total_cmp(&a.took_s));
        let observed_s = evidence.observed_s().unwrap_or(0.0);
        let told = others.iter().map(|scan| {
            let what = format!("{}{}", scan.operation.kind, selection(scan.operation));
            match scan.took_s > 0.0 && observed_s > 0.0 {
                true => format!(
                    "{what} ({} per hour)",
                    duration(scan.took_s / observed_s * 3600.0)
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
