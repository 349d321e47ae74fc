//! Whether the kernel lets programs run at the entry of one of its functions (fentry).
//!
//! This is tried with a program that does nothing: unlike ours it refers to no kernel type, so
//! trying it takes only microseconds.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::btf::TypeId;
use libbpf_rs::libbpf_sys::{
    self, BPF_ALU64, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV, BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY,
    bpf_insn, bpf_prog_load, bpf_prog_load_opts, bpf_raw_tracepoint_open,
};

/// Loads such a program for the function with this type, attaches it, and removes it at once.
///
/// # Errors
/// Why the kernel refuses it.
pub(super) fn try_entry_of(function: TypeId) -> io::Result<()> {
    let code = |code: u32| u8::try_from(code).unwrap_or_default();
    let returns_zero = [
        bpf_insn {
            code: code(BPF_ALU64 | BPF_MOV | BPF_K),
            ..bpf_insn::default()
        },
        bpf_insn {
            code: code(BPF_JMP | BPF_EXIT),
            ..bpf_insn::default()
        },
    ];
    let mut options = bpf_prog_load_opts {
        expected_attach_type: BPF_TRACE_FENTRY,
        attach_btf_id: u32::from(function),
        ..bpf_prog_load_opts::default()
    };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    // SAFETY: names and instructions outlive the call, and `options` says its own size.
    let program = descriptor(unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_TRACING,
            c"seekscope_try".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            returns_zero.as_ptr(),
            returns_zero.len() as libbpf_sys::size_t,
            &mut options,
        )
    })?;
    // SAFETY: a program of this type needs no name of a tracepoint; the descriptor is open.
    descriptor(unsafe { bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) }).map(drop)
}

/// Converts what the library returns: a descriptor, or a negative error number.
fn descriptor(returned: i32) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::from_raw_os_error(-returned));
    }
    // SAFETY: a descriptor just made, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(returned) })
}
