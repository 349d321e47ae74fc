//! A file's metadata row: what is needed to read the file, its checkpoints, and why some files are
//! not read at all.

use thiserror::Error;

use crate::block::{BlockFormat, Compressor};
use crate::bytes::DecodeError;
use crate::checkpoint::{Checkpoint, CheckpointCookie};
use crate::config::{self, ConfigError, Value};

/// Why a file is not read even if it is intact.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("the file is encrypted (encryption={0})")]
    Encrypted(String),
    #[error("the file is a column store (key_format=r), which MongoDB does not use")]
    ColumnStore,
    #[error("the file belongs to tiered or disaggregated storage ({0})")]
    Tiered(String),
    #[error("the compressor of the file is unknown (block_compressor={0})")]
    UnknownCompressor(String),
}

/// The most checkpoints kept, at some 200 bytes each. A file has a few during a backup, otherwise
/// one.
const MAX_CHECKPOINTS: usize = 10_000;

/// Why a configuration is not usable. Waiting helps with none of these.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileConfigError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("there are more than {MAX_CHECKPOINTS} checkpoints")]
    TooManyCheckpoints,
    #[error("checkpoint {name}: {source}")]
    Cookie { name: String, source: DecodeError },
}

/// The index that a file holds, as MongoDB up to 4.2 writes it into the metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexIdentity {
    /// `database.collection`.
    pub namespace: String,
    pub index: String,
}

/// The contents of a file's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConfig {
    /// The unit of which all blocks are multiples; a power of two, 512 bytes to 128 MiB.
    pub allocation_bytes: u32,
    pub compressor: Compressor,
    pub key_format: String,
    pub value_format: String,
    /// Size in memory, before compression.
    pub internal_page_max_bytes: Option<u64>,
    /// Size in memory, before compression.
    pub leaf_page_max_bytes: Option<u64>,
    /// Checkpoints in the order of the text.
    pub checkpoints: Vec<Checkpoint>,
    pub index: Option<IndexIdentity>,
}

impl FileConfig {
    /// Reads the configuration text of a `file:` row.
    pub fn parse(text: &str) -> Result<FileConfig, FileConfigError> {
        let keys = Keys::of(text)?;
        refuse(&keys)?;
        let allocation_bytes = match keys.allocation_size {
            None => 4096,
            Some(value) => allocation_bytes(value)?,
        };
        let text_of = |value: Option<Value<'_>>| value.map(|value| value.text().into_owned());
        Ok(FileConfig {
            allocation_bytes,
            compressor: compressor(keys.block_compressor)?,
            key_format: text_of(keys.key_format).unwrap_or_else(|| "u".to_owned()),
            value_format: text_of(keys.value_format).unwrap_or_else(|| "u".to_owned()),
            internal_page_max_bytes: keys.internal_page_max.and_then(Value::size_bytes),
            leaf_page_max_bytes: keys.leaf_page_max.and_then(Value::size_bytes),
            checkpoints: checkpoints(keys.checkpoint, allocation_bytes)?,
            index: keys.app_metadata.and_then(index_identity),
        })
    }

    /// Returns the checkpoint to read, the one with the largest order. `None` if nothing has been
    /// written yet.
    #[must_use]
    pub fn newest_checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoints
            .iter()
            .max_by_key(|checkpoint| checkpoint.order)
    }

    /// Returns how the file's blocks are written.
    #[must_use]
    pub fn format(&self) -> BlockFormat {
        BlockFormat {
            allocation_bytes: self.allocation_bytes,
            compressor: self.compressor,
        }
    }
}

/// The relevant values, found in one pass over the text.
#[derive(Default)]
struct Keys<'a> {
    allocation_size: Option<Value<'a>>,
    app_metadata: Option<Value<'a>>,
    block_compressor: Option<Value<'a>>,
    checkpoint: Option<Value<'a>>,
    disaggregated: Option<Value<'a>>,
    encryption: Option<Value<'a>>,
    internal_page_max: Option<Value<'a>>,
    key_format: Option<Value<'a>>,
    leaf_page_max: Option<Value<'a>>,
    tiered_object: Option<Value<'a>>,
    tiered_storage: Option<Value<'a>>,
    value_format: Option<Value<'a>>,
}

impl<'a> Keys<'a> {
    fn of(text: &'a str) -> Result<Self, ConfigError> {
        let mut keys = Keys::default();
        for pair in config::pairs(text) {
            let (key, value) = pair?;
            let wanted = match key.text().as_ref() {
                "allocation_size" => &mut keys.allocation_size,
                "app_metadata" => &mut keys.app_metadata,
                "block_compressor" => &mut keys.block_compressor,
                "checkpoint" => &mut keys.checkpoint,
                "disaggregated" => &mut keys.disaggregated,
                "encryption" => &mut keys.encryption,
                "internal_page_max" => &mut keys.internal_page_max,
                "key_format" => &mut keys.key_format,
                "leaf_page_max" => &mut keys.leaf_page_max,
                "tiered_object" => &mut keys.tiered_object,
                "tiered_storage" => &mut keys.tiered_storage,
                "value_format" => &mut keys.value_format,
                _ => continue,
            };
            *wanted = Some(value);
        }
        Ok(keys)
    }
}

/// Returns the text of a nested value, unless it is empty or `none`, which both mean that it is not
/// used.
fn used(outer: Option<Value<'_>>, key: &str) -> Result<Option<String>, ConfigError> {
    let Some(outer) = outer else { return Ok(None) };
    let text = config::find_in(outer.pairs(), key)?.map(|value| value.text().into_owned());
    Ok(text.filter(|text| !text.is_empty() && text != "none"))
}

fn refuse(keys: &Keys<'_>) -> Result<(), FileConfigError> {
    for key in ["name", "keyid"] {
        if let Some(name) = used(keys.encryption, key)? {
            return Err(Refusal::Encrypted(name).into());
        }
    }
    if keys.key_format.is_some_and(|format| format.text() == "r") {
        return Err(Refusal::ColumnStore.into());
    }
    if keys
        .tiered_object
        .is_some_and(|value| value.text() == "true")
    {
        return Err(Refusal::Tiered("tiered_object=true".to_owned()).into());
    }
    for (outer, key) in [
        (keys.tiered_storage, "name"),
        (keys.disaggregated, "page_log"),
    ] {
        if let Some(name) = used(outer, key)? {
            return Err(Refusal::Tiered(format!("{key}={name}")).into());
        }
    }
    Ok(())
}

fn allocation_bytes(value: Value<'_>) -> Result<u32, ConfigError> {
    let bytes = value
        .size_bytes()
        .and_then(|bytes| u32::try_from(bytes).ok());
    bytes
        .filter(|bytes| bytes.is_power_of_two() && (512..=128 << 20).contains(bytes))
        .ok_or_else(|| ConfigError::Value {
            key: "allocation_size",
            value: value.text().into_owned(),
            wanted: "a power of two between 512 bytes and 128 MB",
        })
}

fn compressor(value: Option<Value<'_>>) -> Result<Compressor, Refusal> {
    let Some(value) = value else {
        return Ok(Compressor::None);
    };
    match value.text().as_ref() {
        "" | "none" => Ok(Compressor::None),
        "snappy" => Ok(Compressor::Snappy),
        "zlib" | "zlib-noraw" => Ok(Compressor::Zlib),
        "zstd" => Ok(Compressor::Zstd),
        "lz4" | "lz4-noraw" => Ok(Compressor::Lz4),
        other => Err(Refusal::UnknownCompressor(other.to_owned())),
    }
}

fn checkpoints(
    list: Option<Value<'_>>,
    allocation_bytes: u32,
) -> Result<Vec<Checkpoint>, FileConfigError> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let mut checkpoints = Vec::new();
    for pair in list.pairs() {
        let (name, fields) = pair?;
        if checkpoints.len() == MAX_CHECKPOINTS {
            return Err(FileConfigError::TooManyCheckpoints);
        }
        checkpoints.push(checkpoint(
            name.text().into_owned(),
            fields,
            allocation_bytes,
        )?);
    }
    // There is mostly one, and a vector that grows begins with room for four.
    checkpoints.shrink_to_fit();
    Ok(checkpoints)
}

fn checkpoint(
    name: String,
    fields: Value<'_>,
    allocation_bytes: u32,
) -> Result<Checkpoint, FileConfigError> {
    let (mut order, mut time_s, mut write_generation, mut cookie) = (0, 0, 0, None);
    let number = |key: &'static str, value: Value<'_>| {
        value.text().parse::<u64>().map_err(|_| ConfigError::Value {
            key,
            value: value.text().into_owned(),
            wanted: "a number",
        })
    };
    for pair in fields.pairs() {
        let (key, value) = pair?;
        match key.text().as_ref() {
            "order" => order = number("order", value)?,
            "time" => time_s = number("time", value)?,
            "write_gen" => write_generation = number("write_gen", value)?,
            "addr" if value.text().is_empty() => cookie = None,
            "addr" => {
                let parsed = CheckpointCookie::parse_hex(&value.text(), allocation_bytes);
                let named = |source| FileConfigError::Cookie {
                    name: name.clone(),
                    source,
                };
                cookie = Some(parsed.map_err(named)?);
            }
            _ => {}
        }
    }
    Ok(Checkpoint {
        name,
        order,
        time_s,
        write_generation,
        cookie,
    })
}

/// Returns the index, as far as possible: MongoDB writes this as a convenience, so what cannot be
/// read is left out.
fn index_identity(app_metadata: Value<'_>) -> Option<IndexIdentity> {
    let index = config::find_in(app_metadata.pairs(), "infoObj").ok()??;
    let field = |key| {
        Some(
            config::find_in(index.pairs(), key)
                .ok()??
                .text()
                .into_owned(),
        )
    };
    Some(IndexIdentity {
        namespace: field("ns")?,
        index: field("name")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = concat!(
        "allocation_size=4KB,app_metadata=(formatVersion=8,infoObj={ \"v\" : 2, \"key\" : { \"a}\" ",
        ": 1 }, \"name\" : \"a}_1\", \"ns\" : \"db.c\" }),block_compressor=,checkpoint=(",
        "WiredTigerCheckpoint.9=(addr=\"\",order=9,time=7,write_gen=3),user=(addr=\"019381e48766fc6a",
        "9481e4e79223679581e4c000117a808080e3014fc0e25fc0\",order=10,time=8)),encryption=(keyid=,name=),",
        "internal_page_max=16k,key_format=u,leaf_page_max=16KB,tiered_storage=(name=none)"
    );

    #[test]
    fn an_index_of_mongodb() {
        let config = FileConfig::parse(INDEX).unwrap();
        assert_eq!(config.allocation_bytes, 4096);
        assert_eq!(config.compressor, Compressor::None);
        assert_eq!(config.internal_page_max_bytes, Some(16_384));
        let index = IndexIdentity {
            namespace: "db.c".into(),
            index: "a}_1".into(),
        };
        assert_eq!(config.index, Some(index));
        let newest = config.newest_checkpoint().unwrap();
        assert_eq!((newest.name.as_str(), newest.time_s), ("user", 8));
        assert_eq!(newest.root().unwrap().offset, 81_920);
        assert_eq!(config.checkpoints[0].cookie, None);
    }

    #[test]
    fn what_is_not_read_is_named() {
        let refusal = |text| match FileConfig::parse(text) {
            Err(FileConfigError::Refused(refusal)) => refusal.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert!(refusal("encryption=(keyid=,name=AES256-CBC)").contains("AES256-CBC"));
        assert!(refusal("key_format=r").contains("column store"));
        assert!(refusal("tiered_object=true").contains("tiered"));
        assert!(refusal("tiered_storage=(bucket=,name=dir_store)").contains("dir_store"));
        assert!(refusal("block_compressor=iaa").contains("iaa"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text| FileConfig::parse(text).unwrap_err().to_string();
        assert!(error("allocation_size=5000").contains("power of two"));
        assert!(error("checkpoint=(a=(addr=\"02\"))").contains("unknown version"));
        assert!(error("checkpoint=(a=(order=x))").contains("order=x"));
        assert!(error("checkpoint=(a=(addr=\"01\"").contains("not closed"));
    }
}
