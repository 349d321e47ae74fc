//! What may be in the collection: one version of a document, or, where a write's answer never came,
//! one of several.

use std::collections::HashMap;

/// A document's version; `None`: there is no such document.
pub type Version = Option<i64>;

/// All documents that ever were, and what each may be now. The last possibility is the one that the
/// last write wanted.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    possible: HashMap<i64, Vec<Version>>,
}

impl Expected {
    /// This and nothing else: a write was acknowledged, or a document was looked at.
    pub fn is(&mut self, id: i64, version: Version) {
        self.possible.insert(id, vec![version]);
    }

    /// The write may have been done.
    pub fn may_be(&mut self, id: i64, version: Version) {
        self.possible
            .entry(id)
            .or_insert_with(|| vec![None])
            .push(version);
    }

    /// What it is, if that is certain.
    pub fn certain(&self, id: i64) -> Option<Version> {
        match self.possible.get(&id).map(Vec::as_slice) {
            None => Some(None),
            Some([one]) => Some(*one),
            Some(_) => None,
        }
    }

    /// What each may be.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &[Version])> {
        self.possible
            .iter()
            .map(|(id, versions)| (*id, versions.as_slice()))
    }

    /// Takes over what another knows; they must not share documents.
    pub fn merge(&mut self, other: &Self) {
        self.possible.extend(other.possible.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_ends_with_the_next_certainty() {
        let mut expected = Expected::default();
        assert_eq!(expected.certain(1), Some(None));
        expected.is(1, Some(4));
        expected.may_be(1, None);
        assert_eq!(expected.certain(1), None);
        expected.may_be(2, Some(0));
        let mut all: Vec<_> = expected.iter().map(|(id, v)| (id, v.to_vec())).collect();
        all.sort_unstable();
        assert_eq!(all, [(1, vec![Some(4), None]), (2, vec![None, Some(0)])]);
        expected.is(1, None);
        assert_eq!(expected.certain(1), Some(None));
    }
}
