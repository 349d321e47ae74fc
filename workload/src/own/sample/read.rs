//! Reads documents to sample: from files of several formats, or from a collection.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::{ErrorKind, Kinded, StorageFacts};
use seekscope_server::{Namespace, Server, ServerError, storage_facts};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::Observed;
use super::indexes::Indexes;

/// The most bytes that are read of a file.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// A collection of at most this many bytes is read as a whole for a sample.
const SCANNED_BYTES_MAX: u64 = FILE_BYTES_MAX;
/// A sample of more than a twentieth of the documents is drawn from a scan of all, in which each has the same chance; of
/// fewer, by a random cursor. The server's count of documents may be a little off.
const SCANNED_SHARE: u64 = 16;
/// The server's limit, plus some room for dumps of larger internal documents.
const DOCUMENT_BYTES_MAX: usize = (16 << 20) + (16 << 10);

/// Why documents could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error("{}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {what}; seekscope can read JSON (one document per line, or an array) and mongodump's .bson files", .path.display())]
    Format { path: PathBuf, what: String },
    #[error("{place} holds no documents")]
    Empty { place: String },
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl Kinded for SampleError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Read { source, .. } => ErrorKind::of_named_path(source),
            Self::Format { .. } | Self::Empty { .. } => Some(ErrorKind::Usage),
            Self::Server(error) => error.kind(),
        }
    }
}

/// Samples the first documents of a file: JSON lines, a JSON array, or mongodump's BSON.
pub fn sample_file(path: &Path, documents: u64) -> Result<Observed, SampleError> {
    let failed = |source| SampleError::Read {
        path: path.into(),
        source,
    };
    let format = |what: String| SampleError::Format {
        path: path.into(),
        what,
    };
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::new(file.take(FILE_BYTES_MAX));
    let mut observed = Observed::default();
    let first = first_byte(&mut reader).map_err(failed)?;
    match first {
        Some(b'{') => lines(&mut reader, documents, &mut observed).map_err(format)?,
        Some(b'[') => array(&mut reader, documents, &mut observed).map_err(format)?,
        _ => dump(&mut reader, documents, &mut observed).map_err(format)?,
    }
    if observed.documents == 0 {
        return Err(SampleError::Empty {
            place: path.display().to_string(),
        });
    }
    Ok(observed)
}

/// Samples random documents of a collection, chosen by the server.
pub async fn sample_collection(
    server: &Server,
    namespace: &Namespace,
    documents: u64,
) -> Result<Observed, SampleError> {
    let (database, name) = (namespace.database(), namespace.collection());
    // A view has none.
    let facts = storage_facts(server, database, &[name]).await.ok();
    let (size, by_random_cursor) = sample_size(documents, &facts.unwrap_or_default());
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let collection = server
        .database(namespace.database())
        .collection::<RawDocumentBuf>(namespace.collection());
    let failed = |error| server.error("aggregate", &error);
    let mut cursor = collection
        .aggregate([doc! { "$sample": { "size": size } }])
        .with_type::<RawDocumentBuf>()
        // A sample of a small collection is sorted, and some documents are large.
        .allow_disk_use(true)
        .await
        .map_err(failed)?;
    let mut observed = Observed::default();
    observed.by_random_cursor = by_random_cursor;
    while let Some(document) = cursor.try_next().await.map_err(failed)? {
        observed.add(&document);
        if observed.documents >= documents || observed.bytes > FILE_BYTES_MAX {
            break;
        }
    }
    if observed.documents == 0 {
        return Err(SampleError::Empty {
            place: namespace.to_string(),
        });
    }
    // A view has none.
    observed.indexes = indexes(server, namespace).await.ok();
    Ok(observed)
}

/// Returns how many documents to ask for, and whether a random cursor chooses them. What comes from a scan is in random
/// order, so its first documents are a sample, too.
fn sample_size(documents: u64, collection: &StorageFacts) -> (u64, bool) {
    let from_scan = collection.documents / SCANNED_SHARE + 1;
    match documents < from_scan && collection.data_bytes > SCANNED_BYTES_MAX {
        true => (documents, true),
        false => (documents.max(from_scan), false),
    }
}

async fn indexes(server: &Server, namespace: &Namespace) -> Result<Indexes, ServerError> {
    let failed = |error| server.error("listIndexes", &error);
    let list = doc! { "listIndexes": namespace.collection() };
    let database = server.database(namespace.database());
    let cursor = database.run_cursor_command(list).await.map_err(failed)?;
    let specifications: Vec<Document> = cursor.try_collect().await.map_err(failed)?;
    Ok(Indexes::read(&specifications))
}

/// Returns the first byte that is not blank. Consuming only blanks is safe: a dump begins with a length below
/// 16 MiB, whose last byte is 0 or 1.
fn first_byte(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    let head = reader.fill_buf()?;
    let is_dump = matches!(head.get(..4), Some(&[_, _, _, 0 | 1]));
    if is_dump {
        return Ok(None);
    }
    loop {
        let head = reader.fill_buf()?;
        let blanks = head
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if let Some(byte) = head.get(blanks) {
            return Ok(Some(*byte));
        }
        if head.is_empty() {
            return Ok(None);
        }
        reader.consume(blanks);
    }
}

fn lines(reader: &mut impl Read, documents: u64, observed: &mut Observed) -> Result<(), String> {
    for value in serde_json::Deserializer::from_reader(reader).into_iter::<serde_json::Value>() {
        match value {
            Ok(value) => add(&value, observed)?,
            // The file continues beyond what is read of it.
            Err(error) if error.is_eof() && observed.documents > 0 => break,
            Err(error) => return Err(error.to_string()),
        }
        if observed.documents >= documents {
            break;
        }
    }
    Ok(())
}

fn array(reader: &mut impl Read, documents: u64, observed: &mut Observed) -> Result<(), String> {
    let mut done = false;
    let elements = Elements {
        documents,
        observed,
        done: &mut done,
    };
    let read = elements.deserialize(&mut serde_json::Deserializer::from_reader(reader));
    match read {
        Err(error) if !done && !error.is_eof() => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Takes elements one by one, and ends with an error when it has enough.
struct Elements<'a> {
    documents: u64,
    observed: &'a mut Observed,
    done: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of documents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(value) = sequence.next_element::<serde_json::Value>()? {
            add(&value, self.observed).map_err(serde::de::Error::custom)?;
            if self.observed.documents >= self.documents {
                *self.done = true;
                return Err(serde::de::Error::custom("enough"));
            }
        }
        Ok(())
    }
}

fn dump(reader: &mut impl Read, documents: u64, observed: &mut Observed) -> Result<(), String> {
    let mut bytes = Vec::new();
    while observed.documents < documents {
        let mut length = [0; 4];
        match reader.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            other => other.map_err(|error| error.to_string())?,
        }
        let size = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        if !(5..=DOCUMENT_BYTES_MAX).contains(&size) {
            return Err(format!(
                "it is not valid BSON: a document claims to have {} bytes",
                i32::from_le_bytes(length)
            ));
        }
        bytes.clear();
        bytes.extend_from_slice(&length);
        let read = reader
            .take(size as u64 - 4)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        if read < size - 4 {
            break;
        }
        let document = RawDocument::from_bytes(&bytes)
            .map_err(|error| format!("it is not valid BSON: {error}"))?;
        observed.add(document);
    }
    Ok(())
}

fn add(value: &serde_json::Value, observed: &mut Observed) -> Result<(), String> {
    let Bson::Document(document) = bson_of_extended(value) else {
        return Err("an element is not a document".into());
    };
    let document = RawDocumentBuf::try_from(&document).map_err(|error| error.to_string())?;
    observed.add(&document);
    Ok(())
}

/// Converts JSON, including those of MongoDB's extended forms that exports use.
fn bson_of_extended(value: &serde_json::Value) -> Bson {
    match value {
        serde_json::Value::Object(fields) => extended(fields).unwrap_or_else(|| {
            let fields = fields.iter().filter(|(name, _)| !name.contains('\0'));
            Bson::Document(
                fields
                    .map(|(name, value)| (name.clone(), bson_of_extended(value)))
                    .collect::<Document>(),
            )
        }),
        serde_json::Value::Array(elements) => {
            Bson::Array(elements.iter().map(bson_of_extended).collect())
        }
        other => crate::own::plan::bson_of_json(other),
    }
}

fn extended(fields: &serde_json::Map<String, serde_json::Value>) -> Option<Bson> {
    let (name, value) = fields.iter().next().filter(|_| fields.len() == 1)?;
    let number = || value.as_str().and_then(|text| text.parse::<i64>().ok());
    match name.as_str() {
        "$oid" => value.as_str()?.parse().ok().map(Bson::ObjectId),
        "$numberLong" => number().map(Bson::Int64),
        "$numberInt" => number()
            .and_then(|n| i32::try_from(n).ok())
            .map(Bson::Int32),
        "$numberDouble" => value.as_str()?.parse().ok().map(Bson::Double),
        "$numberDecimal" => value.as_str()?.parse().ok().map(Bson::Decimal128),
        "$uuid" => bson::Uuid::parse_str(value.as_str()?).ok().map(Bson::from),
        "$date" => match value {
            serde_json::Value::String(text) => bson::DateTime::parse_rfc3339_str(text).ok(),
            other => match bson_of_extended(other) {
                Bson::Int64(millis) => Some(bson::DateTime::from_millis(millis)),
                _ => None,
            },
        }
        .map(Bson::DateTime),
        "$binary" => {
            let base64 = value.get("base64")?.as_str()?;
            // Only length and content matter, and four characters represent three bytes.
            let bytes = base64.as_bytes()[..base64.len() / 4 * 3].to_vec();
            let subtype = bson::spec::BinarySubtype::Generic;
            Some(Bson::Binary(bson::Binary { subtype, bytes }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_scanned_for_a_sample_unless_it_is_large() {
        let of = |documents, collection: u64, data_bytes| {
            let facts = StorageFacts {
                documents: collection,
                data_bytes,
                ..StorageFacts::default()
            };
            sample_size(documents, &facts)
        };
        // More than a twentieth, of which the first thousand are taken.
        assert_eq!(of(1_000, 100_000, 100 << 20), (6_251, false));
        assert_eq!(of(1_000, 1_000_000, 1 << 30), (1_000, true));
        assert_eq!(of(100_000, 1_000_000, 1 << 30), (100_000, false));
        assert_eq!(of(1_000, 0, 0), (1_000, false), "a view");
    }
}
