//! Reading a stretch into the page cache, and giving back what only lay in between.
//!
//! A page that was in memory before stays, whoever brought it there; one that the stretch brought
//! without being part of a wanted leaf is given back. Nothing is written, and the file is open for
//! reading only.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{Advice, fadvise};
use seekscope_run::page_cache::resident_pages;
use seekscope_run::units::nanoseconds;

use crate::costs::Fetched;
use crate::sweep::{Place, Stretch};

/// No page of a database is this long, but a damaged tree may claim so.
const STRETCH_BYTES_MAX: u64 = 256 << 20;

/// The outcome of reading a stretch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StretchRead {
    /// Leaves of which nothing was in memory before, by rising offset.
    pub ours: Vec<Place>,
    /// Bytes requested from the file; 0 if everything was in memory.
    pub bytes: u64,
    /// The part of `bytes` that was not in memory.
    pub fetched_bytes: u64,
    /// The part of these that lay in between and was given back.
    pub bridged_bytes: u64,
    /// Read calls.
    pub calls: u64,
    /// Requests that the disk got for them: what is in memory already divides a call.
    pub requests: u64,
    pub elapsed_ns: u64,
}

impl StretchRead {
    pub(crate) fn fetched(&self) -> Fetched {
        Fetched {
            bytes: self.fetched_bytes,
            requests: self.requests,
        }
    }
}

/// Reads stretches of one file, one at a time; each thread has its own.
#[derive(Debug)]
pub struct StretchReader {
    file: Arc<File>,
    /// Whether the kernel tells us what is in memory (mincore(2)).
    sees_residency: bool,
    page_bytes: u64,
    /// The buffer, as long as the longest read call.
    buffer: Vec<u8>,
    call_bytes: usize,
}

impl StretchReader {
    /// Returns a reader for a file that is open for reading, with `call_bytes` (at least a page)
    /// per read call: what the disk takes in one request (`crate::request_size`).
    pub fn new(file: Arc<File>, call_bytes: usize) -> Self {
        let page_bytes = rustix::param::page_size();
        Self {
            sees_residency: sees_residency(&file),
            page_bytes: page_bytes as u64,
            buffer: vec![0; call_bytes.max(page_bytes)],
            call_bytes: call_bytes.max(page_bytes),
            file,
        }
    }

    /// Sets the bytes per read call from now on: whole pages, at least one and at most those that
    /// [`Self::new`] was given.
    pub fn set_call_bytes(&mut self, call_bytes: usize) {
        let page_bytes = usize::try_from(self.page_bytes).unwrap_or(usize::MAX);
        let whole = call_bytes - call_bytes % page_bytes;
        self.call_bytes = whole.clamp(page_bytes, self.buffer.len());
    }

    /// Returns whether pages that were in memory before can be recognised. If not, nothing is given
    /// back.
    pub fn sees_residency(&self) -> bool {
        self.sees_residency
    }

    /// Returns the present length of the file.
    pub(crate) fn file_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads a stretch.
    ///
    /// # Errors
    /// When the file cannot be read; a file that has become shorter is not an error.
    pub fn read(&mut self, stretch: &Stretch) -> io::Result<StretchRead> {
        let started = Instant::now();
        let range = stretch.range();
        if range.end - range.start > STRETCH_BYTES_MAX {
            return Err(io::Error::other(
                "the tree names a block that is too long to be one",
            ));
        }
        let first_page = range.start / self.page_bytes;
        let before = self.resident(range.start, range.end - range.start)?;
        let (mut ours, mut missing) = (Vec::new(), None);
        for &leaf in &stretch.leaves {
            let pages = self.pages_of(leaf, first_page);
            let cached = before[pages.clone()].iter().filter(|&&page| page).count();
            if cached < pages.len() {
                let from = missing.map_or(leaf.offset, |(from, _)| from);
                missing = Some((from, leaf.end()));
            }
            if cached == 0 {
                ours.push(leaf);
            }
        }
        let Some((from, to)) = missing else {
            return Ok(StretchRead::default());
        };
        let (bytes, calls) = self.read_range(from, to)?;
        let requests = self.requests(&before[self.pages_between(from, to, first_page)]);
        let bridged_bytes = if self.sees_residency {
            self.give_back_between(stretch, &before, first_page, from..to)?
        } else {
            ours.clear();
            0
        };
        let asked = self.pages_between(from, to, first_page);
        let missing = before[asked].iter().filter(|&&page| !page).count() as u64;
        Ok(StretchRead {
            ours,
            bytes,
            fetched_bytes: missing * self.page_bytes,
            bridged_bytes,
            calls,
            requests,
            elapsed_ns: nanoseconds(started.elapsed()),
        })
    }

    /// Reads a range to see how long that takes, and gives back all of it that was not in memory
    /// before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn pass_over(&mut self, from: u64, bytes: u64) -> io::Result<StretchRead> {
        let from = from.next_multiple_of(self.page_bytes);
        let end = from.saturating_add(bytes).min(self.file_bytes()?);
        let end = end - end % self.page_bytes;
        if end < from + 2 * self.page_bytes {
            return Ok(StretchRead::default());
        }
        let page = |offset| Place {
            offset,
            length: u32::try_from(self.page_bytes).unwrap_or(u32::MAX),
        };
        let leaves = vec![page(from), page(end - self.page_bytes)];
        let read = self.read(&Stretch { leaves })?;
        self.give_back(&read.ours)?;
        Ok(read)
    }

    /// Gives back leaves that the scan has passed, or that came too late.
    pub fn give_back(&self, leaves: &[Place]) -> io::Result<()> {
        let mut sorted = leaves.to_vec();
        sorted.sort_unstable();
        let mut run: Option<(u64, u64)> = None;
        for leaf in sorted {
            run = match run {
                Some((from, to)) if to == leaf.offset => Some((from, leaf.end())),
                Some((from, to)) => {
                    self.evict(from, to)?;
                    Some((leaf.offset, leaf.end()))
                }
                None => Some((leaf.offset, leaf.end())),
            };
        }
        run.map_or(Ok(()), |(from, to)| self.evict(from, to))
    }

    /// Returns the leaves of which some part is no longer in memory.
    pub fn lost(&self, leaves: &[Place]) -> io::Result<Vec<Place>> {
        let mut lost = Vec::new();
        for &leaf in leaves {
            let pages = self.resident(leaf.offset, leaf.length.into())?;
            if pages.contains(&false) {
                lost.push(leaf);
            }
        }
        Ok(lost)
    }

    fn resident(&self, offset: u64, length: u64) -> io::Result<Vec<bool>> {
        if self.sees_residency {
            return resident_pages(&*self.file, offset, length);
        }
        let pages = (offset + length).div_ceil(self.page_bytes) - offset / self.page_bytes;
        Ok(vec![false; usize::try_from(pages).unwrap_or(0)])
    }

    /// The leaf's pages, as indices from `first_page` on.
    fn pages_of(&self, leaf: Place, first_page: u64) -> Range<usize> {
        self.pages_between(leaf.offset, leaf.end(), first_page)
    }

    fn pages_between(&self, from: u64, to: u64, first_page: u64) -> Range<usize> {
        let index = |page: u64| usize::try_from(page - first_page).unwrap_or(usize::MAX);
        index(from / self.page_bytes)..index(to.div_ceil(self.page_bytes))
    }

    /// Returns how many requests it takes to read pages of which these were in memory.
    fn requests(&self, before: &[bool]) -> u64 {
        let page_bytes = usize::try_from(self.page_bytes).unwrap_or(usize::MAX);
        let calls = before.chunks((self.call_bytes / page_bytes).max(1));
        let of_call = |call: &[bool]| call.chunk_by(|a, b| a == b).filter(|run| !run[0]).count();
        calls.map(of_call).sum::<usize>() as u64
    }

    /// Reads a range. Returns bytes and calls.
    fn read_range(&mut self, from: u64, to: u64) -> io::Result<(u64, u64)> {
        let (mut at, mut calls) = (from, 0);
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(usize::MAX);
            let length = wanted.min(self.call_bytes);
            calls += 1;
            match self.file.read_at(&mut self.buffer[..length], at) {
                // The server has truncated the file.
                Ok(0) => break,
                Ok(read) => at += read as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((at - from, calls))
    }

    /// Gives back pages that were not there before and belong to no wanted leaf.
    fn give_back_between(
        &self,
        stretch: &Stretch,
        before: &[bool],
        first_page: u64,
        read: Range<u64>,
    ) -> io::Result<u64> {
        let mut keep = before.to_vec();
        // Anything that was not read cannot have been brought in by us.
        let index = |page: u64| usize::try_from(page - first_page).unwrap_or(usize::MAX);
        let (from, to) = (
            read.start / self.page_bytes,
            read.end.div_ceil(self.page_bytes),
        );
        keep[..index(from)].fill(true);
        keep[index(to)..].fill(true);
        for &leaf in &stretch.leaves {
            keep[self.pages_of(leaf, first_page)].fill(true);
        }
        let mut given_back = 0;
        let mut page = 0;
        while page < keep.len() {
            let same = keep[page..].iter().take_while(|&&k| k == keep[page]);
            let pages = same.count();
            if !keep[page] {
                let from = (first_page + page as u64) * self.page_bytes;
                let length = pages as u64 * self.page_bytes;
                self.evict(from, from + length)?;
                given_back += length;
            }
            page += pages;
        }
        Ok(given_back)
    }

    /// Drops the pages that lie wholly within the range.
    fn evict(&self, from: u64, to: u64) -> io::Result<()> {
        let length = std::num::NonZeroU64::new(to - from);
        Ok(fadvise(&*self.file, from, length, Advice::DontNeed)?)
    }
}

/// mincore(2) tells the truth to the owner and to those who may write; to others everything looks
/// cached.
fn sees_residency(file: &File) -> bool {
    let owner = file.metadata().map(|metadata| metadata.uid());
    let us = rustix::process::geteuid();
    if us.is_root() || owner.is_ok_and(|uid| uid == us.as_raw()) {
        return true;
    }
    // Uses the name under /proc, as the file's own may have been removed.

    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_divides_a_call_into_requests() {
        let file = Arc::new(File::open("/proc/self/exe").unwrap());
        let page_bytes = rustix::param::page_size();
        let reader = StretchReader::new(file, 4 * page_bytes);
        let requests = |pages: &str| {
            let before: Vec<bool> = pages.chars().map(|page| page == 'm').collect();
            reader.requests(&before)
        };
        assert_eq!(requests("...."), 1);
        assert_eq!(requests("........"), 2, "two calls");
        assert_eq!(requests(".m.m"), 2);
        assert_eq!(requests("mmmmm."), 1);
        assert_eq!(requests(""), 0);
    }
}
