//! Defines operations and how they choose records.

use serde::Deserialize;

use super::distribution::usual_theta;
use super::field::{check_share, check_weight};
use super::short_form::{ShortForm, deserialize_short_form, only};
use super::{Distribution, Field, Index, Ordered};

/// An operation of a user, and how often it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Name in results; the kind and the collection by default.
    pub name: Option<String>,
    /// Its share among the role's operations.
    pub weight: f64,
    /// Values that the action's text can refer to as `"@NAME"`.
    pub parameters: Ordered<Field>,
    /// Number of repetitions in a transaction, with a new key each time.
    pub repeat: u32,
    pub action: Action,
}

/// The kinds of operations.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Load(Load),
    Insert(Insert),
    FindOne(FindOne),
    Find(Find),
    Update(Update),
    Delete(Delete),
    Aggregate(Aggregate),
    Distinct(Distinct),
    Command(Command),
    CreateIndex(CreateIndex),
    DropIndex(DropIndex),
    Transaction(Transaction),
}

/// Inserts the collection's records once each; then the role ends.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub collection: String,
    #[serde(default = "a_hundred")]
    pub batch: u32,
    #[serde(default)]
    pub ordered: bool,
}

/// Inserts new records.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    pub collection: String,
    #[serde(default = "one")]
    pub batch: u32,
    /// Inserts the chosen record instead (after it was deleted).
    #[serde(default)]
    pub again: bool,
    pub keys: Option<Keys>,
}

/// Reads one document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindOne {
    pub collection: String,
    pub keys: Option<Keys>,
    /// `{ _id = "@key" }` by default.
    pub filter: Option<toml::Value>,
    pub projection: Option<toml::Value>,
}

/// Reads a range.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find {
    pub collection: String,
    pub keys: Option<Keys>,
    pub filter: toml::Value,
    pub sort: Option<toml::Value>,
    pub projection: Option<toml::Value>,
    pub limit: Option<Distribution>,
    pub hint: Option<toml::Value>,
}

/// Changes documents: `set` and `inc`, or `update` for anything else, or `replace`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    pub collection: String,
    pub keys: Option<Keys>,
    pub filter: Option<toml::Value>,
    /// New values.
    #[serde(default)]
    pub set: Ordered<Field>,
    #[serde(default)]
    pub inc: Ordered<Field>,
    /// The complete update document or pipeline.
    pub update: Option<toml::Value>,
    /// The whole document, with new values.
    #[serde(default)]
    pub replace: bool,
    #[serde(default)]
    pub upsert: bool,
    #[serde(default)]
    pub many: bool,
}

/// Deletes documents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    pub collection: String,
    pub keys: Option<Keys>,
    pub filter: Option<toml::Value>,
    #[serde(default)]
    pub many: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    pub collection: String,
    pub keys: Option<Keys>,
    /// An array, or JSON text.
    pub pipeline: toml::Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distinct {
    pub collection: String,
    pub keys: Option<Keys>,
    pub field: String,
    pub filter: Option<toml::Value>,
}

/// Any command that has no cursor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The collection whose records `"@key"` refers to.
    pub collection: Option<String>,
    pub keys: Option<Keys>,
    /// A table, or JSON text; the command's name comes first.
    pub command: toml::Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateIndex {
    pub collection: String,
    pub index: Index,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropIndex {
    pub collection: String,
    pub index: String,
}

/// Several operations that count as one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    pub steps: Vec<Operation>,
    /// Wraps them in a real multi-document transaction.
    #[serde(default)]
    pub atomic: bool,
    /// The reaction when a step fails.
    #[serde(default)]
    pub go_on: bool,
}

/// An operation written as a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationTable {
    name: Option<String>,
    weight: Option<f64>,
    #[serde(default)]
    parameters: Ordered<Field>,
    #[serde(default = "one")]
    repeat: u32,
    load: Option<Load>,
    insert: Option<Insert>,
    find_one: Option<FindOne>,
    find: Option<Find>,
    update: Option<Update>,
    delete: Option<Delete>,
    aggregate: Option<Aggregate>,
    distinct: Option<Distinct>,
    command: Option<Command>,
    create_index: Option<CreateIndex>,
    drop_index: Option<DropIndex>,
    transaction: Option<Transaction>,
}

impl ShortForm for Operation {
    type Table = OperationTable;
    const ALLOWED: &'static str = "write a table with one of load, insert, find_one, find, update, delete, \
        aggregate, distinct, command, create_index, drop_index, transaction";

    fn from_scalar(_: toml::Value) -> Result<Self, String> {
        Err(Self::ALLOWED.into())
    }

    fn from_table(table: OperationTable) -> Result<Self, String> {
        let given = [
            table.load.map(Action::Load),
            table.insert.map(Action::Insert),
            table.find_one.map(Action::FindOne),
            table.find.map(Action::Find),
            table.update.map(Action::Update),
            table.delete.map(Action::Delete),
            table.aggregate.map(Action::Aggregate),
            table.distinct.map(Action::Distinct),
            table.command.map(Action::Command),
            table.create_index.map(Action::CreateIndex),
            table.drop_index.map(Action::DropIndex),
            table.transaction.map(Action::Transaction),
        ];
        let weight = table.weight.unwrap_or(1.0);
        check_weight(weight)?;
        if !(1..=10_000).contains(&table.repeat) {
            return Err("repeat must be between 1 and 10000".into());
        }
        Ok(Self {
            name: table.name,
            weight,
            parameters: table.parameters,
            repeat: table.repeat,
            action: only(given, Self::ALLOWED)?,
        })
    }
}

/// How a record is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Keys {
    #[default]
    Uniform,
    /// Record numbers in turn, from 0, repeatedly; shared by all users of the role.
    Sequential,
    /// The same record as in the previous step.
    Same,
    /// A few records, scattered over the collection, are chosen most.
    Zipf { theta: f64 },
    /// The newest records are chosen most.
    Latest { theta: f64 },
    /// `operations` of the choices fall on the first `data` of the records (shares).
    Hotspot { data: f64, operations: f64 },
    /// Records around a position in the collection are chosen most; both figures are shares of its records.
    Normal { mean: f64, deviation: f64 },
}

/// A choice of records written as a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysTable {
    zipf: Option<Skew>,
    latest: Option<Skew>,
    hotspot: Option<Hotspot>,
    normal: Option<NormalKeys>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Skew {
    #[serde(default = "usual_theta")]
    theta: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hotspot {
    data: f64,
    operations: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalKeys {
    mean: f64,
    deviation: f64,
}

impl ShortForm for Keys {
    type Table = KeysTable;
    const ALLOWED: &'static str = "write \"uniform\", \"sequential\", \"same\", \"zipf\", \"latest\" or one of \
        { zipf = { theta } }, { latest = { theta } }, { hotspot = { data, operations } }, \
        { normal = { mean, deviation } }";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        let theta = usual_theta();
        match scalar.as_str() {
            Some("uniform") => Ok(Self::Uniform),
            Some("sequential") => Ok(Self::Sequential),
            Some("same") => Ok(Self::Same),
            Some("zipf") => Ok(Self::Zipf { theta }),
            Some("latest") => Ok(Self::Latest { theta }),
            _ => Err(Self::ALLOWED.into()),
        }
    }

    fn from_table(table: KeysTable) -> Result<Self, String> {
        let given = [
            table.zipf.map(|skew| Self::Zipf { theta: skew.theta }),
            table.latest.map(|skew| Self::Latest { theta: skew.theta }),
            table.hotspot.map(|hot| Self::Hotspot {
                data: hot.data,
                operations: hot.operations,
            }),
            table.normal.map(|normal| Self::Normal {
                mean: normal.mean,
                deviation: normal.deviation,
            }),
        ];
        let keys = only(given, Self::ALLOWED)?;
        match keys {
            Self::Zipf { theta } | Self::Latest { theta } if !(0.0..=20.0).contains(&theta) => {
                Err(format!("theta {theta} is not between 0 and 20"))
            }
            Self::Hotspot { data, operations } => {
                check_share(data)?;
                check_share(operations)?;
                Ok(keys)
            }
            Self::Normal { mean, deviation } => {
                check_share(mean)?;
                check_share(deviation)?;
                Ok(keys)
            }
            _ => Ok(keys),
        }
    }
}

deserialize_short_form!(Operation, Keys);

fn one() -> u32 {
    1
}

fn a_hundred() -> u32 {
    100
}
