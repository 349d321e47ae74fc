//! How much memory is allocated, and was at the most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counting.
pub(crate) struct Counting {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    pub(crate) const fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Starts a new peak from what is allocated now, which is returned.
    pub(crate) fn restart(&self) -> usize {
        let now = self.now.load(Relaxed);
        self.peak.store(now, Relaxed);
        now
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }
}

// SAFETY: everything is left to `System`; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Relaxed) + layout.size();
        self.peak.fetch_max(now, Relaxed);
        // SAFETY: the caller's promises are `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are `System`'s, and `pointer` came from it.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Relaxed) + layout.size();
        self.peak.fetch_max(now, Relaxed);
        // SAFETY: the caller's promises are `System`'s.
        unsafe { System.alloc_zeroed(layout) }
    }
}
