//! Linux's read-ahead for one open file: which pages the kernel fetches when a read finds one
//! missing, or reaches the page that was marked for fetching the next window.
//!
//! Follows `mm/readahead.c` (`page_cache_sync_ra`, `page_cache_async_ra`) and the batches of
//! `filemap_read` in `mm/filemap.c`, as of Linux 6.18 with large folios (ext4, xfs). Not modelled:
//! advice (`fadvise`, `madvise`), memory pressure, congestion of a cgroup. All numbers are pages.

use seekscope_run::DeviceModel;

use super::page_cache::PAGE_BYTES;

/// Folios of the page cache reach 2 MiB (`PMD_ORDER` on x86 and arm64 with 4 KiB pages).
const FOLIO_ORDER_MAX: u32 = 9;

/// The largest request or window, bytes. No kernel exceeds it; a model that does is a mistake or
/// worse.
pub(crate) const EXTENT_BYTES_MAX: u64 = 1 << 30;

/// Pages to fetch, from which the caller leaves out those already cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) pages: u64,
    /// The window comes in folios of 2^order pages.
    pub(crate) order: u32,
    /// The folio at which fetching the next window begins.
    pub(crate) mark: Option<Mark>,
}

/// A folio that starts read-ahead when a read reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) start: u64,
    pub(crate) pages: u64,
}

impl Window {
    /// Returns where the kernel falls back from large folios to single pages, when it fetches pages
    /// up to `end` of which `cached` is the first that is already cached: at the folio that would
    /// overlap it (`page_cache_ra_order`, which then falls back to `do_page_cache_ra`). Pages
    /// before that are sent separately. `None` if they were single pages anyway.
    pub(crate) fn gives_up_folios(&self, end: u64, cached: u64) -> Option<u64> {
        if self.order == 0 {
            return None;
        }
        let mut start = self.start;
        loop {
            let left = end.checked_sub(start).filter(|&left| left > 0)?;
            // Folios are aligned to their size and end with the window.
            let order = self.order.min(start.trailing_zeros()).min(left.ilog2());
            let next = start + (1 << order);
            if cached < next {
                return Some(start);
            }
            start = next;
        }
    }
}

/// The extent of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The device's read-ahead setting.
    pub(crate) window_pages: u64,
    /// The device's largest request: reads longer than the window are fetched in these.
    pub(crate) request_pages: u64,
}

impl Limits {
    pub(crate) fn of(model: &DeviceModel) -> Self {
        let pages = |bytes: u64| bytes.min(EXTENT_BYTES_MAX) / PAGE_BYTES;
        Self {
            window_pages: pages(model.read_ahead_bytes),
            request_pages: pages(model.request_bytes_max),
        }
    }

    /// Returns the order of the folios in windows of a long stream, which have 2^order pages.
    pub(crate) fn order_max(self) -> u32 {
        self.window_pages.max(1).ilog2().min(FOLIO_ORDER_MAX)
    }

    fn for_read(self, pages: u64) -> u64 {
        if pages > self.window_pages && self.request_pages > self.window_pages {
            pages.min(self.request_pages)
        } else {
            self.window_pages
        }
    }
}

/// The kernel's `file_ra_state`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadAhead {
    start: u64,
    size: u64,
    async_size: u64,
    /// The last window was requested in folios of 2^order pages.
    order: u32,
    /// The page that contains the byte after the last read; `None` before the first read.
    previous: Option<u64>,
}

impl ReadAhead {
    /// Handles a read that finds page `index` missing and wants `wanted` pages from there on.
    /// `cached_before` counts the cached pages directly before `index`, up to its argument.
    pub(crate) fn missing(
        &mut self,
        index: u64,
        wanted: u64,
        limits: Limits,
        cached_before: impl FnOnce(u64) -> u64,
    ) -> Window {
        let as_is = |pages| Window {
            start: index,
            pages,
            order: 0,
            mark: None,
        };
        if limits.window_pages == 0 {
            return as_is(1);
        }
        let max = limits.for_read(wanted);
        let continues = self
            .previous
            .is_some_and(|previous| index.wrapping_sub(previous) <= 1);
        if index == 0 || wanted > max || continues {
            self.size = first_size(wanted, max);
            self.async_size = if self.size > wanted {
                self.size - wanted
            } else {
                self.size / 2
            };
        } else {
            let history = cached_before(max);
            if history <= wanted {
                return as_is(wanted);
            }
            let from_file_start = history == index;
            let history = if from_file_start {
                history * 2
            } else {
                history
            };
            self.size = (history + wanted).min(max);
            self.async_size = 1;
        }
        self.start = index;
        self.order = 0;
        self.window()
    }

    /// Handles a read that wants `wanted` pages from the marked folio's start on and has reached
    /// it. `cached_after` counts the cached pages directly after the folio's first page, up to its
    /// argument.
    pub(crate) fn marked(
        &mut self,
        folio: Mark,
        wanted: u64,
        limits: Limits,
        cached_after: impl FnOnce(u64) -> u64,
    ) -> Option<Window> {
        if limits.window_pages == 0 {
            return None;
        }
        let max = limits.for_read(wanted);
        let expected = self.start + self.size - self.async_size;
        if folio.start == expected / folio.pages * folio.pages {
            self.start += self.size;
            self.size = self.size.max(next_size(self.size, max));
        } else {
            let gap = 1 + cached_after(max);
            if gap > max {
                return None;
            }
            self.start = folio.start + gap;
            self.size = next_size(gap + wanted, max);
        }
        self.order += 2;
        let alignment = 1u64 << self.order.min(max.trailing_zeros());
        let end = self.start + self.size;
        let aligned_end = end / alignment * alignment;
        if aligned_end > self.start {
            self.size = aligned_end - self.start;
        }
        self.async_size = self.size;
        Some(self.window())
    }

    /// Notes the end of a read; the byte after it lies in `end_page`.
    pub(crate) fn read_until(&mut self, end_page: u64) {
        self.previous = Some(end_page);
    }

    fn window(&mut self) -> Window {
        self.order = self.order.min(FOLIO_ORDER_MAX).min(self.size.ilog2());
        let mark = self.start + self.size - self.async_size;
        let order = self.order.min(mark.trailing_zeros());
        Window {
            start: self.start,
            pages: self.size,
            order: self.order,
            mark: Some(Mark {
                start: mark,
                pages: 1 << order,
            }),
        }
    }
}

/// Returns the size of a stream's first window.
fn first_size(wanted: u64, max: u64) -> u64 {
    let size = wanted.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// Returns the size of the window after one of `size` pages.
fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        size * 4
    } else if size <= max / 2 {
        size * 2
    } else {
        max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Limits = Limits {
        window_pages: 2048,
        request_pages: 320,
    };
    const DEFAULT: Limits = Limits {
        window_pages: 32,
        request_pages: 320,
    };

    fn window(start: u64, pages: u64, mark: u64, mark_pages: u64) -> Window {
        Window {
            start,
            pages,
            order: 0,
            mark: Some(Mark {
                start: mark,
                pages: mark_pages,
            }),
        }
    }

    fn in_folios(order: u32, window: Window) -> Window {
        Window { order, ..window }
    }

    fn mark_of(window: Window) -> Mark {
        window.mark.unwrap()
    }

    /// 32 KiB reads from the start of a file: 8 pages x 4, then x 4 below a sixteenth of 2048
    /// pages, x 2 to the half, then full windows; the folios grow by two orders each time.
    #[test]
    fn a_sequential_file_opens_the_window_to_its_limit() {
        let mut ra = ReadAhead::default();
        let mut last = ra.missing(0, 8, WIDE, |_| unreachable!());
        assert_eq!(last, window(0, 32, 8, 1));
        let expected = [
            in_folios(2, window(32, 128, 32, 4)),
            in_folios(4, window(160, 256, 160, 16)),
            // 416 + 512 = 928 is cut to 896, a multiple of 64.
            in_folios(6, window(416, 480, 416, 32)),
            // 896 + 960 = 1856 is cut to 1792, a multiple of 256.
            in_folios(8, window(896, 896, 896, 128)),
            // 1792 + 1792 = 3584 is cut to 3072, a multiple of 1024.
            in_folios(9, window(1792, 1280, 1792, 256)),
            // More than half the limit: the limit; 5120 is cut to 4096, a multiple of 2048.
            in_folios(9, window(3072, 1024, 3072, 512)),
            in_folios(9, window(4096, 2048, 4096, 512)),
            in_folios(9, window(6144, 2048, 6144, 512)),
        ];
        for next in expected {
            last = ra
                .marked(mark_of(last), 8, WIDE, |_| unreachable!())
                .unwrap();
            assert_eq!(last, next);
        }
    }

    /// Under the kernel's default of 128 KiB, 8 pages double once (8 = 32 / 4) to 16.
    #[test]
    fn default_limit() {
        let mut ra = ReadAhead::default();
        assert_eq!(
            ra.missing(0, 8, DEFAULT, |_| unreachable!()),
            window(0, 16, 8, 1)
        );
        // 16 <= 32 / 2 doubles.
        let next = ra.marked(Mark { start: 8, pages: 1 }, 8, DEFAULT, |_| unreachable!());
        assert_eq!(next.unwrap(), in_folios(2, window(16, 32, 16, 4)));
        // 9 pages round to 16 > 8: the full window at once.
        let mut ra = ReadAhead::default();
        assert_eq!(
            ra.missing(0, 9, DEFAULT, |_| unreachable!()),
            window(0, 32, 9, 1)
        );
        // One page: 1 <= 32 / 32.
        let mut ra = ReadAhead::default();
        assert_eq!(
            ra.missing(0, 1, DEFAULT, |_| unreachable!()),
            window(0, 4, 1, 1)
        );
    }

    /// A read longer than the window is fetched as a whole if one request can hold it, otherwise in
    /// requests, each of which starts the next from its middle.
    #[test]
    fn oversized_reads() {
        let mut ra = ReadAhead::default();
        let alone = ra.missing(1000, 64, DEFAULT, |_| 0);
        assert_eq!((alone.pages, alone.mark), (64, None));
        let mut ra = ReadAhead::default();
        assert_eq!(
            ra.missing(1000, 640, DEFAULT, |_| unreachable!()),
            window(1000, 320, 1160, 1)
        );
    }

    #[test]
    fn a_jump_reads_what_was_asked_and_the_next_read_starts_a_stream() {
        let mut ra = ReadAhead::default();
        let alone = ra.missing(5000, 8, WIDE, |_| 0);
        assert_eq!((alone.start, alone.pages, alone.mark), (5000, 8, None));
        ra.read_until(5008);
        assert_eq!(
            ra.missing(5008, 8, WIDE, |_| unreachable!()),
            window(5008, 32, 5016, 1)
        );
        // The page after the next one is a jump; the page after the end is not (unaligned reads).
        ra.read_until(6000);
        assert_eq!(ra.missing(6002, 8, WIDE, |_| 8).mark, None);
        ra.read_until(6000);
        assert!(ra.missing(6001, 8, WIDE, |_| unreachable!()).mark.is_some());
    }

    /// If more pages before are cached than are wanted, they are the trace of a stream; if they
    /// reach back to the file's start they count twice.
    #[test]
    fn cached_history_counts() {
        let mut ra = ReadAhead::default();
        assert_eq!(ra.missing(700, 8, WIDE, |_| 9), window(700, 17, 716, 1));
        assert_eq!(ra.missing(9, 8, WIDE, |_| 9), window(9, 26, 34, 1));
        assert_eq!(
            ra.missing(9000, 8, WIDE, |max| max),
            window(9000, 2048, 11_047, 1)
        );
    }

    #[test]
    fn a_marker_of_another_stream() {
        let mut ra = ReadAhead::default();
        // 24 pages are left from the marker: (24 + 8) x 4 pages after them.
        let mark = Mark {
            start: 1008,
            pages: 1,
        };
        assert_eq!(
            ra.marked(mark, 8, WIDE, |_| 23),
            Some(in_folios(2, window(1032, 128, 1032, 4)))
        );
        // Everything within a window's reach is cached: nothing to do.
        assert_eq!(ra.marked(mark, 8, WIDE, |max| max), None);
    }

    /// 100 to 104, 104 to 112, then 16 at a time until the end.
    #[test]
    fn folios_end_at_what_is_cached() {
        let window = in_folios(4, window(100, 60, 100, 4));
        let gives_up = |cached| window.gives_up_folios(160, cached);
        assert_eq!(gives_up(101), Some(100));
        assert_eq!(gives_up(111), Some(104));
        assert_eq!(gives_up(130), Some(128));
        assert_eq!(gives_up(160), None);
        // The file ends before the window does: 144 to 152, 152 to 156.
        assert_eq!(window.gives_up_folios(156, 155), Some(152));
        assert_eq!(in_folios(0, window).gives_up_folios(160, 130), None);
    }

    #[test]
    fn switched_off() {
        let mut ra = ReadAhead::default();
        let off = Limits {
            window_pages: 0,
            request_pages: 320,
        };
        assert_eq!(ra.missing(0, 8, off, |_| 0).pages, 1);
    }
}
