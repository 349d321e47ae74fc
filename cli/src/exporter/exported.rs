//! The registry as monitor, scrapes and text file share it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use seekscope_exporter::{Format, OwnUse, Page, Registry, TextFormat};
use seekscope_server::ProcFs;
use tokio::time::Instant;

/// Readings that may fail before the exporter calls itself unhealthy.
const READINGS_MISSED: u32 = 3;

/// Clones share the registry.
#[derive(Clone)]
pub struct Exported {
    registry: Arc<Mutex<Registry>>,
    read: Arc<Mutex<Instant>>,
    every: Duration,
}

impl Exported {
    pub fn new(series_max: usize, every: Duration) -> Self {
        let registry = Registry::new(series_max, env!("CARGO_PKG_VERSION"));
        Self {
            registry: Arc::new(Mutex::new(registry)),
            read: Arc::new(Mutex::new(Instant::now())),
            every,
        }
    }

    /// Locks the registry. It is held for less than a millisecond and never while something is awaited.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a round of readings has ended.
    pub fn round_ended(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns whether readings go on, whatever they find.
    pub fn is_reading(&self) -> bool {
        let read = *self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.elapsed() < self.every * READINGS_MISSED + Duration::from_secs(30)
    }

    /// Returns everything in this format.
    pub fn body(&self, format: Format) -> Vec<u8> {
        self.page().body(format)
    }

    /// Returns everything as text.
    pub fn text(&self, format: TextFormat) -> String {
        self.page().text(format)
    }

    /// Returns all samples. To encode them takes longer, and needs no lock.
    fn page(&self) -> Page {
        let own = own_use();
        self.registry().page(own)
    }
}

fn own_use() -> OwnUse {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    OwnUse {
        cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        memory_bytes: ProcFs::host().rss_bytes(std::process::id()).ok(),
    }
}
