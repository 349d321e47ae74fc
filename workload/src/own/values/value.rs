//! Generates values of all kinds.

use std::sync::Arc;

use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use super::{Bytes, Context, DrawnNumber, Entry, Shape, Template, Text};
use crate::generators::Weighted;
use crate::own::keys::Chooser;
use crate::own::language::{NumberKind, PointForm};

/// BSON element types (bsonspec.org).
const BINARY: u8 = 0x05;
const OBJECT_ID: u8 = 0x07;
const UUID_SUBTYPE: u8 = 4;

/// See [`crate::own::language::Generator`].
#[derive(Debug)]
pub(crate) enum Value {
    Constant {
        kind: u8,
        encoded: Box<[u8]>,
    },
    Record(NumberKind),
    Sequence {
        start: i64,
        step: i64,
        modulo: u64,
    },
    Int32(DrawnNumber),
    Int64(DrawnNumber),
    Double(DrawnNumber),
    Boolean(f64),
    Choose(ByWeight),
    Text(Text),
    Binary(Bytes),
    Uuid,
    ObjectId {
        start_s: u32,
        per_second: u32,
        process: [u8; 5],
    },
    /// Milliseconds since 1970.
    DateStep {
        start: i64,
        step: i64,
        jitter: u64,
    },
    DateUniform {
        start: i64,
        span: u64,
    },
    Point {
        longitude: [f64; 2],
        latitude: [f64; 2],
        form: PointForm,
    },
    Array {
        length: DrawnNumber,
        of: Box<Value>,
    },
    Document(Shape),
    /// An array whose elements are the fields, named "0", "1", ….
    List(Shape),
    Template(Template),
    OfRecord(OfRecord),
    Reference {
        target: Arc<Entry>,
        chooser: Chooser,
        records: u64,
    },
}

/// The value that a field of the current record (or one at a distance) has or gets.
#[derive(Debug)]
pub(crate) struct OfRecord {
    pub(crate) entry: Arc<Entry>,
    pub(crate) offset: u64,
    /// Drawn for each operation, instead of the value with which the record was inserted.
    pub(crate) is_fresh: bool,
}

/// One of several values.
#[derive(Debug)]
pub(crate) struct ByWeight {
    places: Weighted<usize>,
    values: Vec<Value>,
}

impl ByWeight {
    /// Creates the choice; `None` if nothing has a weight.
    pub(crate) fn new(weighted: Vec<(f64, Value)>) -> Option<Self> {
        let weights: Vec<(usize, f64)> = weighted
            .iter()
            .map(|(weight, _)| *weight)
            .enumerate()
            .collect();
        Some(Self {
            places: Weighted::new(&weights)?,
            values: weighted.into_iter().map(|(_, value)| value).collect(),
        })
    }

    fn choose(&self, random: &mut SplitMix64) -> &Value {
        &self.values[self.places.draw(random)]
    }
}

impl Value {
    /// Appends the value under a name. `stream` is where its draws begin.
    pub(crate) fn write(&self, name: &str, context: Context, stream: u64, writer: &mut BsonWriter) {
        let mut random = SplitMix64::new(stream);
        match self {
            Self::Constant { kind, encoded } => {
                writer.value(*kind, name, encoded);
            }
            Self::Record(kind) => write_number(*kind, name, context.record, writer),
            Self::Sequence {
                start,
                step,
                modulo,
            } => {
                let place = i64::try_from(context.record % modulo).unwrap_or(i64::MAX);
                writer.int64(name, start.wrapping_add(step.wrapping_mul(place)));
            }
            Self::Int32(number) => {
                writer.int32(name, i32::try_from(number.whole(&mut random)).unwrap_or(0));
            }
            Self::Int64(number) => {
                writer.int64(name, number.whole(&mut random));
            }
            Self::Double(number) => {
                writer.double(name, number.real(&mut random));
            }
            Self::Boolean(share) => {
                writer.boolean(name, random.unit_f64() < *share);
            }
            Self::Choose(choices) => {
                let value = choices.choose(&mut random);
                value.write(name, context, random.next_u64(), writer);
            }
            Self::Text(text) => text.write(name, &mut random, writer),
            Self::Binary(bytes) => bytes.write(name, &mut random, writer),
            Self::Template(template) => template.write(name, context.record, &mut random, writer),
            _ => self.write_compound(name, context, &mut random, writer),
        }
    }

    /// Writes a value made of other values, or of several numbers.
    fn write_compound(
        &self,
        name: &str,
        context: Context,
        random: &mut SplitMix64,
        writer: &mut BsonWriter,
    ) {
        match self {
            Self::Uuid => write_uuid(name, random, writer),
            Self::ObjectId {
                start_s,
                per_second,
                process,
            } => {
                let id = object_id(*start_s, *per_second, *process, context.record);
                writer.value(OBJECT_ID, name, &id);
            }
            Self::DateStep {
                start,
                step,
                jitter,
            } => {
                let place = i64::try_from(context.record).unwrap_or(i64::MAX);
                let late = i64::try_from(random.below(jitter.saturating_add(1))).unwrap_or(0);
                let date = start.saturating_add(step.saturating_mul(place));
                writer.date(name, date.saturating_add(late));
            }
            Self::DateUniform { start, span } => {
                let later = i64::try_from(random.below(*span)).unwrap_or(0);
                writer.date(name, start.saturating_add(later));
            }
            Self::Point {
                longitude,
                latitude,
                form,
            } => {
                let x = between(*longitude, random);
                let y = between(*latitude, random);
                write_point(name, *form, [x, y], writer);
            }
            Self::Array { length, of } => {
                writer.begin_array(name);
                for index in 0..length.count(random) {
                    let place = index as u64;
                    of.write(
                        Digits::of(place).as_str(),
                        context,
                        random.next_u64(),
                        writer,
                    );
                }
                writer.end();
            }
            Self::Document(shape) => {
                writer.begin_document(name);
                shape.write_fields(context, random.next_u64(), writer);
                writer.end();
            }
            Self::List(shape) => {
                writer.begin_array(name);
                shape.write_fields(context, random.next_u64(), writer);
                writer.end();
            }
            Self::OfRecord(of) => {
                let record = context.record.saturating_add(of.offset);
                let draw = if of.is_fresh { context.draw } else { 0 };
                write_of(&of.entry, name, Context { record, draw }, writer);
            }
            Self::Reference {
                target,
                chooser,
                records,
            } => {
                let record = chooser.choose(random, *records);
                write_of(target, name, Context { record, draw: 0 }, writer);
            }
            _ => {}
        }
    }

    /// Returns the largest possible size of the value, bytes, without type and name.
    pub(crate) fn bytes_max(&self) -> u64 {
        match self {
            Self::Constant { encoded, .. } => encoded.len() as u64,
            Self::Record(_) => 25,
            Self::Choose(choices) => choices
                .values
                .iter()
                .map(Self::bytes_max)
                .max()
                .unwrap_or(0),
            Self::Text(text) => text.bytes_max(),
            Self::Binary(bytes) => bytes.bytes_max(),
            Self::Uuid => 21,
            Self::ObjectId { .. } => 12,
            Self::Point { .. } => 64,
            Self::Array { length, of } => {
                // Type, at most seven digits, and NUL.
                let element = of.bytes_max().saturating_add(9);
                element.saturating_mul(length.count_max()).saturating_add(5)
            }
            Self::Document(shape) | Self::List(shape) => shape.bytes_max(),
            Self::Template(template) => template.bytes_max(),
            Self::OfRecord(of) => of.entry.value.bytes_max(),
            Self::Reference { target, .. } => target.value.bytes_max(),
            _ => 8,
        }
    }
}

/// Writes a field; one that this record lacks reads as null.
fn write_of(entry: &Entry, name: &str, context: Context, writer: &mut BsonWriter) {
    let stream = entry.stream(context.stream());
    if entry.is_absent(stream) {
        writer.null(name);
    } else {
        entry.value.write(name, context, stream, writer);
    }
}

fn write_number(kind: NumberKind, name: &str, number: u64, writer: &mut BsonWriter) {
    match kind {
        NumberKind::Int32 => writer.int32(name, i32::try_from(number).unwrap_or(i32::MAX)),
        NumberKind::Int64 => writer.int64(name, i64::try_from(number).unwrap_or(i64::MAX)),
        NumberKind::Double => writer.double(name, number as f64),
        NumberKind::String => writer.string(name, Digits::of(number).as_str()),
    };
}

/// Writes a UUID of version 4 (RFC 9562).
fn write_uuid(name: &str, random: &mut SplitMix64, writer: &mut BsonWriter) {
    let mut encoded = [0; 21];
    encoded[0] = 16;
    encoded[4] = UUID_SUBTYPE;
    encoded[5..13].copy_from_slice(&random.next_u64().to_be_bytes());
    encoded[13..21].copy_from_slice(&random.next_u64().to_be_bytes());
    encoded[11] = encoded[11] & 0x0F | 0x40;
    encoded[13] = encoded[13] & 0x3F | 0x80;
    writer.value(BINARY, name, &encoded);
}

/// Returns an id that ascends with the record and is unique among 2^24 records of the same second.
fn object_id(start_s: u32, per_second: u32, process: [u8; 5], record: u64) -> [u8; 12] {
    let later = u32::try_from(record / u64::from(per_second.max(1))).unwrap_or(u32::MAX);
    let mut id = [0; 12];
    id[..4].copy_from_slice(&start_s.saturating_add(later).to_be_bytes());
    id[4..9].copy_from_slice(&process);
    id[9..].copy_from_slice(&record.to_be_bytes()[5..]);
    id
}

fn between([low, high]: [f64; 2], random: &mut SplitMix64) -> f64 {
    low + (high - low) * random.unit_f64()
}

fn write_point(name: &str, form: PointForm, [x, y]: [f64; 2], writer: &mut BsonWriter) {
    let inner = match form {
        PointForm::Array => name,
        PointForm::Geojson => {
            writer.begin_document(name).string("type", "Point");
            "coordinates"
        }
    };
    writer
        .begin_array(inner)
        .double("0", x)
        .double("1", y)
        .end();
    if form == PointForm::Geojson {
        writer.end();
    }
}

/// Formats a number in decimal without allocating.
pub(super) struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    pub(super) fn of(mut number: u64) -> Self {
        let mut digits = Self {
            bytes: [b'0'; 20],
            start: 19,
        };
        let mut at = 20;
        while number > 0 {
            at -= 1;
            digits.bytes[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
        digits.start = at.min(19);
        digits
    }

    pub(super) fn as_str(&self) -> &str {
        // Always ASCII.
        std::str::from_utf8(&self.bytes[self.start..]).unwrap_or("0")
    }
}
