//! The file that an event was on.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// How certain the path of a file is.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PathState {
    /// The file was seen under this name while it was open.
    Known,
    /// The file was deleted while open; the path is its last known name.
    Deleted,
    /// The file was never seen open by name; `path` is then a description such as `inode 17 on 254:0`.
    Unresolved,
}

/// The role of a file in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    Collection,
    Index,
    Journal,
    HistoryStore,
    /// Tables and text files of WiredTiger or the server themselves.
    Metadata,
    /// Recognised as none of the above (logs, spill files, …).
    Other,
}

impl FileRole {
    pub const ALL: [FileRole; 6] = [
        Self::Collection,
        Self::Index,
        Self::Journal,
        Self::HistoryStore,
        Self::Metadata,
        Self::Other,
    ];

    /// Returns the word stored in `files.parquet` and shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Index => "index",
            Self::Journal => "journal",
            Self::HistoryStore => "history store",
            Self::Metadata => "metadata",
            Self::Other => "other",
        }
    }

    /// Returns the role with this stored word; unknown words become [`FileRole::Other`].
    pub fn from_name(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|r| r.name() == name)
            .unwrap_or(Self::Other)
    }
}

/// One file seen in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Unique within the run; events refer to it.
    pub file_id: u32,
    /// Absolute path as the traced process sees it (lossy UTF-8), or a description.
    pub path: String,
    pub path_state: PathState,
    /// Device number, `major:minor` as the kernel's superblock has it.
    pub device_major: u32,
    pub device_minor: u32,
    pub inode: u64,
    /// File size when last checked, bytes; 0 if unknown.
    pub size_bytes: u64,
    pub role: FileRole,
    /// `database.collection`, or `database.collection/index`, if known.
    pub namespace: Option<String>,
    /// The member of a replica set or sharded cluster that it belongs to, where several were traced: the shard's name,
    /// `host:port`, or `shard@host:port`.
    pub member: Option<String>,
}

/// Folder of mongod's temporary files, of sorts and index builds, below its data directory.
pub const TEMPORARY_FOLDER: &str = "_tmp";
/// How the names of these files begin: `extsort-sort-executor.3`, `extsort-index.0`.
pub const SORT_FILES: &str = "extsort";

impl FileRecord {
    /// Returns whether it is a temporary file of the server, which does not go through the cache of its storage engine.
    pub fn is_temporary(&self) -> bool {
        let mut folders = self.path.rsplit('/').skip(1);
        folders.next() == Some(TEMPORARY_FOLDER)
    }

    /// Returns whether the file is at a path, which may be relative to the current directory.
    pub fn is_at(&self, path: &str) -> bool {
        let absolute = || std::path::absolute(path).ok();
        self.path == path || absolute().as_deref() == Some(Path::new(&self.path))
    }

    /// Returns the last part of the path, for narrow tables.
    pub fn name(&self) -> &str {
        match self.path_state {
            PathState::Unresolved => &self.path,
            _ => self.path.rsplit('/').next().unwrap_or(&self.path),
        }
    }

    /// Returns [`Self::name`] with the member in front, where there are several: `shard0/WiredTigerLog.0000000001`.
    pub fn labelled_name(&self) -> String {
        labelled(self.member.as_deref(), self.name())
    }

    /// Returns the namespace with the member in front, where there are several: `shard0/shop.orders`.
    pub fn labelled_namespace(&self) -> Option<String> {
        let namespace = self.namespace.as_deref()?;
        Some(labelled(self.member.as_deref(), namespace))
    }
}

/// Returns `name` with the member that it is of in front, if one is named.
pub fn labelled(member: Option<&str>, name: &str) -> String {
    match member {
        Some(member) => format!("{member}/{name}"),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_stands_in_front_of_what_it_holds() {
        let alone = FileRecord {
            file_id: 1,
            path: "/data/collection-7.wt".into(),
            path_state: PathState::Known,
            device_major: 0,
            device_minor: 0,
            inode: 1,
            size_bytes: 0,
            role: FileRole::Collection,
            namespace: Some("shop.orders".into()),
            member: None,
        };
        assert_eq!(alone.labelled_namespace().as_deref(), Some("shop.orders"));
        assert_eq!(alone.labelled_name(), "collection-7.wt");
        let of_shard = FileRecord {
            member: Some("shard0".into()),
            ..alone.clone()
        };
        assert_eq!(
            of_shard.labelled_namespace().as_deref(),
            Some("shard0/shop.orders")
        );
        assert_eq!(of_shard.labelled_name(), "shard0/collection-7.wt");
        let nameless = FileRecord {
            namespace: None,
            ..of_shard
        };
        assert_eq!(nameless.labelled_namespace(), None);
    }
}
