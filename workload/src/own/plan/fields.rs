//! Converts generators as written to values ready to write.

use std::collections::HashMap;
use std::sync::Arc;

use crate::generators::Compressible;
use crate::own::error::Fault;
use crate::own::keys::Chooser;
use crate::own::language::{
    Bytes, Dates, Distribution, Field, Generator, Keys, NumberKind, ObjectIds, Ordered, Reference,
    Text, Weighted, WorkloadFile,
};
use crate::own::values::{
    self, ByWeight, DrawnNumber, Entry, Filling, Shape, ShapeBuilder, Template, Value,
};

/// Deepest nesting of documents and arrays; servers reject 100.
const DEPTH_MAX: usize = 50;
/// The most elements of an array, so that their indexes have at most seven digits.
const ELEMENTS_MAX: u64 = 1_000_000;
/// Largest document that servers accept.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 16 << 20;
/// 2026-01-01, where object ids begin by default.
const FIRST_SECOND: u32 = 1_767_225_600;

/// Creates values, each field of each collection at most once for references.
pub(super) struct Fields<'a> {
    file: &'a WorkloadFile,
    /// Number of records of each collection, scaled.
    records: &'a dyn Fn(&str) -> u64,
    done: HashMap<(String, String), Arc<Entry>>,
    /// References that are being followed.
    following: Vec<(String, String)>,
}

type Made<T> = Result<T, Fault>;

impl<'a> Fields<'a> {
    pub(super) fn new(file: &'a WorkloadFile, records: &'a dyn Fn(&str) -> u64) -> Self {
        Self {
            file,
            records,
            done: HashMap::new(),
            following: Vec::new(),
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.file.seed
    }

    /// Returns a collection's document; `with_id` adds `_id` at the beginning if the text names none.
    pub(super) fn document(&mut self, collection: &str, with_id: bool) -> Made<Shape> {
        let path = format!("collections.{collection}.fields");
        let fields = &self.collection(collection, &path)?.fields;
        let mut builder = ShapeBuilder::default();
        if with_id && fields.get("_id").is_none() {
            builder.add(self.field(&path, "_id", &record_number(), 0)?);
        }
        for (name, field) in fields.iter().filter(|(name, _)| with_id || name != "_id") {
            builder.add(self.field(&path, name, field, 0)?);
        }
        let shape = builder.finish();
        if shape.bytes_max() > DOCUMENT_BYTES_MAX {
            let size = shape.bytes_max();
            let message = format!(
                "a document can have {size} bytes, and servers accept at most {DOCUMENT_BYTES_MAX}"
            );
            return Err(Fault::new(path, message));
        }
        Ok(shape)
    }

    /// Returns one field of a collection, for references and for keys of operations. `path` is that of the
    /// referrer.
    pub(super) fn of_collection(
        &mut self,
        collection: &str,
        name: &str,
        path: &str,
    ) -> Made<Arc<Entry>> {
        let place = (collection.to_string(), name.to_string());
        if let Some(entry) = self.done.get(&place) {
            return Ok(Arc::clone(entry));
        }
        if self.following.contains(&place) {
            let chain = self.following.iter().chain([&place]);
            let chain: Vec<String> = chain.map(|(c, f)| format!("{c}.{f}")).collect();
            return Err(Fault::new(
                path,
                format!("the references form a cycle: {}", chain.join(" → ")),
            ));
        }
        let fields = &self.collection(collection, path)?.fields;
        let default_id = record_number();
        let field = match fields.get(name) {
            Some(field) => field,
            None if name == "_id" => &default_id,
            None => {
                let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                let message = format!(
                    "{collection} has no field {name:?}; it has {}",
                    names.join(", ")
                );
                return Err(Fault::new(path, message));
            }
        };
        self.following.push(place.clone());
        let entry = self.field(&format!("collections.{collection}.fields"), name, field, 0);
        self.following.pop();
        let entry = Arc::new(entry?);
        self.done.insert(place, Arc::clone(&entry));
        Ok(entry)
    }

    /// Returns the fields of a nested document, or of a `$set`.
    pub(super) fn shape(
        &mut self,
        path: &str,
        fields: &Ordered<Field>,
        depth: usize,
    ) -> Made<Shape> {
        let mut builder = ShapeBuilder::default();
        for (name, field) in fields.iter() {
            builder.add(self.field(path, name, field, depth)?);
        }
        Ok(builder.finish())
    }

    pub(super) fn field(
        &mut self,
        path: &str,
        name: &str,
        field: &Field,
        depth: usize,
    ) -> Made<Entry> {
        let path = format!("{path}.{name}");
        if name.contains('\0') {
            return Err(Fault::new(path, "a field name must not contain NUL"));
        }
        // Nested documents need no _id.
        if name == "_id" && depth == 0 && field.absent > 0.0 {
            return Err(Fault::new(path, "_id cannot be absent"));
        }
        Ok(Entry {
            name: name.into(),
            key: values::key_of(self.file.seed, &path),
            absent: field.absent,
            value: self.value(&path, &field.generator, depth)?,
        })
    }

    fn collection(&self, name: &str, path: &str) -> Made<&'a crate::own::language::Collection> {
        self.file.collections.get(name).ok_or_else(|| {
            let names: Vec<&str> = self
                .file
                .collections
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            Fault::new(
                path,
                format!(
                    "there is no collection {name:?}; the workload has: {}",
                    names.join(", ")
                ),
            )
        })
    }

    fn value(&mut self, path: &str, generator: &Generator, depth: usize) -> Made<Value> {
        if depth > DEPTH_MAX {
            return Err(Fault::new(
                path,
                format!("it is nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        let fault = |message: String| Fault::new(path, message);
        match generator {
            Generator::Constant(value) => values::bson_of(value).and_then(constant).map_err(fault),
            Generator::Null => constant(bson::Bson::Null).map_err(fault),
            Generator::Record(kind) => Ok(Value::Record(*kind)),
            Generator::Sequence(sequence) => Ok(Value::Sequence {
                start: sequence.start,
                step: sequence.step,
                modulo: sequence.modulo.unwrap_or(u64::MAX).max(1),
            }),
            Generator::Int32(numbers) => whole(numbers, f64::from(i32::MIN), f64::from(i32::MAX))
                .map(Value::Int32)
                .map_err(fault),
            Generator::Int64(numbers) => whole(numbers, -(2_f64.powi(63)), 2_f64.powi(63))
                .map(Value::Int64)
                .map_err(fault),
            Generator::Double(numbers) => drawn(numbers).map(Value::Double).map_err(fault),
            Generator::Boolean(share) => Ok(Value::Boolean(*share)),
            Generator::String(text) => string(text).map(Value::Text).map_err(fault),
            Generator::Binary(bytes) => binary(bytes).map(Value::Binary).map_err(fault),
            Generator::Uuid => Ok(Value::Uuid),
            Generator::ObjectId(ids) => {
                object_ids(ids, values::key_of(self.file.seed, path)).map_err(fault)
            }
            Generator::Date(dates) => date(dates).map_err(fault),
            Generator::Point(point) => {
                let (longitude, latitude) = (point.longitude, point.latitude);
                let good =
                    |[low, high]: [f64; 2], end: f64| -end <= low && low <= high && high <= end;
                if !good(longitude, 180.0) || !good(latitude, 90.0) {
                    return Err(fault(
                        "longitudes are between -180 and 180, latitudes between -90 and 90, with \
                         the lower bound first"
                            .into(),
                    ));
                }
                Ok(Value::Point {
                    longitude,
                    latitude,
                    form: point.form,
                })
            }
            Generator::Template(text) => Template::parse(text).map(Value::Template).map_err(fault),
            Generator::Document(fields) => self
                .shape(&format!("{path}.document"), fields, depth + 1)
                .map(Value::Document),
            Generator::Choose(choices) => self.choice(path, choices, depth),
            Generator::Array(array) => {
                let length = length(&array.length, ELEMENTS_MAX).map_err(fault)?;
                let of = Box::new(self.value(
                    &format!("{path}.array.of"),
                    &array.of.generator,
                    depth + 1,
                )?);
                Ok(Value::Array { length, of })
            }
            Generator::Reference(reference) => self.reference(path, reference),
        }
    }

    fn choice(&mut self, path: &str, choices: &[Weighted], depth: usize) -> Made<Value> {
        let mut weighted = Vec::with_capacity(choices.len());
        for (index, choice) in choices.iter().enumerate() {
            let path = format!("{path}.choose[{index}]");
            weighted.push((
                choice.weight,
                self.value(&path, &choice.value.generator, depth + 1)?,
            ));
        }
        ByWeight::new(weighted).map(Value::Choose).ok_or_else(|| {
            Fault::new(
                path,
                "there is nothing to choose: give at least one weight above 0",
            )
        })
    }

    fn reference(&mut self, path: &str, reference: &Reference) -> Made<Value> {
        if matches!(reference.keys, Keys::Sequential | Keys::Same) {
            let message = "the record of a reference must follow from that of its own document, so \
                           neither \"sequential\" nor \"same\" is possible";
            return Err(Fault::new(path, message));
        }
        let target = self.of_collection(&reference.collection, &reference.field, path)?;
        let records = (self.records)(&reference.collection);
        let seed = values::key_of(self.file.seed, path);
        let chooser = Chooser::new(reference.keys, records, seed)
            .ok_or_else(|| Fault::new(path, "records cannot be chosen in this way"))?;
        Ok(Value::Reference {
            target,
            chooser,
            records,
        })
    }
}

/// Returns the default for `_id`.
fn record_number() -> Field {
    Field {
        absent: 0.0,
        generator: Generator::Record(NumberKind::Int64),
    }
}

pub(super) fn constant(value: bson::Bson) -> Result<Value, String> {
    values::encoded(value).map(|(kind, encoded)| Value::Constant { kind, encoded })
}

fn drawn(numbers: &Distribution) -> Result<DrawnNumber, String> {
    DrawnNumber::new(numbers).ok_or_else(|| "numbers cannot be drawn in this way".into())
}

fn whole(numbers: &Distribution, low: f64, high: f64) -> Result<DrawnNumber, String> {
    let numbers = drawn(numbers)?;
    let (min, max) = numbers.range();
    if min < low || max > high {
        return Err(format!(
            "numbers from {min} to {max} do not fit; give min and max within {low} to {high}"
        ));
    }
    Ok(numbers)
}

pub(super) fn length(numbers: &Distribution, max: u64) -> Result<DrawnNumber, String> {
    let numbers = drawn(numbers)?;
    if numbers.range().0 < 0.0 && !matches!(numbers, DrawnNumber::Normal { .. })
        || numbers.range().1 < 0.0
    {
        return Err("a length cannot be below 0".into());
    }
    if numbers.count_max() > max {
        let most = numbers.count_max();
        return Err(format!(
            "lengths of up to {most} are possible, and the limit is {max}; give a lower max"
        ));
    }
    Ok(numbers)
}

fn string(text: &Text) -> Result<values::Text, String> {
    let filling = match (&text.alphabet, text.compressible) {
        (None, Some(share)) => Filling::Compressible(Box::new(Compressible::new(share.0))),
        (Some(_), Some(_)) => return Err("alphabet and compressible exclude each other".into()),
        (alphabet, None) => Filling::alphabet(alphabet.as_deref().unwrap_or("alphanumeric"))?,
    };
    Ok(values::Text {
        length: length(&text.length, DOCUMENT_BYTES_MAX)?,
        filling,
    })
}

fn binary(bytes: &Bytes) -> Result<values::Bytes, String> {
    let filling = bytes.compressible.map_or(Filling::AnyByte, |share| {
        Filling::Compressible(Box::new(Compressible::new(share.0)))
    });
    Ok(values::Bytes {
        length: length(&bytes.length, DOCUMENT_BYTES_MAX)?,
        filling,
    })
}

fn object_ids(ids: &ObjectIds, key: u64) -> Result<Value, String> {
    let start_s = match &ids.start {
        None => FIRST_SECOND,
        Some(date) => u32::try_from(values::epoch_ms(date)? / 1000)
            .map_err(|_| "object IDs hold dates from 1970 to 2106")?,
    };
    if ids.per_second == 0 {
        return Err("per_second must be at least 1".into());
    }
    let [a, b, c, d, e, ..] = key.to_be_bytes();
    Ok(Value::ObjectId {
        start_s,
        per_second: ids.per_second,
        process: [a, b, c, d, e],
    })
}

fn date(dates: &Dates) -> Result<Value, String> {
    let start = values::epoch_ms(&dates.start)?;
    let millis =
        |time: crate::own::language::Time| i64::try_from(time.0.as_millis()).unwrap_or(i64::MAX);
    match (&dates.end, dates.step, dates.jitter) {
        (Some(end), None, None) => {
            let span = values::epoch_ms(end)?.saturating_sub(start);
            let span = u64::try_from(span).ok().filter(|span| *span > 0);
            Ok(Value::DateUniform {
                start,
                span: span.ok_or("end must be after start")?,
            })
        }
        (None, step, jitter) => Ok(Value::DateStep {
            start,
            step: step.map_or(0, millis),
            jitter: jitter.map_or(0, millis).unsigned_abs(),
        }),
        (Some(_), ..) => {
            Err("give end (dates between), or step and perhaps jitter, not both".into())
        }
    }
}
