//! Traces of other tools in, traces for other tools out. Knows records and text, nothing else: it
//! opens no file and prints nothing.
//!
//! Reading: [`detect`] tells which format a text is in, [`import()`] passes what it holds to a
//! [`RecordSink`], a line at a time and within fixed bounds of memory, whatever the text.
//! What a format does not say stays unknown, and [`Format::limitations`] lists it.
//!
//! Writing: [`export`] has a writer per format; all take events in the order of the run.

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
