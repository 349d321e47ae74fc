//! Numbers derived from a step: costs per operation, and what the data take.

use seekscope_run::BenchStep;

/// CPU time of the client per request, ns; `None` where it was not taken.
pub(super) fn client_cpu_ns(step: &BenchStep) -> Option<f64> {
    step.per_request(Some(step.client_cpu_ns).filter(|&ns| ns > 0)?)
}

/// CPU time of the server per request, ns.
pub(super) fn server_cpu_ns(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_cpu_ns?)
}

/// Bytes that the server read from its disk per request.
pub(super) fn read_bytes(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_read_bytes?)
}

/// Bytes that the server wrote to its disk per request.
pub(super) fn written_bytes(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_write_bytes?)
}

/// What the server wrote for each byte of documents that were added; `None` of a step that adds none.
pub(super) fn write_amplification(step: &BenchStep) -> Option<f64> {
    let (added, written) = step.added_and_written()?;
    Some(written as f64 / added as f64)
}

/// Is it the same work as another step's: what repetitions and variants have in common.
pub(super) fn work_of(step: &BenchStep) -> String {
    let name = if step.workload.is_empty() {
        &step.name
    } else {
        &step.workload
    };
    if step.kind.is_empty() || step.kind == "run" {
        name.clone()
    } else {
        format!("{name}, {}", step.kind)
    }
}
