//! Imports traces of other tools and exports traces for them. It handles only records and text: it
//! opens no file and prints nothing.
//!
//! Reading: [`detect`] recognises the format of a text, and [`import()`] passes its contents to a
//! [`RecordSink`], a line at a time and in bounded memory, whatever the text. Anything that a
//! format does not say remains unknown, and [`Format::limitations`] lists it.
//!
//! Writing: [`export`] has a writer for each format; all of them take events in the order of the
//! run.

mod blkparse;
mod csv_line;
mod csv_trace;
pub mod export;
mod fio;
mod format;
mod import;
mod lines;
mod strace;
mod tables;

pub use format::{DETECTION_BYTES, Format, detect};
pub use import::{ImportError, ImportSummary, RecordSink, Skipped, import};
