//! Derives numbers from a step: costs per operation, and the size of the data.

use seekscope_run::BenchStep;

/// Returns the CPU time of the client per request, ns; `None` where it was not measured.
pub(super) fn client_cpu_ns(step: &BenchStep) -> Option<f64> {
    step.per_request(Some(step.client_cpu_ns).filter(|&ns| ns > 0)?)
}

/// Returns the CPU time of the server per request, ns; `None` where it was not measured, or was less than a tick of the
/// kernel's clock.
pub(super) fn server_cpu_ns(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_cpu_ns.filter(|&ns| ns > 0)?)
}

/// Returns the bytes that the server read from its disk per request.
pub(super) fn read_bytes(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_read_bytes?)
}

/// Returns the bytes that the server wrote to its disk per request.
pub(super) fn written_bytes(step: &BenchStep) -> Option<f64> {
    step.per_request(step.server_write_bytes?)
}

/// Returns the bytes that the server wrote for each byte of added documents; `None` for a step that adds
/// none.
pub(super) fn write_amplification(step: &BenchStep) -> Option<f64> {
    let (added, written) = step.added_and_written()?;
    Some(written as f64 / added as f64)
}

/// Returns the work of a step: what it has in common with its repetitions and variants.
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
