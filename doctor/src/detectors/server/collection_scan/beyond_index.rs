//! Conditions for which an ordinary index on their field is read from end to end, or is not used, and what helps instead.

use seekscope_run::FilterSeen;

use super::create_index;
use crate::Evidence;
use crate::wording::javascript_text;

/// Conditions on where something lies.
const OF_PLACES: [&str; 2] = ["$geoWithin", "$geoIntersects"];
const EXISTS: &str = "$exists";

/// Returns whether every field that it selects by is beyond an ordinary index.
pub(super) fn is_all_of(filter: &FilterSeen) -> bool {
    !filter.fields.is_empty() && filter.fields.iter().all(|field| is_one(filter, field))
}

/// Returns whether an ordinary index narrows down all that it selects by.
pub(super) fn is_none_of(filter: &FilterSeen) -> bool {
    filter.beyond.is_empty() && filter.patterns.is_empty()
}

fn is_one(filter: &FilterSeen, field: &str) -> bool {
    let mut beyond = filter.beyond.iter().map(|condition| &condition.field);
    filter.patterns.iter().any(|name| name == field) || beyond.any(|name| name == field)
}

/// Says why an ordinary index does not help, and what does.
pub(super) fn about(filter: &FilterSeen) -> String {
    let Some(condition) = filter.beyond.first() else {
        let patterns = filter.patterns.join(", ");
        return format!(
            "It looks for a pattern that may begin anywhere in {patterns}, or in any letters, and would read all of an \
             index on that: only a pattern that begins with ^ and minds the case, or a text index, reads less."
        );
    };
    let (field, operator) = (&condition.field, &condition.operator);
    match operator.as_str() {
        place if OF_PLACES.contains(&place) => format!(
            "It selects by where {field} lies ({place}): a 2dsphere index (2d for coordinates on a plane) lets it read \
             what lies there, and an ordinary one does not."
        ),
        EXISTS => format!(
            "It selects by whether documents have {field} ($exists). Where it asks for those that have it, and few do, a \
             sparse index on that helps; where it asks for those that lack it, and few do, an ordinary one does, and a \
             sparse one is not used."
        ),
        _ => format!(
            "It selects by {field} with {operator}, for which an index on that is read from end to end if at all: only a \
             value or a range, of another field if need be, narrows down what is read."
        ),
    }
}

/// Returns the command that makes an index that helps; `None` if there is none.
pub(super) fn command(
    evidence: &Evidence<'_>,
    namespace: &str,
    filter: &FilterSeen,
) -> Option<String> {
    let [condition] = filter.beyond.as_slice() else {
        return None;
    };
    let field = javascript_text(&condition.field);
    let index = match condition.operator.as_str() {
        place if OF_PLACES.contains(&place) => format!("{{{field}: \"2dsphere\"}}"),
        _ => return None,
    };
    Some(create_index(evidence, namespace, &index))
}
