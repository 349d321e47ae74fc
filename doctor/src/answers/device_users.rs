//! Lists who uses the device: file → collection or index → kind of thread, and in what pattern.
//!
//! The source is the trace. Without one, collections are listed by the bytes they moved between file and cache,
//! and the time that application threads waited for pages is divided in proportion.

use std::collections::HashMap;

use schemars::JsonSchema;
use seekscope_pattern::{FileTrace, FileUse, PatternKind, ThreadRole};
use seekscope_run::{CollectionFacts, DeviceModel, FileRole};
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::evidence::ability;

/// The most users that are listed.
const USERS_MAX: usize = 50;

/// The use of one file by one kind of thread in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUser {
    /// Path of the file; empty if only the server's counters are known.
    pub path: String,
    pub role: FileRole,
    /// `database.collection` or `database.collection/index`.
    pub namespace: Option<String>,
    pub thread_role: ThreadRole,
    /// False for reads.
    pub writes: bool,
    pub calls_per_s: f64,
    /// Bytes requested by calls.
    pub bytes_per_s: f64,
    /// Bytes requested from the disk, read-ahead included.
    pub device_bytes_per_s: f64,
    /// Time that threads waited in these calls, s per s of observation: 1 is one thread all the time.
    pub waiting_s_per_s: f64,
    /// Share (0 to 1) of the disk's time that these calls took, by the device model; null without one.
    pub device_time_share: Option<f64>,
    pub pattern: Option<PatternKind>,
    pub sequential_share: Option<f64>,
    /// 0 if only the server's counters are known.
    pub p50_ns: u64,
    pub p99_ns: u64,
}

impl DeviceUser {
    /// Returns the source of the figures, for people.
    pub(crate) fn source(&self) -> &'static str {
        if self.path.is_empty() {
            "serverStatus, collStats"
        } else {
            "trace"
        }
    }

    /// Returns a description, e.g. "reads of shop.orders by application threads".
    pub fn describe(&self) -> String {
        let direction = if self.writes { "writes to" } else { "reads of" };
        let file = self.path.rsplit('/').next().unwrap_or_default();
        let what = match (&self.namespace, self.role) {
            (Some(namespace), _) => namespace,
            (None, FileRole::Journal) => "the journal",
            (None, _) => file,
        };
        format!("{direction} {what} by {} threads", self.thread_role.name())
    }
}

/// Returns the users, the most waiting first.
pub(super) fn device_users(evidence: &Evidence<'_>) -> Vec<DeviceUser> {
    let traced = traced(evidence).unwrap_or_default();
    let mut users = if traced.is_empty() {
        counted(evidence).unwrap_or_default()
    } else {
        traced
    };
    users.sort_by(|a, b| {
        let key = |user: &DeviceUser| (user.waiting_s_per_s, user.device_bytes_per_s);
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    users.truncate(USERS_MAX);
    users
}

fn traced(evidence: &Evidence<'_>) -> Option<Vec<DeviceUser>> {
    let seconds = evidence.traced_s()?;
    let files = evidence.trace?.files.iter().map(|f| (f.file.file_id, f));
    let files: HashMap<u32, &FileTrace> = files.collect();
    let model = evidence.model().map(|(model, _)| model);
    let users = evidence.device_use?.users.iter();
    let users = users.filter_map(|user| {
        let file = files.get(&user.file_id)?;
        Some(of_use(user, file, seconds, model))
    });
    Some(users.collect())
}

fn of_use(
    user: &FileUse,
    file: &FileTrace,
    seconds: f64,
    model: Option<&DeviceModel>,
) -> DeviceUser {
    let direction = if user.writes {
        &file.writes
    } else {
        &file.reads
    };
    let pattern = direction.pattern.as_ref();
    let device_bytes = if user.writes {
        user.bytes
    } else {
        user.device_read_bytes
    };
    DeviceUser {
        path: file.file.path.clone(),
        role: file.file.role,
        namespace: file.file.namespace.clone(),
        thread_role: user.role,
        writes: user.writes,
        calls_per_s: user.calls as f64 / seconds,
        bytes_per_s: user.bytes as f64 / seconds,
        device_bytes_per_s: device_bytes as f64 / seconds,
        waiting_s_per_s: user.waiting_ns as f64 / 1e9 / seconds,
        device_time_share: model.and_then(|model| {
            let requests = requests(user, file);
            let bytes = device_bytes as f64 / requests.max(1.0);
            let able = ability::requests_per_s(model, bytes)?;
            Some((requests / seconds / able).clamp(0.0, 1.0))
        }),
        pattern: pattern.map(|p| p.kind),
        sequential_share: pattern.map(|p| p.sequential_share),
        p50_ns: user.latency_ns.p50,
        p99_ns: user.latency_ns.p99,
    }
}

/// Returns the requests that the disk received because of these calls. Where requests were recorded, the
/// file's are divided by bytes; else it is the calls that waited, and for writes all calls, which reach the
/// disk eventually.
fn requests(user: &FileUse, file: &FileTrace) -> f64 {
    let (device, asked) = if user.writes {
        (&file.device.writes, user.bytes)
    } else {
        (&file.device.reads, user.device_read_bytes)
    };
    if device.calls > 0 {
        let share = asked as f64 / device.bytes.max(1) as f64;
        return device.calls as f64 * share.min(1.0);
    }
    let calls = if user.writes {
        user.calls
    } else {
        user.waited_calls
    };
    calls as f64
}

fn counted(evidence: &Evidence<'_>) -> Option<Vec<DeviceUser>> {
    let seconds = evidence.counted_s()?;
    let waiting = evidence.read_waiting()?;
    let collections = &evidence.examined()?.collections;
    let read = |c: &CollectionFacts| c.read_into_cache_bytes.unwrap_or(0);
    let all_read = collections.iter().map(read).fold(0, u64::saturating_add);
    let mut users = Vec::new();
    for collection in collections {
        let moved = [
            (false, read(collection)),
            (true, collection.written_from_cache_bytes.unwrap_or(0)),
        ];
        for (writes, bytes) in moved.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let share = if writes {
                0.0
            } else {
                bytes as f64 / all_read as f64
            };
            users.push(DeviceUser {
                path: String::new(),
                role: FileRole::Collection,
                namespace: Some(collection.namespace.clone()),
                thread_role: match writes {
                    true => ThreadRole::Checkpoint,
                    false => ThreadRole::Application,
                },
                writes,
                calls_per_s: waiting.reads_per_s * share,
                bytes_per_s: bytes as f64 / seconds,
                device_bytes_per_s: bytes as f64 / seconds,
                waiting_s_per_s: waiting.s_per_s * share,
                device_time_share: None,
                pattern: None,
                sequential_share: None,
                p50_ns: 0,
                p99_ns: 0,
            });
        }
    }
    Some(users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

    #[test]
    fn the_collection_that_is_waited_for_comes_first() {
        let mut recording = Recording::new();
        let orders = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let log = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
        let application = recording.thread("conn1");
        let journal = recording.thread("WTJourn.Flusher");
        for (i, place) in (0..600_u32).zip(shuffled(600)) {
            let call = Call {
                tid: application,
                file_id: orders,
                at_s: f64::from(i) / 10.0,
                offset: u64::from(place) * 1_000_000,
                bytes: 32_768,
                latency_s: 0.02,
            };
            recording.miss(call);
            recording.write(Call {
                tid: journal,
                file_id: log,
                latency_s: 0.001,
                ..call
            });
        }
        recording.ability(flash(1e-4));
        let users = recording.examine(|_, answers| answers.device_users.clone());
        assert_eq!(users[0].namespace.as_deref(), Some("shop.orders"));
        assert_eq!(
            users[0].describe(),
            "reads of shop.orders by application threads"
        );
        assert_eq!(
            users[1].describe(),
            "writes to the journal by journal threads"
        );
        assert!((users[0].waiting_s_per_s - 0.2).abs() < 1e-9);
        assert_eq!(users[0].pattern, Some(PatternKind::Random));
        let share = users[0].device_time_share.unwrap();
        assert!(share > 0.0 && share < 0.01, "{share}");
    }

    #[test]
    fn a_login_alone_tells_collections() {
        let mut recording = Recording::new();
        let time = "wiredTiger.cache.application threads page read from disk to cache time (usecs)";
        recording.rising(time, 600_000.0);
        recording.rising(
            "wiredTiger.cache.application threads page read from disk to cache count",
            100.0,
        );
        for (name, bytes) in [("a.small", 1 << 20), ("a.large", 3 << 20)] {
            recording.examined().collections.push(CollectionFacts {
                namespace: name.into(),
                read_into_cache_bytes: Some(bytes),
                ..CollectionFacts::default()
            });
        }
        let users = recording.examine(|_, answers| answers.device_users.clone());
        assert_eq!(users.len(), 2);
        assert_eq!(users[0].namespace.as_deref(), Some("a.large"));
        assert!((users[0].waiting_s_per_s - 0.45).abs() < 1e-9);
        let nothing = Recording::new().examine(|_, answers| answers.device_users.clone());
        assert_eq!(nothing, []);
    }
}
