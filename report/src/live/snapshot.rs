//! Holds what is on the screen at one moment.

use seekscope_run::FileRecord;

use super::counts::Rates;
use super::heat::HeatMap;

/// The state of a [`super::LiveWindow`] at one moment; it does not change while the window continues.
#[derive(Debug, Clone)]
pub struct LiveSnapshot {
    pub(super) elapsed_ns: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) total: Rates,
    pub(super) disks: Vec<DiskLine>,
    /// Files, busiest first.
    pub(super) files: Vec<FileLine>,
    /// The map of one file.
    pub(super) map: Option<(u32, HeatMap)>,
    /// Number of the current slice of time, the last column of the map.
    pub(super) slice: u64,
}

/// One disk.
#[derive(Debug, Clone)]
pub(super) struct DiskLine {
    /// Its name as in the report, where that is known, else `major:minor`.
    pub(super) name: String,
    pub(super) rates: Rates,
}

/// One file.
#[derive(Debug, Clone)]
pub(super) struct FileLine {
    pub(super) file_id: u32,
    pub(super) record: Option<FileRecord>,
    pub(super) rates: Rates,
    /// Median and 99th percentile of its last calls, ns.
    pub(super) latency_ns: Option<(u64, u64)>,
    pub(super) pattern: &'static str,
}

impl LiveSnapshot {
    /// Returns the file that the map shows.
    pub(super) fn shown_file(&self) -> Option<&FileLine> {
        let (id, _) = self.map.as_ref()?;
        self.files.iter().find(|file| file.file_id == *id)
    }
}

impl FileLine {
    /// Returns namespace and file name, of several members' files with the member in front, or what is known.
    pub(super) fn name(&self) -> String {
        let Some(record) = &self.record else {
            return format!("file {}", self.file_id);
        };
        match record.labelled_namespace() {
            Some(namespace) => format!("{namespace} ({})", record.name()),
            None => record.labelled_name(),
        }
    }

    /// Returns the file's role in the database.
    pub(super) fn role(&self) -> &'static str {
        self.record.as_ref().map_or("other", |r| r.role.name())
    }
}
