//! Requests checkpoints while the copy is written, to keep it in order.
//!
//! Once enough of the cache has changed, a server evicts: several threads each write a page of some dozens of
//! leaves at the same time, so that their leaves are interleaved. A checkpoint writes leaf after leaf in key
//! order. So one is requested before eviction begins. With 20,000 documents of 2.5 KB under zlib, on a mongod
//! 4.4 with a cache of 256 MB, 80 % of the steps were sequential without these checkpoints and 99 % with
//! them.

use seekscope_server::{ProcFs, Server, ServerError};

use crate::reader::BATCH_BYTES;
use crate::site::Site;

/// Share of the cache that is written between two checkpoints. WiredTiger begins to evict at 5 % of changed
/// bytes and at half of that of updates. Smaller shares are worse: each checkpoint writes the last leaf,
/// which is written again later.
const CACHE_SHARE: f64 = 0.02;
const BYTES_MIN: u64 = 5 << 20;
/// Upper limit, because changes by others count for the server too.
const BYTES_MAX: u64 = 64 << 20;
/// Used where the size of the cache is not reported, as by a router.
const BYTES_UNKNOWN: u64 = 8 << 20;

#[derive(Debug)]
pub(crate) struct Checkpoints {
    server: Server,
    interval: Interval,
    pub(crate) answers: Answers,
}

/// Counts the bytes between two checkpoints.
#[derive(Debug, Clone, Copy)]
struct Interval {
    every_bytes: u64,
    /// The most that is written at a time. The interval is a whole number of these.
    batch_bytes: u64,
    /// Bytes written since the last checkpoint.
    written_bytes: u64,
}

/// The server's answers to the requests.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) taken: u64,
    /// Set if the login may not request checkpoints; no more are requested then.
    pub(crate) refused: Option<String>,
    /// Number that failed for another, possibly temporary, reason, and the last such reason.
    pub(crate) failed: u64,
    pub(crate) failure: Option<String>,
}

impl Checkpoints {
    /// Chooses the interval from the size of the server's cache.
    pub(crate) async fn of(site: &Site) -> Self {
        let facts = site.server.facts(&ProcFs::host()).await;
        Self {
            server: site.server.clone(),
            interval: Interval::new(facts.target.cache_bytes.map_or(BYTES_UNKNOWN, between)),
            answers: Answers::default(),
        }
    }

    /// Returns the most that should be written at a time.
    pub(crate) fn batch_bytes(&self) -> usize {
        usize::try_from(self.interval.batch_bytes).unwrap_or(usize::MAX)
    }

    /// Counts that many more bytes of documents as written. Returns after the checkpoint, if one is due.
    pub(crate) async fn written(&mut self, bytes: usize) {
        if !self.interval.ends_with(bytes as u64) || self.answers.refused.is_some() {
            return;
        }
        let fsync = self.server.command("admin", bson::doc! { "fsync": 1 });
        self.answers.note(fsync.await.map(drop));
    }
}

impl Interval {
    fn new(every_bytes: u64) -> Self {
        let batches = every_bytes.div_ceil(BATCH_BYTES as u64).max(1);
        Self {
            every_bytes,
            batch_bytes: every_bytes / batches,
            written_bytes: 0,
        }
    }

    /// Counts a batch; returns whether the interval ends with it, because a further one would exceed it. Batches are
    /// a little smaller than their limit: to wait for the whole interval would be to wait for one batch more.
    fn ends_with(&mut self, bytes: u64) -> bool {
        self.written_bytes += bytes;
        let ends = self.written_bytes + self.batch_bytes > self.every_bytes;
        if ends {
            self.written_bytes = 0;
        }
        ends
    }
}

impl Answers {
    fn note(&mut self, asked: Result<(), ServerError>) {
        match asked {
            Ok(()) => self.taken += 1,
            Err(error @ ServerError::NotAuthorised { .. }) => {
                self.refused = Some(error.to_string());
            }
            Err(error) => {
                self.failed += 1;
                self.failure = Some(error.to_string());
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a u64"
)]
fn between(cache_bytes: u64) -> u64 {
    ((cache_bytes as f64 * CACHE_SHARE) as u64).clamp(BYTES_MIN, BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_before_eviction_begins() {
        assert_eq!(between(100 << 20), 5 << 20);
        assert_eq!(between(1_000_000_000), 20_000_000);
        assert_eq!(between(64 << 30), 64 << 20);
    }

    #[test]
    fn one_comes_with_each_interval_though_batches_do_not_fill_it() {
        let taken = |every_bytes: u64, percent: u64| {
            let mut interval = Interval::new(every_bytes);
            assert!(interval.batch_bytes <= BATCH_BYTES as u64);
            let batch = interval.batch_bytes * percent / 100;
            let (mut written, mut taken) = (0, 0);
            while written < 100 << 20 {
                written += batch;
                taken += u32::from(interval.ends_with(batch));
            }
            taken
        };
        assert_eq!(taken(5 << 20, 99), 21);
        assert_eq!(taken(20 << 20, 99), 5, "of two batches each");
        assert_eq!(taken(5 << 20, 300), 7, "of one document each");
    }

    #[test]
    fn only_a_missing_right_ends_the_asking() {
        let mut answers = Answers::default();
        answers.note(Ok(()));
        let (uri, command) = (String::from("mongodb://h/"), String::from("fsync"));
        let busy = ServerError::Failed {
            uri: uri.clone(),
            command: command.clone(),
            why: "a backup has begun".into(),
        };
        answers.note(Err(busy));
        answers.note(Ok(()));
        assert_eq!((answers.taken, answers.failed), (2, 1));
        assert!(
            answers
                .failure
                .as_deref()
                .is_some_and(|why| why.contains("backup"))
        );
        assert_eq!(answers.refused, None);
        answers.note(Err(ServerError::NotAuthorised {
            uri,
            command,
            has_user: true,
        }));
        assert!(answers.refused.is_some_and(|why| why.contains("fsync")));
        assert_eq!(answers.failed, 1);
    }
}
