//! Derives a workload's text from existing documents: their fields, types, lengths and compressibility, but
//! not their contents.
//!
//! Values of texts and binary data are never copied unless requested: a text with few different values
//! becomes a choice of as many made-up ones. Numbers and dates keep their lowest and highest value, and
//! numbers with few different values keep these.

mod indexes;
mod observed;
mod read;
mod written;

pub use observed::Observed;
pub use read::{SampleError, sample_collection, sample_file};
pub use written::{ShapeText, caveats, workload_text};
