//! Shows the numbers. There is no table without rows: what was not measured is not shown.

mod checkpoints;
mod device;
mod durations;
mod host;
mod members;
mod memory;
mod run;
mod server;
mod shards;
mod since;
mod space;

pub(super) use checkpoints::{checkpoint_sentences, checkpoints, suffering};
pub(super) use device::{load, load_sentences, users};
pub(super) use durations::durations;
pub(super) use host::host;
pub(super) use members::members;
pub(super) use memory::{memory, memory_sentences};
pub(super) use run::{cost, examination_facts};
pub(super) use server::{collections, operations, warnings};
pub(super) use shards::shards;
pub use since::change_line;
pub(super) use since::since;
pub(super) use space::space;

use crate::table::Table;

/// The most rows of one table; a server with ten thousand collections would make the page useless.
const ROWS_MAX: usize = 200;
/// Shown for a number that is not known.
const UNKNOWN: &str = "unknown";
/// Shown where there is no such number.
const NONE: &str = "–";

/// Adds the number of omitted rows.
fn and_more(table: &mut Table, rows: usize) {
    table.and_more(rows, ROWS_MAX, ", in run.json");
}
