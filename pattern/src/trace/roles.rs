//! The purposes of threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What a thread of a database server does.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ThreadRole {
    /// Serves clients or builds indexes: someone waits for it.
    Application,
    /// Makes room in the cache.
    Eviction,
    /// Writes the tables at intervals.
    Checkpoint,
    /// Writes the log.
    Journal,
    /// Anything else: monitors, expiry, the kernel's own threads.
    Background,
}

impl ThreadRole {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the word itself.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Words in the names of threads, as the kernel keeps them (15 bytes), and the roles they indicate.
/// mongod shortens a long name to its first and last seven letters around a dot. The threads that
/// WiredTiger starts carry the name of the process, so their role is found from behaviour.
const WORDS: [(&str, ThreadRole); 23] = [
    ("evict", ThreadRole::Eviction),
    ("wtcheck", ThreadRole::Checkpoint),
    ("checkp", ThreadRole::Checkpoint),
    ("wtjourn", ThreadRole::Journal),
    ("journal", ThreadRole::Journal),
    ("log-flush", ThreadRole::Journal),
    ("conn", ThreadRole::Application),
    ("indexbu", ThreadRole::Application),
    ("index-build", ThreadRole::Application),
    ("tokio", ThreadRole::Application),
    ("worker", ThreadRole::Application),
    ("ttl", ThreadRole::Background),
    ("ftdc", ThreadRole::Background),
    ("sweep", ThreadRole::Background),
    ("backgro", ThreadRole::Background),
    ("kworker", ThreadRole::Background),
    ("kswapd", ThreadRole::Background),
    ("jbd2", ThreadRole::Background),
    ("xfsaild", ThreadRole::Background),
    ("signal", ThreadRole::Background),
    ("ctrl-c", ThreadRole::Background),
    ("oplog", ThreadRole::Background),
    ("monitor", ThreadRole::Background),
];

impl ThreadRole {
    /// Returns the role that a name indicates, if any: that of the longest word in it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        WORDS
            .iter()
            .filter(|(word, _)| name.contains(word))
            .max_by_key(|(word, _)| word.len())
            .map(|&(_, role)| role)
    }

    /// Returns the role that a thread's calls suggest: a thread that reads works for someone. Of
    /// those that only write and sync, one that stays in the journal or in one file keeps a log,
    /// and one that visits several files makes a checkpoint; one that only writes to tables makes
    /// room.
    pub(crate) fn from_behaviour(seen: &Behaviour) -> Self {
        let calls = seen.reads + seen.writes + seen.syncs;
        let hardly_reads = seen.reads * 100 <= calls;
        match () {
            () if calls == 0 => Self::Background,
            () if !hardly_reads => Self::Application,
            () if seen.syncs == 0 && seen.writes_tables => Self::Eviction,
            () if seen.syncs == 0 => Self::Background,
            () if seen.writes_journal || seen.files_written <= 1 => Self::Journal,
            () => Self::Checkpoint,
        }
    }
}

/// What a thread did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) syncs: u64,
    /// Files written or synced, counted up to a small number.
    pub(crate) files_written: usize,
    /// Whether the first of them is a journal, or a table.
    pub(crate) writes_journal: bool,
    pub(crate) writes_tables: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        for (name, role) in [
            ("conn123", ThreadRole::Application),
            ("IndexBu.ongod-0", ThreadRole::Application),
            ("WTCheck.tThread", ThreadRole::Checkpoint),
            ("Checkpointer", ThreadRole::Checkpoint),
            ("WTJourn.Flusher", ThreadRole::Journal),
            ("JournalFlusher", ThreadRole::Journal),
            ("WT-eviction-1", ThreadRole::Eviction),
            ("secantus-checkp", ThreadRole::Checkpoint),
            ("secantus-oplog-", ThreadRole::Background),
            ("TTLMonitor", ThreadRole::Background),
            ("kworker/u8:2", ThreadRole::Background),
            ("tokio-rt-worker", ThreadRole::Application),
        ] {
            assert_eq!(ThreadRole::from_name(name), Some(role), "{name}");
        }
        assert_eq!(ThreadRole::from_name("mongod"), None);
        assert_eq!(ThreadRole::from_name("secantusd-rs"), None);
    }

    #[test]
    fn behaviour_tells() {
        let role = |reads, writes, syncs, files_written, writes_journal, writes_tables| {
            ThreadRole::from_behaviour(&Behaviour {
                reads,
                writes,
                syncs,
                files_written,
                writes_journal,
                writes_tables,
            })
        };
        assert_eq!(role(10, 10, 1, 3, false, true), ThreadRole::Application);
        assert_eq!(role(0, 10, 5, 1, false, false), ThreadRole::Journal);
        assert_eq!(role(0, 10, 5, 2, true, false), ThreadRole::Journal);
        assert_eq!(role(1, 1000, 5, 4, false, true), ThreadRole::Checkpoint);
        assert_eq!(role(0, 10, 0, 3, false, true), ThreadRole::Eviction);
        assert_eq!(role(0, 10, 0, 1, false, false), ThreadRole::Background);
        assert_eq!(role(0, 0, 0, 0, false, false), ThreadRole::Background);
    }
}
