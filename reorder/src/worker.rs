//! Identifies the process that works on a reordering, and distinguishes it from one that was killed.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, PoisonError};

use bson::oid::ObjectId;
use seekscope_server::{ProcFs, ProcessIdentity};
use serde::{Deserialize, Serialize};

/// Tokens of this process's current work: a future that was dropped is as dead as a killed process.
static AT_WORK: Mutex<BTreeSet<ObjectId>> = Mutex::new(BTreeSet::new());

/// Keeps the worker alive until dropped.
#[derive(Debug)]
pub(crate) struct AtWork(ObjectId);

impl AtWork {
    pub(crate) fn begin(worker: &Worker) -> Self {
        at_work(|tokens| tokens.insert(worker.token));
        Self(worker.token)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        at_work(|tokens| tokens.remove(&self.0));
    }
}

fn at_work(act: impl FnOnce(&mut BTreeSet<ObjectId>) -> bool) -> bool {
    act(&mut AT_WORK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A process on some host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Worker {
    /// Unique for each run, even in the same process.
    pub(crate) token: ObjectId,
    pub(crate) host: String,
    /// Boot id of the host's kernel: two hosts may have the same name.
    boot_id: String,
    pid: i64,
    start_ticks: i64,
    pub(crate) version: String,
}

impl Worker {
    /// Returns this process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        let identity = ProcFs::host().identity(pid).ok();
        Self {
            token: ObjectId::new(),
            host: kernel_name("hostname"),
            boot_id: kernel_name("random/boot_id"),
            pid: pid.into(),
            start_ticks: identity.map_or(0, |i| i.start_ticks.cast_signed()),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Returns whether the process is running. `None` if it cannot be seen from this host.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        let here = Self::this();
        if self.host != here.host || self.boot_id != here.boot_id || self.boot_id.is_empty() {
            return None;
        }
        if (self.pid, self.start_ticks) == (here.pid, here.start_ticks) {
            return Some(at_work(|tokens| tokens.contains(&self.token)));
        }
        Some(ProcFs::host().is_alive(&ProcessIdentity {
            pid: u32::try_from(self.pid).ok()?,
            start_ticks: self.start_ticks.cast_unsigned(),
            exe: None,
        }))
    }
}

impl std::fmt::Display for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seekscope {}, process {} on {}",
            self.version, self.pid, self.host
        )
    }
}

fn kernel_name(file: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{file}"));
    text.map_or_else(|_| String::new(), |text| text.trim().to_owned())
}
