//! Settings of a local server by name: the same names for each server program, so that a comparison reads alike
//! for both.

use anyhow::Result;
use seekscope_run::units::parse_bytes;
use seekscope_server::{LocalServerOptions, ServerKind};

use crate::exit::Usage;

/// Names that both programs know, and the option of each.
const OPTIONS: [(&str, &str, &str); 2] = [
    (
        "block_compressor",
        "--wiredTigerCollectionBlockCompressor",
        "--block-compressor",
    ),
    ("checkpoint_seconds", "--syncdelay", "--checkpoint-seconds"),
];
/// Prefix of keys of WiredTiger's own configuration.
const ENGINE_PREFIX: &str = "wt.";
/// secantusd-rs options with a value, and flags without one.
const SECANTUSD_OPTIONS: [(&str, &str); 2] = [
    ("write_tickets", "--write-tickets"),
    ("log_file_max", "--log-file-max"),
];
const SECANTUSD_FLAGS: [(&str, &str); 4] = [
    ("sync_on_commit", "--sync-on-commit"),
    ("data_nonlogged", "--data-nonlogged"),
    ("oplog_nonlogged", "--oplog-nonlogged"),
    ("oplog_async", "--oplog-async"),
];

/// Applies a setting to the server's start options. Unknown names go to mongod as parameters; secantusd-rs has
/// none, so there they are refused.
pub fn apply(options: &mut LocalServerOptions, name: &str, value: &str) -> Result<()> {
    if name == "cache_size" {
        options.cache_bytes = parse_bytes(value).map_err(|e| Usage(e.to_string()))?;
        return Ok(());
    }
    if let Some(key) = name.strip_prefix(ENGINE_PREFIX) {
        return engine(options, key, value);
    }
    let arguments = match options.binary.kind {
        ServerKind::Mongod => mongod(name, value),
        ServerKind::SecantusdRs => secantusd(name, value)?,
    };
    options
        .extra_arguments
        .extend(arguments.into_iter().map(Into::into));
    Ok(())
}

/// Adds a key of WiredTiger's own configuration. If a key is repeated, WiredTiger takes the last.
fn engine(options: &mut LocalServerOptions, key: &str, value: &str) -> Result<()> {
    let is_plain = |text: &str| {
        !text.is_empty() && (text.chars()).all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    if !is_plain(key) || !is_plain(value) {
        let why = "a key and a plain value are expected, such as wt.eviction_dirty_target=10";
        return Err(Usage(format!("{ENGINE_PREFIX}{key}={value}: {why}")).into());
    }
    // WiredTiger writes groups in brackets: eviction.threads_max is eviction=(threads_max=…).
    let mut entry = value.to_string();
    let mut names: Vec<&str> = key.split('.').collect();
    let first = names.remove(0);
    for name in names.into_iter().rev() {
        entry = format!("({name}={entry})");
    }
    let entry = format!("{first}={entry}");
    options.add_engine_entry(&entry);
    Ok(())
}

fn mongod(name: &str, value: &str) -> Vec<String> {
    match OPTIONS.iter().find(|(known, ..)| *known == name) {
        Some((_, option, _)) => vec![(*option).into(), value.into()],
        None if name == "write_tickets" => mongod("wiredTigerConcurrentWriteTransactions", value),
        None => vec!["--setParameter".into(), format!("{name}={value}")],
    }
}

fn secantusd(name: &str, value: &str) -> Result<Vec<String>> {
    let shared = OPTIONS.iter().map(|(known, _, option)| (*known, *option));
    let mut options = shared.chain(SECANTUSD_OPTIONS);
    if let Some((_, option)) = options.find(|(known, _)| *known == name) {
        return Ok(vec![option.into(), value.into()]);
    }
    match (
        SECANTUSD_FLAGS.iter().find(|(known, _)| *known == name),
        value,
    ) {
        (Some((_, flag)), "true" | "on" | "yes" | "1") => Ok(vec![(*flag).into()]),
        (Some(_), "false" | "off" | "no" | "0") => Ok(Vec::new()),
        (Some(_), _) => Err(Usage(format!("{name}={value}: true or false is expected")).into()),
        (None, _) => Err(Usage(format!(
            "secantusd-rs has no setting {name}; it has cache_size, {}",
            secantusd_names().join(", ")
        ))
        .into()),
    }
}

fn secantusd_names() -> Vec<&'static str> {
    let shared = OPTIONS.iter().map(|(name, ..)| *name);
    let own = SECANTUSD_OPTIONS.iter().chain(&SECANTUSD_FLAGS);
    shared.chain(own.map(|(name, _)| *name)).collect()
}

#[cfg(test)]
mod tests {
    use seekscope_server::ServerBinary;

    use super::*;

    fn arguments(kind: ServerKind, name: &str, value: &str) -> Result<String> {
        let binary = ServerBinary {
            path: "/x".into(),
            kind,
        };
        let mut options = LocalServerOptions::new(binary, "/y".into(), 1);
        apply(&mut options, name, value)?;
        let words = options.extra_arguments.iter();
        let words: Vec<String> = words.map(|a| a.to_string_lossy().into_owned()).collect();
        let (cache_bytes, engine) = (options.cache_bytes, &options.engine);
        Ok(format!("{cache_bytes} {}{engine}", words.join(" ")))
    }

    #[test]
    fn one_name_for_both_programs() {
        let mongod = |name, value| arguments(ServerKind::Mongod, name, value).unwrap();
        let secantusd = |name, value| arguments(ServerKind::SecantusdRs, name, value);
        assert_eq!(
            mongod("block_compressor", "zlib"),
            "1 --wiredTigerCollectionBlockCompressor zlib"
        );
        assert_eq!(
            mongod("ttlMonitorEnabled", "false"),
            "1 --setParameter ttlMonitorEnabled=false"
        );
        assert_eq!(
            secantusd("block_compressor", "zlib").unwrap(),
            "1 --block-compressor zlib"
        );
        assert_eq!(
            secantusd("cache_size", "64M").unwrap(),
            format!("{} ", 64 << 20)
        );
        assert_eq!(secantusd("data_nonlogged", "false").unwrap(), "1 ");
        assert!(secantusd("data_nonlogged", "maybe").is_err());
        assert_eq!(
            mongod("wt.eviction.threads_max", "8"),
            "1 eviction=(threads_max=8)"
        );
        assert!(secantusd("wt.cache_size", "1G,log=(enabled=false)").is_err());
        let unknown = secantusd("journal", "off").unwrap_err().to_string();
        assert!(unknown.contains("write_tickets"), "{unknown}");
    }
}
