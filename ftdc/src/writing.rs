//! Writes what the tests read, following the description of the format and without using the reader.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "for tests; casts as the server does"
)]

use std::io::Write;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, doc};
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Returns the document as BSON.
pub fn bytes(document: &Document) -> Vec<u8> {
    document.to_vec().unwrap()
}

/// Returns the document of a file that holds these samples.
pub fn entry(samples: &[Document]) -> Document {
    let started = samples[0].get_datetime("start").copied();
    doc! {
        "_id": started.unwrap_or(DateTime::from_millis(0)), "type": 1,
        "data": Binary { subtype: BinarySubtype::Generic, bytes: chunk(samples) },
    }
}

/// Returns a chunk of these samples. Panics if they do not have the same metrics.
pub fn chunk(samples: &[Document]) -> Vec<u8> {
    let rows: Vec<Vec<i64>> = samples.iter().map(numbers).collect();
    let count = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let mut out = bytes(&samples[0]);
    out.extend(count(rows[0].len()));
    out.extend(count(rows.len() - 1));
    let mut zeros = 0_u64;
    for column in 0..rows[0].len() {
        for pair in rows.windows(2) {
            let change = pair[1][column].wrapping_sub(pair[0][column]);
            if change == 0 {
                zeros += 1;
                continue;
            }
            end_zeros(&mut zeros, &mut out);
            varint(change.cast_unsigned(), &mut out);
        }
    }
    end_zeros(&mut zeros, &mut out);
    deflated(&out)
}

fn end_zeros(zeros: &mut u64, out: &mut Vec<u8>) {
    if *zeros > 0 {
        varint(0, out);
        varint(*zeros - 1, out);
        *zeros = 0;
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

/// Returns the bytes deflated, after their length.
pub fn deflated(inflated: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(inflated).unwrap();
    let length = u32::try_from(inflated.len()).unwrap().to_le_bytes();
    [&length[..], &encoder.finish().unwrap()].concat()
}

fn numbers(document: &Document) -> Vec<i64> {
    let mut all = Vec::new();
    for value in document.values() {
        add(value, &mut all);
    }
    all
}

fn add(value: &Bson, all: &mut Vec<i64>) {
    match value {
        Bson::Int32(n) => all.push(i64::from(*n)),
        Bson::Int64(n) => all.push(*n),
        Bson::Double(n) => all.push(n.trunc() as i64),
        Bson::Boolean(b) => all.push(i64::from(*b)),
        Bson::DateTime(date) => all.push(date.timestamp_millis()),
        Bson::Timestamp(t) => all.extend([i64::from(t.time), i64::from(t.increment)]),
        Bson::Document(inner) => all.extend(numbers(inner)),
        Bson::Array(inner) => inner.iter().for_each(|value| add(value, all)),
        _ => {}
    }
}
