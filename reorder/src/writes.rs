//! Tells whether a collection was written to. On servers without a change stream, their own counters may
//! tell.

use bson::{Document, doc};
use seekscope_server::number;
use serde::{Deserialize, Serialize};

use crate::site::Site;

/// What the command `top` counts as writes: by everybody, including what only locked for writing.
const COUNTERS: [&str; 4] = ["insert", "update", "remove", "writeLock"];
/// Index of the last.
const LOCK: usize = 3;

/// Writes to one collection since the server's start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriteCounts {
    /// Process id of the server, which counts from its start.
    pid: u64,
    started_s: i64,
    counts: Vec<u64>,
}

impl WriteCounts {
    /// Reads the counters; `None` if the server does not report them.
    pub(crate) async fn read(site: &Site) -> Option<Self> {
        let admin = |command: Document| site.server.command("admin", command);
        let status = admin(doc! { "serverStatus": 1, "metrics": 0, "wiredTiger": 0 })
            .await
            .ok()?;
        let top = admin(doc! { "top": 1 }).await.ok()?;
        let uptime_s = number(status.get("uptime")?)?;
        let now_s = status.get_datetime("localTime").ok()?.timestamp_millis() / 1000;
        let totals = top.get_document("totals").ok()?;
        // A collection that was not used since the start is not listed.
        let used = totals.get_document(site.namespace.to_string()).ok();
        let count = |name: &&str| {
            let counter = used.and_then(|u| u.get_document(name).ok()?.get("count"));
            counter.and_then(number).unwrap_or(0)
        };
        Some(Self {
            pid: number(status.get("pid")?)?,
            started_s: now_s.saturating_sub_unsigned(uptime_s),
            counts: COUNTERS.iter().map(count).collect(),
        })
    }

    /// Returns whether anything was written between the two readings.
    pub(crate) fn until(&self, later: &Self) -> Written {
        // Both clocks are truncated to whole seconds.
        let same_start = self.pid == later.pid && self.started_s.abs_diff(later.started_s) <= 2;
        if !same_start {
            Written::Unknown
        } else if self.counts == later.counts {
            Written::No
        } else if self
            .counts
            .iter()
            .zip(&later.counts)
            .take(LOCK)
            .all(|(a, b)| a == b)
        {
            Written::Unknown
        } else {
            Written::Yes
        }
    }
}

/// The verdict of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    No,
    Yes,
    /// The server was restarted, or something locked the collection that need not have changed it.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_another_start_tell_nothing() {
        let counts = WriteCounts {
            pid: 5,
            started_s: 100,
            counts: vec![1, 2, 3, 4],
        };
        let with = |pid, started_s, counts| WriteCounts {
            pid,
            started_s,
            counts,
        };
        assert_eq!(counts.until(&with(5, 101, vec![1, 2, 3, 4])), Written::No);
        assert_eq!(counts.until(&with(5, 100, vec![1, 3, 3, 5])), Written::Yes);
        assert_eq!(
            counts.until(&with(5, 100, vec![1, 2, 3, 5])),
            Written::Unknown
        );
        assert_eq!(
            counts.until(&with(6, 100, vec![1, 2, 3, 4])),
            Written::Unknown
        );
        assert_eq!(
            counts.until(&with(5, 190, vec![1, 2, 3, 4])),
            Written::Unknown
        );
    }
}
