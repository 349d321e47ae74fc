//! Writes values: everything that can be decided beforehand is.
//!
//! Every value is a pure function of the seed, the record's number and the field's path, so that any process
//! can generate any record again. A fresh value (for an update, or for a parameter) depends on the
//! operation's draw as well.

mod constant;
mod drawn_number;
mod shape;
mod text;
mod value;

pub(crate) use constant::{bson_of, encoded, epoch_ms};
pub(crate) use drawn_number::{DrawnNumber, standard_normal};
pub(crate) use shape::{Context, Entry, Shape, ShapeBuilder};
pub(crate) use text::{Bytes, Filling, Template, Text};
pub(crate) use value::{ByWeight, OfRecord, Value};

use crate::generators::stream_seed;

/// Returns a key for a text, the same in every process (FNV-1a of 64 bits).
pub(crate) fn key_of(seed: u64, text: &str) -> u64 {
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    stream_seed(&[seed, hash])
}
