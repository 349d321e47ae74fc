//! A workload's text from documents that exist: their fields, types, lengths and how well they
//! compress, not what they say.
//!
//! Values of texts and of binary data are never copied unless asked for: a text of few different values
//! becomes a choice of as many made-up ones. Numbers and dates keep their lowest and highest value, and
//! numbers of few different values these.

mod indexes;
mod observed;
mod read;
mod written;

pub use observed::Observed;
pub use read::{SampleError, sample_collection, sample_file};
pub use written::{ShapeText, caveats, workload_text};
