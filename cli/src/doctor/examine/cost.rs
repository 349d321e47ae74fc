//! Measures the cost of an examination.

use seekscope_run::{ExaminationCost, RunDocument};
use seekscope_server::ProcFs;

/// Returns the cost of this process so far, and of its programs in the kernel.
pub fn cost(document: &RunDocument, commands: u64, ended_early: Option<String>) -> ExaminationCost {
    let (proc_fs, pid) = (ProcFs::host(), std::process::id());
    let traces = document
        .phases
        .iter()
        .filter_map(|phase| phase.trace.as_ref());
    ExaminationCost {
        client_cpu_ns: proc_fs.cpu_ns(pid).unwrap_or(0),
        kernel_cpu_ns: traces.map(|trace| trace.cost.program_ns).sum(),
        client_peak_rss_bytes: proc_fs.rss_bytes_max(pid).unwrap_or(0),
        commands,
        ended_early,
    }
}
