//! The collections that an aggregation looks documents up in, and by which of their fields.

use mongodb::bson::{Bson, Document};
use seekscope_run::JoinSeen;

use super::{DEPTH_MAX, FIELDS_MAX, kept_whole};
use crate::replies::at;

/// Returns the collections that the stages look single values up in. A `$lookup` with a pipeline of its own may select by
/// anything; it counts where it compares a field for equality, and is left out otherwise.
pub(super) fn joins(stages: &[&Document]) -> Vec<JoinSeen> {
    let mut found: Vec<JoinSeen> = Vec::new();
    for stage in stages {
        let of = |name: &str, field: &str| join(stage.get_document(name).ok()?, field);
        let join = of("$lookup", "foreignField").or_else(|| of("$graphLookup", "connectToField"));
        found.extend(join.filter(|join| found.len() < FIELDS_MAX && !found.contains(join)));
    }
    found
}

/// Reads a stage that looks documents up by the field that it has under this name.
fn join(lookup: &Document, field: &str) -> Option<JoinSeen> {
    let field = match lookup.get_str(field) {
        Ok(field) => field,
        Err(_) => {
            let stages = lookup.get_array("pipeline").ok()?;
            let first = stages.first()?.as_document()?;
            compared(at(first, &["$match", "$expr"])?, DEPTH_MAX)?
        }
    };
    Some(JoinSeen {
        collection: kept_whole(lookup.get_str("from").ok()?)?,
        field: kept_whole(field)?,
    })
}

/// Returns the first field that an expression compares with a variable for equality.
fn compared(expression: &Bson, depth: usize) -> Option<&str> {
    let expression = expression.as_document()?;
    if let (Ok(parts), true) = (expression.get_array("$and"), depth > 0) {
        return parts.iter().find_map(|part| compared(part, depth - 1));
    }
    let sides = expression.get_array("$eq").ok()?;
    let [a, b] = sides.as_slice() else {
        return None;
    };
    let (a, b) = (a.as_str()?, b.as_str()?);
    let is_variable = |text: &str| text.starts_with("$$");
    let field = match (is_variable(a), is_variable(b)) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    field.strip_prefix('$')
}
