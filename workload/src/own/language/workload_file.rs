//! Defines the whole text, its collections and their indexes.

use serde::Deserialize;

use super::{Field, Ordered, Phase};

/// A workload as written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Name in results.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// Seed that determines all values.
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub collections: Ordered<Collection>,
    #[serde(default)]
    pub phases: Vec<Phase>,
}

/// A collection's documents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Number of records that `load` inserts; operations choose among them.
    #[serde(default)]
    pub records: u64,
    pub fields: Ordered<Field>,
    #[serde(default)]
    pub indexes: Vec<Index>,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Field and direction (1, -1) or kind ("hashed", "text", "2dsphere", …), in order.
    pub keys: Ordered<toml::Value>,
    /// Name; as in mongosh by default: `city_1`.
    pub name: Option<String>,
    #[serde(default)]
    pub unique: bool,
    #[serde(default)]
    pub when: When,
}

/// When an index of a collection is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Before the first phase, on an empty collection.
    #[default]
    BeforeLoad,
    /// After the phase that loads the collection.
    AfterLoad,
}

fn one() -> u64 {
    1
}
