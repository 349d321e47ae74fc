//! Defines the contents of a field.

use serde::Deserialize;
use toml::value::Datetime;

use super::short_form::{ShortForm, deserialize_short_form, only};
use super::{Distribution, Keys, Ordered};

/// A field's generator, and how often the field is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Share of records without the field, 0 to 1.
    pub absent: f64,
    pub generator: Generator,
}

/// The generator of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Generator {
    Constant(toml::Value),
    Null,
    /// The record's number, from 0.
    Record(NumberKind),
    Sequence(Sequence),
    Int32(Distribution),
    Int64(Distribution),
    Double(Distribution),
    /// True with this probability.
    Boolean(f64),
    Choose(Vec<Weighted>),
    String(Text),
    Binary(Bytes),
    Uuid,
    ObjectId(ObjectIds),
    Date(Dates),
    Point(Point),
    Array(Array),
    Document(Ordered<Field>),
    Template(String),
    Reference(Reference),
}

/// BSON's numeric types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    Int32,
    Int64,
    Double,
    String,
}

/// `start + step × (record mod modulo)`, an int64.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    #[serde(default)]
    pub start: i64,
    #[serde(default = "one")]
    pub step: i64,
    pub modulo: Option<u64>,
}

/// One of several values.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    pub weight: f64,
    pub value: Field,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    pub length: Distribution,
    /// A class, or the characters themselves after `chars:`; "alphanumeric" by default.
    pub alphabet: Option<String>,
    /// Instead of an alphabet: printable text, with the share that compressors save.
    pub compressible: Option<Share>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    pub length: Distribution,
    /// Incompressible by default.
    pub compressible: Option<Share>,
}

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Share(pub f64);

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectIds {
    /// Time of record 0; 2026-01-01 by default.
    pub start: Option<Datetime>,
    /// Number of records with the same second.
    #[serde(default = "a_thousand")]
    pub per_second: u32,
}

/// Either `step` (and optionally `jitter`) or `end`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dates {
    pub start: Datetime,
    /// Dates are uniform between `start` and this.
    pub end: Option<Datetime>,
    /// Time from record to record.
    pub step: Option<super::Time>,
    /// Longest random delay after the step's time.
    pub jitter: Option<super::Time>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    #[serde(default = "all_longitudes")]
    pub longitude: [f64; 2],
    #[serde(default = "all_latitudes")]
    pub latitude: [f64; 2],
    #[serde(default)]
    pub form: PointForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointForm {
    /// `{type: "Point", coordinates: [longitude, latitude]}`.
    #[default]
    Geojson,
    /// `[longitude, latitude]`.
    Array,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    pub length: Distribution,
    pub of: Box<Field>,
}

/// The value of a field of a record in some collection.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    pub collection: String,
    #[serde(default = "id")]
    pub field: String,
    #[serde(default)]
    pub keys: Keys,
}

/// A field written as a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    absent: Option<Share>,
    constant: Option<toml::Value>,
    null: Option<Yes>,
    record: Option<NumberKind>,
    sequence: Option<Sequence>,
    int32: Option<Distribution>,
    int64: Option<Distribution>,
    double: Option<Distribution>,
    boolean: Option<Share>,
    choose: Option<Vec<Weighted>>,
    string: Option<Text>,
    binary: Option<Bytes>,
    uuid: Option<Yes>,
    objectid: Option<ObjectIds>,
    date: Option<Dates>,
    point: Option<Point>,
    array: Option<Array>,
    document: Option<Ordered<Field>>,
    template: Option<String>,
    reference: Option<Reference>,
}

impl ShortForm for Field {
    type Table = Table;
    const ALLOWED: &'static str = "write a constant, or a table with one generator: constant, null, \
        record, sequence, int32, int64, double, boolean, choose, string, binary, uuid, objectid, date, \
        point, array, document, template or reference";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        Ok(Self {
            absent: 0.0,
            generator: Generator::Constant(scalar),
        })
    }

    fn from_table(table: Table) -> Result<Self, String> {
        let given = [
            table.constant.map(Generator::Constant),
            table.null.map(|_| Generator::Null),
            table.record.map(Generator::Record),
            table.sequence.map(Generator::Sequence),
            table.int32.map(Generator::Int32),
            table.int64.map(Generator::Int64),
            table.double.map(Generator::Double),
            table.boolean.map(|share| Generator::Boolean(share.0)),
            table.choose.map(Generator::Choose),
            table.string.map(Generator::String),
            table.binary.map(Generator::Binary),
            table.uuid.map(|_| Generator::Uuid),
            table.objectid.map(Generator::ObjectId),
            table.date.map(Generator::Date),
            table.point.map(Generator::Point),
            table.array.map(Generator::Array),
            table.document.map(Generator::Document),
            table.template.map(Generator::Template),
            table.reference.map(Generator::Reference),
        ];
        Ok(Self {
            absent: table.absent.map_or(0.0, |share| share.0),
            generator: only(given, Self::ALLOWED)?,
        })
    }
}

/// One of several values, written as a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeightedTable {
    value: Field,
    #[serde(default = "one_f64")]
    weight: f64,
}

impl ShortForm for Weighted {
    type Table = WeightedTable;
    const ALLOWED: &'static str = "write a constant or { value = FIELD, weight = NUMBER }";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        Ok(Self {
            weight: 1.0,
            value: Field::from_scalar(scalar)?,
        })
    }

    fn from_table(table: WeightedTable) -> Result<Self, String> {
        check_weight(table.weight)?;
        Ok(Self {
            weight: table.weight,
            value: table.value,
        })
    }
}

deserialize_short_form!(Field, Weighted);

/// A switch for which only `true` makes sense.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "bool")]
struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        value.then_some(Self).ok_or("only true is allowed here")
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        check_share(share)?;
        Ok(Self(share))
    }
}

pub(super) fn check_share(share: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&share) {
        Ok(())
    } else {
        Err(format!("{share} is not between 0 and 1"))
    }
}

pub(super) fn check_weight(weight: f64) -> Result<(), String> {
    if weight.is_finite() && weight >= 0.0 {
        Ok(())
    } else {
        Err(format!("weight {weight} is not a number of at least 0"))
    }
}

fn one() -> i64 {
    1
}

fn one_f64() -> f64 {
    1.0
}

fn a_thousand() -> u32 {
    1_000
}

fn id() -> String {
    "_id".into()
}

fn all_longitudes() -> [f64; 2] {
    [-180.0, 180.0]
}

fn all_latitudes() -> [f64; 2] {
    [-90.0, 90.0]
}
