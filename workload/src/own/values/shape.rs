//! Builds documents: constant stretches of bytes, and values between them.

use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use super::Value;
use crate::generators::stream_seed;

/// What values depend on, besides the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) record: u64,
    /// 0 for the values with which the record was inserted; otherwise a number of the operation.
    pub(crate) draw: u64,
}

impl Context {
    /// Returns the start of the streams of all fields of this record.
    pub(super) fn stream(self) -> u64 {
        stream_seed(&[self.record, self.draw])
    }
}

/// A field of a document.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    /// Distinguishes its draws from those of other fields.
    pub(crate) key: u64,
    /// Share of documents without the field.
    pub(crate) absent: f64,
    pub(crate) value: Value,
}

impl Entry {
    /// Returns the stream of this field's draws within its document.
    pub(super) fn stream(&self, document: u64) -> u64 {
        stream_seed(&[document, self.key])
    }

    pub(super) fn is_absent(&self, stream: u64) -> bool {
        // A different stream from the value's, so that presence says nothing about it.
        self.absent > 0.0 && SplitMix64::new(!stream).unit_f64() < self.absent
    }
}

/// A document's fields in order.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// Elements that are constant.
    Static(Vec<u8>),
    Drawn(Box<Entry>),
}

impl Shape {
    /// Writes the document of a record that is not nested in another value.
    pub(crate) fn write_document(&self, context: Context, writer: &mut BsonWriter) {
        writer.begin();
        self.write_fields(context, context.stream(), writer);
        writer.end();
    }

    pub(super) fn write_fields(&self, context: Context, stream: u64, writer: &mut BsonWriter) {
        for part in &self.parts {
            match part {
                Part::Static(bytes) => {
                    writer.raw(bytes);
                }
                Part::Drawn(entry) => {
                    let stream = entry.stream(stream);
                    if !entry.is_absent(stream) {
                        entry.value.write(&entry.name, context, stream, writer);
                    }
                }
            }
        }
    }

    /// Returns the largest possible size of a document of this shape, bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        let parts = self.parts.iter().map(|part| match part {
            Part::Static(bytes) => bytes.len() as u64,
            Part::Drawn(entry) => {
                let name = entry.name.len() as u64 + 2;
                entry.value.bytes_max().saturating_add(name)
            }
        });
        parts.fold(5, u64::saturating_add)
    }
}

/// Builds a shape from fields in order.
#[derive(Debug, Default)]
pub(crate) struct ShapeBuilder {
    parts: Vec<Part>,
    writer: BsonWriter,
}

impl ShapeBuilder {
    pub(crate) fn add(&mut self, entry: Entry) {
        let Value::Constant { .. } = entry.value else {
            self.parts.push(Part::Drawn(Box::new(entry)));
            return;
        };
        if entry.absent > 0.0 {
            self.parts.push(Part::Drawn(Box::new(entry)));
            return;
        }
        self.writer.clear();
        let nobody = Context { record: 0, draw: 0 };
        entry.value.write(&entry.name, nobody, 0, &mut self.writer);
        if let Some(Part::Static(bytes)) = self.parts.last_mut() {
            bytes.extend_from_slice(self.writer.bytes());
        } else {
            self.parts.push(Part::Static(self.writer.bytes().to_vec()));
        }
    }

    pub(crate) fn finish(self) -> Shape {
        Shape { parts: self.parts }
    }

    /// Returns whether every part is constant.
    pub(crate) fn is_static(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, Part::Static(_)))
    }
}
