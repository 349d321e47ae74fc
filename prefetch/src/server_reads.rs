//! A server's reads as the tracer sees them: those of the scanned file, and all others.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use seekscope_run::{CacheOutcome, FileRecord, IoEvent, IoFlags, IoKind};
use seekscope_trace::{EventSink, EventSource, LiveSource, SinkError, TraceError, TraceOptions};

/// Plenty, as it is drained every few milliseconds; the memory belongs to our control group, which
/// may be the server's.
const RING_BYTES: u32 = 1 << 20;

/// One read of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerRead {
    /// Offset in the scanned file; `None` for other files.
    pub offset: Option<u64>,
    /// Start and duration, ns.
    pub t_ns: u64,
    pub latency_ns: u64,
    /// The read had to wait for the disk.
    pub missed: bool,
    /// The read bypassed the page cache.
    pub direct: bool,
}

/// A trace of one process. Dropping it removes the kernel programs.
pub struct ServerReads {
    source: LiveSource,
    sink: Sink,
}

#[derive(Debug, Default)]
struct Sink {
    inode: u64,
    name: String,
    /// The ids that stand for the scanned file.
    ids: Vec<u32>,
    reads: Vec<ServerRead>,
}

impl ServerReads {
    /// Follows the reads of `pid`; `file` is the file that is scanned.
    ///
    /// # Errors
    /// [`TraceError`], e.g. where tracing is not permitted.
    pub fn attach(pid: u32, file: &Path, inode_of: &std::fs::File) -> Result<Self, TraceError> {
        let mut options = TraceOptions::new(pid);
        options.kinds = vec![IoKind::Read];
        options.ring_bytes = RING_BYTES;
        let source = LiveSource::attach(&options)?;
        let name = file.file_name().unwrap_or_default();
        Ok(Self {
            source,
            sink: Sink {
                inode: inode_of.metadata().map_or(0, |metadata| metadata.ino()),
                name: name.to_string_lossy().into_owned(),
                ..Sink::default()
            },
        })
    }

    /// Returns the reads since the last call.
    ///
    /// # Errors
    /// [`TraceError::Ring`], which ends the trace.
    pub fn take(&mut self) -> Result<Vec<ServerRead>, TraceError> {
        self.source.drain(&mut self.sink)?;
        Ok(std::mem::take(&mut self.sink.reads))
    }
}

impl EventSink for Sink {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        if event.bytes() == 0 {
            return Ok(());
        }
        let is_ours = self.ids.contains(&event.file_id);
        let waited = [
            CacheOutcome::Miss,
            CacheOutcome::WaitedForOthers,
            CacheOutcome::Direct,
        ];
        self.reads.push(ServerRead {
            offset: event.offset.filter(|_| is_ours),
            t_ns: event.t_ns,
            latency_ns: event.latency_ns,
            missed: event.cache_outcome().is_some_and(|o| waited.contains(&o)),
            direct: event.flags.has(IoFlags::DIRECT),
        });
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        if file.inode == self.inode && file.name() == self.name && !self.ids.contains(&file.file_id)
        {
            self.ids.push(file.file_id);
        }
        Ok(())
    }
}
