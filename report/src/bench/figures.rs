//! Numbers derived from a step: costs per operation, and what the data take.

use seekscope_run::{BenchStep, StorageFacts};

fn per_request(step: &BenchStep, amount: Option<u64>) -> Option<f64> {
    match step.requests {
        0 => None,
        n => Some(amount? as f64 / n as f64),
    }
}

/// CPU time of the client per request, ns; `None` where it was not taken.
pub(super) fn client_cpu_ns(step: &BenchStep) -> Option<f64> {
    per_request(step, Some(step.client_cpu_ns).filter(|&ns| ns > 0))
}

/// CPU time of the server per request, ns.
pub(super) fn server_cpu_ns(step: &BenchStep) -> Option<f64> {
    per_request(step, step.server_cpu_ns)
}

/// Bytes that the server read from its disk per request.
pub(super) fn read_bytes(step: &BenchStep) -> Option<f64> {
    per_request(step, step.server_read_bytes)
}

/// Bytes that the server wrote to its disk per request.
pub(super) fn written_bytes(step: &BenchStep) -> Option<f64> {
    per_request(step, step.server_write_bytes)
}

/// What the server wrote for each byte of documents that were added; `None` of a step that adds none.
pub(super) fn write_amplification(step: &BenchStep) -> Option<f64> {
    let after = step.storage_after.as_ref()?.data_bytes;
    let before = step
        .storage_before
        .as_ref()
        .map_or(0, |facts| facts.data_bytes);
    match after.saturating_sub(before) {
        0 => None,
        added if step.kind == "load" => Some(step.server_write_bytes? as f64 / added as f64),
        _ => None,
    }
}

/// Data files and indexes: as they lie on the disk where that was seen, else as the server says.
pub(super) fn disk_bytes(facts: &StorageFacts) -> u64 {
    let said = facts.storage_bytes.saturating_add(facts.index_bytes);
    facts.directory_bytes.unwrap_or(said)
}

/// [`disk_bytes`] for each document.
pub(super) fn bytes_per_document(facts: &StorageFacts) -> Option<f64> {
    (facts.documents > 0).then(|| disk_bytes(facts) as f64 / facts.documents as f64)
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
