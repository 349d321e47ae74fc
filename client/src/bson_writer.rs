//! Appends BSON to a reused buffer: no tree of values, no allocation per document.

/// Element types that workloads write ([bsonspec.org](https://bsonspec.org/spec.html)).
const DOUBLE: u8 = 0x01;
const STRING: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const BOOLEAN: u8 = 0x08;
const DATE: u8 = 0x09;
const NULL: u8 = 0x0A;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// Writes BSON into a reused buffer. Names must not hold NUL; the caller is responsible for what is appended.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BsonWriter {
    bytes: Vec<u8>,
    /// Start positions of the open documents.
    open: Vec<usize>,
}

impl BsonWriter {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.open.clear();
    }

    /// Returns what has been written: whole documents once all are ended.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Begins a top-level document.
    pub fn begin(&mut self) -> &mut Self {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
        self
    }

    /// Begins a document as a value.
    pub fn begin_document(&mut self, name: &str) -> &mut Self {
        self.element(DOCUMENT, name).begin()
    }

    /// Begins an array as a value; its elements are named "0", "1", ….
    pub fn begin_array(&mut self, name: &str) -> &mut Self {
        self.element(ARRAY, name).begin()
    }

    /// Ends the document or array that was begun last.
    pub fn end(&mut self) -> &mut Self {
        self.bytes.push(0);
        if let Some(start) = self.open.pop() {
            let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
            self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        self
    }

    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        self.element(STRING, name);
        self.length(value.len() + 1);
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self
    }

    pub fn int32(&mut self, name: &str, value: i32) -> &mut Self {
        self.element(INT32, name).raw(&value.to_le_bytes())
    }

    pub fn int64(&mut self, name: &str, value: i64) -> &mut Self {
        self.element(INT64, name).raw(&value.to_le_bytes())
    }

    pub fn double(&mut self, name: &str, value: f64) -> &mut Self {
        self.element(DOUBLE, name).raw(&value.to_le_bytes())
    }

    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.element(BOOLEAN, name).raw(&[u8::from(value)])
    }

    /// Appends a date, in milliseconds since 1970.
    pub fn date(&mut self, name: &str, epoch_ms: i64) -> &mut Self {
        self.element(DATE, name).raw(&epoch_ms.to_le_bytes())
    }

    pub fn null(&mut self, name: &str) -> &mut Self {
        self.element(NULL, name)
    }

    /// Appends binary data of the generic subtype and returns its bytes, zeroed, for the caller to fill in.
    pub fn binary(&mut self, name: &str, length: usize) -> &mut [u8] {
        self.element(BINARY, name);
        self.length(length);
        self.bytes.push(0);
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        &mut self.bytes[start..]
    }

    /// Appends a string and returns its bytes, all NUL, for the caller to fill in with ASCII.
    pub fn ascii(&mut self, name: &str, length: usize) -> &mut [u8] {
        self.element(STRING, name);
        self.length(length + 1);
        let start = self.bytes.len();
        self.bytes.resize(start + length + 1, 0);
        &mut self.bytes[start..start + length]
    }

    /// Appends a string whose bytes the caller appends; they must be UTF-8 without NUL.
    pub fn text(&mut self, name: &str, append: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.element(STRING, name);
        let start = self.bytes.len();
        self.length(0);
        append(&mut self.bytes);
        self.bytes.push(0);
        let length = u32::try_from(self.bytes.len() - start - 4).unwrap_or(u32::MAX);
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self
    }

    /// Appends a value of any kind, encoded elsewhere.
    pub fn value(&mut self, kind: u8, name: &str, encoded: &[u8]) -> &mut Self {
        self.element(kind, name).raw(encoded)
    }

    /// Appends a whole BSON document as a value.
    pub fn document(&mut self, name: &str, document: &[u8]) -> &mut Self {
        self.element(DOCUMENT, name).raw(document)
    }

    /// Appends bytes unchanged: whole elements or documents made elsewhere.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn element(&mut self, kind: u8, name: &str) -> &mut Self {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self
    }

    fn length(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use bson::{Binary, DateTime, RawDocument, doc, oid::ObjectId, spec::BinarySubtype};

    use super::*;

    #[test]
    fn writes_what_the_library_writes() {
        let mut writer = BsonWriter::default();
        writer.begin().string("s", "ä").int32("i", -1).int64("l", 1);
        writer.begin_document("d").double("f", 0.5).end();
        writer.begin_array("a").boolean("0", true).null("1").end();
        writer.date("t", 5);
        writer.binary("b", 3).copy_from_slice(b"xyz");
        writer.ascii("c", 2).copy_from_slice(b"ok");
        writer.text("e", |bytes| bytes.extend_from_slice("né".as_bytes()));
        writer.value(0x07, "o", &[7; 12]);
        writer.end();
        let expected = doc! {
            "s": "ä", "i": -1, "l": 1_i64, "d": { "f": 0.5 }, "a": [true, null],
            "t": DateTime::from_millis(5),
            "b": Binary { subtype: BinarySubtype::Generic, bytes: b"xyz".to_vec() },
            "c": "ok",
            "e": "né",
            "o": ObjectId::from_bytes([7; 12]),
        };
        assert_eq!(writer.bytes(), expected.to_vec().unwrap());
        assert!(RawDocument::from_bytes(writer.bytes()).is_ok());
        writer.clear();
        assert!(writer.is_empty());
    }
}
