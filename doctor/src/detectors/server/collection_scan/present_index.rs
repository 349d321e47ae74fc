//! An index that a collection has, and that an operation does not use although its keys are what it asks for.

use seekscope_run::{CollectionFacts, FilterSeen, IndexFacts, IndexOption, OperationSeen};

use super::{Kind, collection_of};
use crate::Evidence;
use crate::wording::{begins_with, javascript_text, mongosh, mongosh_collection};

/// Why an index is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Hidden,
    Partial,
    Sparse,
    Collation,
}

/// An index that is there and not used.
pub(super) struct PresentIndex<'a> {
    namespace: &'a str,
    index: &'a IndexFacts,
    why: Why,
    /// Whether it has just the keys that are needed, rather than beginning with them.
    is_same: bool,
}

/// Returns the index whose keys an operation of this kind asks for, if there is one, and it is known why it is not used.
pub(super) fn of<'a>(
    evidence: &Evidence<'a>,
    operation: &OperationSeen,
    kind: Kind,
) -> Option<PresentIndex<'a>> {
    if !kind.is_spared() {
        return None;
    }
    let collection = collection_of(evidence, operation)?;
    let filter = operation.filter.as_ref()?;
    let is_by_keys = kind == Kind::ByKeys;
    let has_keys = |index: &IndexFacts| match is_by_keys {
        true => has_order(index, filter),
        false => filter
            .fields
            .iter()
            .any(|field| begins_with(&index.keys, field)),
    };
    let (index, why) = unused(collection, filter, has_keys)?;
    Some(PresentIndex {
        namespace: &collection.namespace,
        index,
        why,
        is_same: match filter.fields.as_slice() {
            [field] if !is_by_keys => is_on(index, field),
            _ => is_by_keys,
        },
    })
}

/// Returns an index that begins with this field, and why operations with this filter do not find documents by it.
pub(super) fn beginning_with<'a>(
    collection: &'a CollectionFacts,
    field: &str,
    filter: &FilterSeen,
) -> Option<PresentIndex<'a>> {
    let (index, why) = unused(collection, filter, |index| begins_with(&index.keys, field))?;
    Some(PresentIndex {
        namespace: &collection.namespace,
        index,
        why,
        is_same: is_on(index, field),
    })
}

/// Returns the first index that has the wanted keys and is not used.
fn unused<'a>(
    collection: &'a CollectionFacts,
    filter: &FilterSeen,
    has_keys: impl Fn(&IndexFacts) -> bool,
) -> Option<(&'a IndexFacts, Why)> {
    let mut fitting = collection.indexes.iter().filter(|index| has_keys(index));
    fitting.find_map(|index| Some((index, why_unused(index, filter)?)))
}

/// Returns whether one of the indexes can find documents by a field, for an operation with this filter. Where the
/// indexes are not known, nothing is missed.
pub(super) fn finds_by(collection: &CollectionFacts, field: &str, filter: &FilterSeen) -> bool {
    let mut indexes = collection.indexes.iter();
    let is_usable = |index: &IndexFacts| {
        !index.building
            && match why_unused(index, filter) {
                // One document is looked for at a time, by a value that it has.
                None | Some(Why::Sparse) => true,
                // It matters to texts alone, and what the values are is not known.
                Some(Why::Collation) => index.uses != Some(0),
                Some(Why::Hidden | Why::Partial) => false,
            }
    };
    (collection.clustered && field == "_id")
        || collection.indexes.is_empty()
        || indexes.any(|index| {
            is_usable(index) && (begins_with(&index.keys, field) || covers(index, field))
        })
}

/// Returns whether it is an index on this field alone.
fn is_on(index: &IndexFacts, field: &str) -> bool {
    index.keys == format!("{{{}:1}}", javascript_text(field))
}

/// Returns whether it is a wildcard index of all fields, or of those below one that the field is below, too.
fn covers(index: &IndexFacts, field: &str) -> bool {
    let Some((path, _)) = index.keys.split_once("$**\"") else {
        return false;
    };
    let path = path.trim_start_matches("{\"");
    path.is_empty() || field.starts_with(path)
}

/// Returns whether it has the keys of the filter's order, forwards or backwards, and no others.
fn has_order(index: &IndexFacts, filter: &FilterSeen) -> bool {
    [false, true].into_iter().any(|backwards| {
        let keys = filter.keys.iter().map(|key| {
            let direction = if key.descending != backwards { -1 } else { 1 };
            format!("{}:{direction}", javascript_text(&key.field))
        });
        index.keys == format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
    })
}

fn why_unused(index: &IndexFacts, filter: &FilterSeen) -> Option<Why> {
    let has = |option: IndexOption| index.options.contains(&option);
    let whys = [
        (has(IndexOption::Partial), Why::Partial),
        (index.collation != filter.collation, Why::Collation),
        (has(IndexOption::Sparse), Why::Sparse),
        (has(IndexOption::Hidden), Why::Hidden),
    ];
    whys.into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
}

impl PresentIndex<'_> {
    pub(super) fn sentence(&self) -> String {
        let keys = match self.is_same {
            true => "has these keys",
            false => "begins with what is selected by",
        };
        let why = match self.why {
            Why::Hidden => "is hidden, so it is kept up to date and not used",
            Why::Partial => {
                "is partial, so it is not used by what may ask for documents that it has not"
            }
            Why::Sparse => "is sparse, so it is not used for all documents",
            Why::Collation => "compares texts by another collation, so it is not used for them",
        };
        format!(
            "The index {} {keys}, and {why} ($indexStats).",
            self.index.name
        )
    }

    /// Returns the command that has the index used; `None` where another index has to be made, which may have the same
    /// keys if only the collation differs.
    pub(super) fn command(&self, evidence: &Evidence<'_>) -> Option<String> {
        let collection = mongosh_collection(self.namespace);
        let script = match self.why {
            Why::Hidden if !self.is_same => return None,
            Why::Hidden => format!(
                "{collection}.unhideIndex({})",
                javascript_text(&self.index.name)
            ),
            // Of the same keys there is one.
            Why::Partial | Why::Sparse if self.is_same => format!("{collection}.getIndexes()"),
            Why::Partial | Why::Sparse | Why::Collation => return None,
        };
        Some(mongosh(&evidence.uri_for_writes(), &script))
    }
}
