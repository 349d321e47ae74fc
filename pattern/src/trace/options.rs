//! Options of a trace analysis.

/// The default number of values up to which quantiles are exact.
pub const EXACT_VALUES_MAX: usize = 256;

/// Bounds of an analysis, which keep memory bounded whatever the trace contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysisOptions {
    /// Initial length of a time slice, ns; doubled whenever there would be too many.
    pub slice_ns: u64,
    /// The most slices of the whole trace.
    pub slices_max: usize,
    /// The most files with figures of their own; later ones are counted together.
    pub files_max: usize,
    /// Events held back to put them in order of their start.
    pub reorder_events: usize,
    /// Number of values up to which a quantile is exact; with more, it is within 0.8 %.
    pub exact_values_max: usize,
}

impl Default for AnalysisOptions {
    /// Slices from 10 ms, at most 120; 2,048 files; 65,536 events; [`EXACT_VALUES_MAX`].
    fn default() -> Self {
        Self {
            slice_ns: 10_000_000,
            slices_max: 120,
            files_max: 2048,
            reorder_events: 65_536,
            exact_values_max: EXACT_VALUES_MAX,
        }
    }
}
