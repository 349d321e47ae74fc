//! Memory that only a burst of work needed.

/// Gives freed memory back to the kernel. The catalogue of ten thousand collections is read in a burst whose memory the
/// C library would keep for ever, several times what the exporter needs from then on.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function touches nothing but what the allocator holds as free, and may be called by any thread at
    // any time (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
