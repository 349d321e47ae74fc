//! What a condition asks of a field, as far as it decides whether an index narrows down what is read.

use mongodb::bson::{Bson, Document};

/// Returns whether it is a regular expression that may match in the middle of a text, or whatever the case of its
/// letters. An index narrows down only those that say how the text begins.
pub(super) fn is_pattern_anywhere(condition: &Bson) -> bool {
    let narrows = |pattern: &str, options: &str| {
        let begins = pattern.starts_with('^') || pattern.starts_with("\\A");
        begins && !options.contains('i')
    };
    match condition {
        Bson::RegularExpression(regex) => !narrows(regex.pattern.as_str(), regex.options.as_str()),
        Bson::Document(condition) => match condition.get("$regex") {
            Some(Bson::String(pattern)) => {
                !narrows(pattern, condition.get_str("$options").unwrap_or_default())
            }
            Some(regex @ Bson::RegularExpression(_)) => is_pattern_anywhere(regex),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether the condition compares with one value or several, for which an index is read at these values alone.
pub(super) fn is_comparison(condition: &Bson) -> bool {
    match condition {
        Bson::RegularExpression(_) => false,
        Bson::Document(condition) => condition
            .keys()
            .all(|name| !name.starts_with('$') || ["$eq", "$in"].contains(&name.as_str())),
        _ => true,
    }
}

/// Returns an operator of the condition for which an ordinary index is read from end to end, or not at all.
pub(super) fn beyond_an_index(condition: &Bson) -> Option<&str> {
    /// Operators for which an index is read only where the values lie, and options of other operators.
    const NARROWING: [&str; 10] = [
        "$eq", "$in", "$gt", "$gte", "$lt", "$lte", "$all", "$regex", "$options", "$comment",
    ];
    let Bson::Document(condition) = condition else {
        return None;
    };
    let mut operators = condition.keys().map(String::as_str);
    operators.find(|name| name.starts_with('$') && !NARROWING.contains(name) && *name != ELEM_MATCH)
}

/// Conditions on the elements of an array.
const ELEM_MATCH: &str = "$elemMatch";

/// Returns the conditions on the fields of an array's elements; `None` if it is no such condition. One on the elements
/// themselves is one on the field.
pub(super) fn of_elements(condition: &Bson) -> Option<&Document> {
    let of = condition.as_document()?.get_document(ELEM_MATCH).ok()?;
    let is_of_fields = !of.is_empty() && of.keys().all(|name| !name.starts_with('$'));
    is_of_fields.then_some(of)
}
