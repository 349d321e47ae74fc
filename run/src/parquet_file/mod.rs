//! The run's Parquet files, written and read with the plain column API of the `parquet` crate (its
//! Arrow layer would triple the build). Only this folder knows the format; DuckDB, pandas and Spark
//! open the files as they are.

mod column;
mod counters;
mod files;
mod intervals;
mod io;
mod joined;
mod layout;
mod read;
mod threads;
mod totals;
mod trials;

pub(crate) use column::TableWriter;
pub(crate) use counters::{read_counters, write_counters};
pub(crate) use files::{read_files, write_files};
pub(crate) use intervals::{read_intervals, write_intervals};
pub(crate) use io::{ROWS_PER_GROUP, io_writer, read_io, read_io_while};
pub use joined::JoinedParquetWriter;
pub(crate) use layout::{LEAVES_PER_GROUP, layout_writer, read_layout};
pub(crate) use threads::{read_threads, write_threads};
pub(crate) use totals::{read_totals, write_totals};
pub(crate) use trials::{read_trials, write_trials};

type Result<T> = std::result::Result<T, parquet::errors::ParquetError>;
