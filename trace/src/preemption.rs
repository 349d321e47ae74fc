//! Whether this kernel can skip programs on typed system-call tracepoints.
//!
//! Up to Linux 7.1 such a program runs with preemption off. From 7.2 on, which lets programs on
//! these tracepoints sleep, the scheduler may take the CPU away in the middle of one. Until it
//! continues, the kernel's guard against recursion skips the same program for every other
//! thread on that CPU: in `trace/kernels/matrix` one call in five was missed. Programs on classic
//! tracepoints miss far fewer, but not none: most boots are exact, one in several missed four in a
//! hundred. The kernel counts the misses, and the trailer says how many there may be.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;

/// A symbol that came with the change.
const SIGN: &str = "trace_call_bpf_faultable";

/// Looks for the symbol in the kernel's type information, since distributions move changes between
/// versions. Without type information it is taken to be absent.
pub(crate) fn typed_programs_are_preemptible() -> bool {
    let Ok(kernel) = Btf::from_vmlinux() else {
        return false;
    };
    kernel.type_by_name::<Func<'_>>(SIGN).is_some()
}
