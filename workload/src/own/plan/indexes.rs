//! Converts index definitions to `createIndexes` commands.

use bson::{Bson, Document, doc};

use crate::own::error::Fault;
use crate::own::language::Index;
use crate::own::values::bson_of;

/// Returns the command that builds an index.
pub(super) fn create_command(
    collection: &str,
    index: &Index,
    path: &str,
) -> Result<Document, Fault> {
    if index.keys.is_empty() || index.keys.0.len() > 32 {
        return Err(Fault::new(
            format!("{path}.keys"),
            "an index must have 1 to 32 keys",
        ));
    }
    let mut keys = Document::new();
    for (name, direction) in index.keys.iter() {
        let path = format!("{path}.keys.{name}");
        let good = match direction {
            toml::Value::Integer(number) => *number == 1 || *number == -1,
            toml::Value::String(kind) => !kind.is_empty() && !kind.contains('\0'),
            _ => false,
        };
        if !good {
            return Err(Fault::new(path, "write 1, -1 or a kind such as \"hashed\""));
        }
        keys.insert(
            name,
            bson_of(direction).map_err(|why| Fault::new(path, why))?,
        );
    }
    let name = index.name.clone().unwrap_or_else(|| default_name(&keys));
    let mut definition = doc! { "key": keys, "name": name };
    if index.unique {
        definition.insert("unique", true);
    }
    Ok(doc! { "createIndexes": collection, "indexes": [definition] })
}

/// Returns the name that shells give: `city_1_age_-1`.
fn default_name(keys: &Document) -> String {
    let parts = keys.iter().map(|(name, value)| match value {
        Bson::String(kind) => format!("{name}_{kind}"),
        other => format!("{name}_{other}"),
    });
    parts.collect::<Vec<_>>().join("_")
}
