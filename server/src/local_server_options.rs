//! How a private server is started: its role, and the command line for it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::binary::{ServerBinary, ServerKind};

/// mongod refuses a smaller cache.
const MONGOD_CACHE_MIN_BYTES: u64 = 256 << 20;
const START_LIMIT: Duration = Duration::from_secs(60);
/// secantusd-rs builds an index in one transaction. At WiredTiger's usual limits for uncommitted data (a fifth
/// of the cache, which is little in the small cache of an experiment) it is rolled back and retried forever.
const SECANTUSD_ENGINE: &str = "eviction_dirty_trigger=90,eviction_updates_trigger=90";
/// The variable from which secantusd-rs takes WiredTiger's own configuration.
const SECANTUSD_ENGINE_VARIABLE: &str = "SECANTUS_WT_CONFIG_EXTRA";
const SECANTUSD_NO_OPLOG: (&str, &str) = ("SECANTUS_DISABLE_OPLOG", "1");

/// The role of a server among others. The replica sets are initiated, and the shards added, by the caller that
/// starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerRole {
    /// Alone, without a replication log.
    Standalone,
    /// A member of the replica set of this name. secantusd-rs is always the only member of its own.
    Member(String),
    /// A member of a replica set that is a shard.
    ShardMember(String),
    /// A member of a replica set of configuration servers of a sharded cluster.
    ConfigMember(String),
    /// A mongos, with its configuration servers as `SET/HOST:PORT,…`. It has neither data nor cache.
    Router(String),
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct LocalServerOptions {
    pub binary: ServerBinary,
    /// Created if missing. Log and configuration are placed beside it, so its parent must be private too.
    pub data_directory: PathBuf,
    /// WiredTiger cache, bytes; mongod raises it to its minimum of 256 MiB.
    pub cache_bytes: u64,
    /// How long the server may take to answer after its start.
    pub start_limit: Duration,
    pub role: ServerRole,
    /// The port; `None` for any that is free.
    pub port: Option<u16>,
    /// Whether mongod should record its diagnostic data (FTDC). The recorder writes every second, and a trace
    /// should show only the requested work.
    pub diagnostic_data: bool,
    /// WiredTiger's own configuration, separated by commas. If an entry is repeated, WiredTiger takes the last.
    pub engine: String,
    /// Options that the connection string must have, such as those of TLS, separated by `&`.
    pub uri_options: String,
    /// Arguments added to the command line.
    pub extra_arguments: Vec<OsString>,
    /// Variables added to the server's environment, overriding those set for it otherwise.
    pub environment: Vec<(OsString, OsString)>,
}

impl LocalServerOptions {
    /// Returns options for a standalone server on a free port, with everything else at its default.
    pub fn new(binary: ServerBinary, data_directory: PathBuf, cache_bytes: u64) -> Self {
        Self {
            binary,
            data_directory,
            cache_bytes,
            start_limit: START_LIMIT,
            role: ServerRole::Standalone,
            port: None,
            diagnostic_data: false,
            engine: String::new(),
            uri_options: String::new(),
            extra_arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds an entry to WiredTiger's configuration.
    pub fn add_engine_entry(&mut self, entry: &str) {
        if !self.engine.is_empty() {
            self.engine.push(',');
        }
        self.engine.push_str(entry);
    }

    pub(crate) fn command_line(&self, beside: &Path, port: u16) -> io::Result<Command> {
        let mut command = Command::new(&self.binary.path);
        match self.binary.kind {
            ServerKind::Mongod => self.mongod_arguments(&mut command),
            ServerKind::SecantusdRs => self.secantusd_arguments(&mut command, beside)?,
        }
        command.arg("--port").arg(port.to_string());
        command.args(&self.extra_arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(beside);
        Ok(command)
    }

    fn secantusd_arguments(&self, command: &mut Command, beside: &Path) -> io::Result<()> {
        // An empty file of our own; otherwise one in the home or working directory would be read.
        let config = beside.join("secantusd.toml");
        fs::write(&config, "")?;
        command.arg("--config").arg(config);
        command.args(["--host", "127.0.0.1"]);
        if self.role == ServerRole::Standalone {
            command.arg("--standalone");
            command.envs([SECANTUSD_NO_OPLOG]);
        }
        command.args(["--log-level", "WARNING", "--cache-size"]);
        command.arg(format!("{}M", (self.cache_bytes >> 20).max(1)));
        command.arg("--storage-path").arg(&self.data_directory);
        let mut engine = SECANTUSD_ENGINE.to_owned();
        if !self.engine.is_empty() {
            engine.push(',');
            engine.push_str(&self.engine);
        }
        command.env(SECANTUSD_ENGINE_VARIABLE, engine);
        Ok(())
    }

    fn mongod_arguments(&self, command: &mut Command) {
        command.args(["--bind_ip", "127.0.0.1", "--nounixsocket"]);
        let recorded = self.diagnostic_data;
        command
            .arg("--setParameter")
            .arg(format!("diagnosticDataCollectionEnabled={recorded}"));
        match &self.role {
            ServerRole::Router(config_servers) => {
                command.arg("--configdb").arg(config_servers);
                return;
            }
            ServerRole::Standalone => {}
            ServerRole::Member(set) => {
                command.arg("--replSet").arg(set);
            }
            ServerRole::ShardMember(set) => {
                command.arg("--shardsvr").arg("--replSet").arg(set);
            }
            ServerRole::ConfigMember(set) => {
                command.arg("--configsvr").arg("--replSet").arg(set);
            }
        }
        command.arg("--dbpath").arg(&self.data_directory);
        let cache_bytes = self.cache_bytes.max(MONGOD_CACHE_MIN_BYTES);
        let hundredths_gib = (u128::from(cache_bytes) * 100).div_ceil(1 << 30);
        command.arg("--wiredTigerCacheSizeGB").arg(format!(
            "{}.{:02}",
            hundredths_gib / 100,
            hundredths_gib % 100
        ));
        if !self.engine.is_empty() {
            command
                .arg("--wiredTigerEngineConfigString")
                .arg(&self.engine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: ServerKind, cache_bytes: u64) -> LocalServerOptions {
        let binary = ServerBinary {
            path: "/x/server".into(),
            kind,
        };
        LocalServerOptions {
            extra_arguments: vec!["--extra".into()],
            ..LocalServerOptions::new(binary, "/y/data".into(), cache_bytes)
        }
    }

    fn command(options: &LocalServerOptions, beside: &Path) -> (String, Command) {
        let command = options.command_line(beside, 4711).unwrap();
        let words = command.get_args().map(|a| a.to_string_lossy().into_owned());
        (words.collect::<Vec<_>>().join(" "), command)
    }

    fn mongod(options: &LocalServerOptions) -> String {
        command(options, Path::new("/y")).0
    }

    #[test]
    fn mongod_gets_its_documented_options() {
        let text = mongod(&options(ServerKind::Mongod, 64 << 20));
        assert!(text.starts_with("--bind_ip 127.0.0.1"), "{text}");
        assert!(text.contains("--dbpath /y/data --wiredTigerCacheSizeGB 0.25 "));
        assert!(text.contains("diagnosticDataCollectionEnabled=false "));
        assert!(text.ends_with("--port 4711 --extra"));
        let mut larger = options(ServerKind::Mongod, 2 << 30);
        larger.diagnostic_data = true;
        larger.add_engine_entry("eviction_target=70");
        larger.add_engine_entry("checkpoint=(wait=5)");
        let text = mongod(&larger);
        assert!(text.contains("--wiredTigerCacheSizeGB 2.00 "), "{text}");
        assert!(text.contains("diagnosticDataCollectionEnabled=true "));
        assert!(
            text.contains(
                "--wiredTigerEngineConfigString eviction_target=70,checkpoint=(wait=5) --port"
            ),
            "{text}"
        );
    }

    #[test]
    fn every_part_of_a_cluster_is_told_which_it_is() {
        let mut one = options(ServerKind::Mongod, 1);
        one.role = ServerRole::ConfigMember("c".into());
        assert!(mongod(&one).contains(" --configsvr --replSet c --dbpath /y/data "));
        one.role = ServerRole::ShardMember("s".into());
        assert!(mongod(&one).contains(" --shardsvr --replSet s --dbpath /y/data "));
        one.role = ServerRole::Router("c/127.0.0.1:1".into());
        let text = mongod(&one);
        assert!(
            text.ends_with("--configdb c/127.0.0.1:1 --port 4711 --extra"),
            "{text}"
        );
        assert!(!text.contains("--dbpath") && !text.contains("Cache"));
    }

    #[test]
    fn secantusd_gets_its_own() {
        let beside = tempfile::tempdir().unwrap();
        let mut alone = options(ServerKind::SecantusdRs, 64 << 20);
        let (text, told) = command(&alone, beside.path());
        assert!(
            text.contains("--standalone --log-level WARNING --cache-size 64M --storage-path /y/data --port 4711 --extra"),
            "{text}"
        );
        let variable = |command: &Command, wanted: &str| {
            let mut all = command.get_envs();
            let (_, value) = all.find(|(name, _)| *name == wanted)?;
            Some(value?.to_string_lossy().into_owned())
        };
        assert!(variable(&told, SECANTUSD_NO_OPLOG.0).is_some());
        alone.role = ServerRole::Member("any".into());
        alone.add_engine_entry("eviction_target=70");
        let (text, told) = command(&alone, beside.path());
        assert!(!text.contains("--standalone"), "{text}");
        assert_eq!(variable(&told, SECANTUSD_NO_OPLOG.0), None);
        let engine = variable(&told, SECANTUSD_ENGINE_VARIABLE).unwrap();
        assert!(
            engine.ends_with("trigger=90,eviction_target=70"),
            "{engine}"
        );
    }
}
