//! Local servers as the members of a replica set, mostly of one: unlike a standalone one it keeps an oplog and
//! has change streams. They can be killed outright, and come back on the same port and data.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use seekscope_run::MemberState;
use seekscope_server::{
    LocalServer, LocalServerOptions, Server, ServerBinary, ServerKind, ServerRole, Stopped,
};

use crate::deployment::replica_set::initiate;

/// With this a commit of secantusd-rs hands its log record to the operating system, so that SIGKILL loses
/// nothing that was acknowledged; without, up to 50 ms of it (`kills` shows both). Syncing the disk at each
/// commit, as its `--sync-on-commit` does, guards against power cuts besides, and makes loading fifty times
/// slower. A mongod cuts its oplog at the last point that its journal has for certain, whatever this says;
/// see [`ReplicaServer::durable_uri`].
const LOG_AT_COMMIT: &str = "transaction_sync=(enabled=true,method=none)";
const SET: &str = "seekscope";
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(100);

/// How to start it.
#[derive(Debug, Clone)]
pub struct ReplicaServerOptions {
    pub binary: ServerBinary,
    /// Its data; created if missing. The log goes beside it.
    pub data_directory: PathBuf,
    pub cache_bytes: u64,
    /// Further configuration of WiredTiger; what comes last counts.
    pub engine: &'static str,
}

/// Running servers, or some between two starts. Dropping it kills them.
#[derive(Debug)]
pub struct ReplicaServer {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    options: LocalServerOptions,
    port: u16,
    local: Option<LocalServer>,
}

impl ReplicaServer {
    /// Starts a set of one member on a free port, which it keeps.
    pub async fn start(options: ReplicaServerOptions) -> Result<Self> {
        Self::start_set(options, 1).await
    }

    /// Starts a set of so many members, of which the first is the primary. The data of the others lie in
    /// folders beside those of the first.
    pub async fn start_set(options: ReplicaServerOptions, members: usize) -> Result<Self> {
        let mut started = Vec::new();
        for number in 0..members {
            started.push(Member::start(&options, number).await?);
        }
        let set = Self { members: started };
        if set.kind() == ServerKind::Mongod {
            let locals: Vec<&LocalServer> = set.members.iter().flat_map(|one| &one.local).collect();
            initiate(SET, &locals, false).await?;
        }
        Ok(set)
    }

    /// Starts whatever was ended by [`Self::kill`], [`Self::kill_primary`] or [`Self::stop`]; its journal is
    /// recovered. Waits until the set takes writes and every member follows.
    pub async fn start_again(&mut self) -> Result<()> {
        let mut was_down = false;
        for member in &mut self.members {
            if member.local.is_none() {
                member.local = Some(LocalServer::start(&member.options).await?);
                was_down = true;
            }
        }
        ensure!(was_down, "every server runs already");
        let [only] = &self.members[..] else {
            return self.until_whole().await;
        };
        match &only.local {
            Some(local) if local.kind() == ServerKind::Mongod => {
                initiate(SET, &[local], false).await
            }
            _ => Ok(()),
        }
    }

    fn kind(&self) -> ServerKind {
        self.members[0].options.binary.kind
    }

    /// Nothing is sent twice by the driver: whoever sends knows what became of it.
    pub fn uri(&self) -> String {
        match &self.members[..] {
            [only] => format!("{}&retryWrites=false", only.uri()),
            several => {
                let hosts: Vec<String> = several.iter().map(Member::host).collect();
                let hosts = hosts.join(",");
                format!("mongodb://{hosts}/?replicaSet={SET}&retryWrites=false")
            }
        }
    }

    /// For those whose acknowledged writes must be there after a kill: mongod takes back what its journal, or
    /// the majority of the set, does not have.
    pub fn durable_uri(&self) -> String {
        let uri = self.uri();
        match (self.kind(), self.members.len()) {
            (ServerKind::SecantusdRs, _) => uri,
            (ServerKind::Mongod, 1) => format!("{uri}&journal=true"),
            (ServerKind::Mongod, _) => format!("{uri}&journal=true&w=majority"),
        }
    }

    /// Of the first member.
    pub fn data_directory(&self) -> &Path {
        &self.members[0].options.data_directory
    }

    /// Of the running process of the first member.
    pub fn pid(&self) -> Result<u32> {
        let local = self.members[0].local.as_ref();
        Ok(local.context("the server does not run")?.pid())
    }

    /// SIGKILL to all, and waits for the end.
    pub fn kill(&mut self) {
        for member in &mut self.members {
            drop(member.local.take());
        }
    }

    /// SIGKILL to the primary, and waits for its end.
    pub async fn kill_primary(&mut self) -> Result<()> {
        if self.members.len() == 1 {
            self.kill();
            return Ok(());
        }
        for member in &mut self.members {
            if member.state().await? == MemberState::Primary {
                drop(member.local.take());
                return Ok(());
            }
        }
        bail!("the set has no primary to be killed")
    }

    /// Lets all write their last checkpoint.
    pub async fn stop(&mut self) -> Result<()> {
        for member in &mut self.members {
            let local = member.local.take().context("the server does not run")?;
            let log = local.log_file().to_owned();
            let stopped = local.stop(STOP_LIMIT).await;
            let log = log.display();
            ensure!(
                stopped == Stopped::Clean,
                "the server did not stop well ({stopped:?}); see {log}"
            );
        }
        Ok(())
    }

    /// Waits until there is a primary that takes writes, and all others follow it.
    async fn until_whole(&self) -> Result<()> {
        let until = Instant::now() + START_LIMIT;
        loop {
            let (mut primaries, mut secondaries) = (0, 0);
            for member in &self.members {
                let state = member.state().await?;
                primaries += usize::from(state == MemberState::Primary);
                secondaries += usize::from(state == MemberState::Secondary);
            }
            if primaries == 1 && secondaries + 1 == self.members.len() {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "the set has {primaries} primaries and {secondaries} secondaries after {START_LIMIT:?}"
            );
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Member {
    async fn start(options: &ReplicaServerOptions, number: usize) -> Result<Self> {
        let mut data = options.data_directory.clone();
        if number > 0 {
            // A server's log and configuration lie beside its data.
            let beside = data.with_file_name(format!("member-{number}"));
            data = beside.join("data");
        }
        std::fs::create_dir_all(&data)?;
        let binary = options.binary.clone();
        let mut local_options = LocalServerOptions {
            role: ServerRole::Member(SET.into()),
            start_limit: START_LIMIT,
            // As on any server in production.
            diagnostic_data: true,
            ..LocalServerOptions::new(binary, data, options.cache_bytes)
        };
        if local_options.binary.kind == ServerKind::SecantusdRs {
            local_options.add_engine_entry(LOG_AT_COMMIT);
        }
        // mongod's own option has a minimum of 256 MiB, which WiredTiger's has not.
        local_options.add_engine_entry(&format!("cache_size={}", options.cache_bytes));
        if !options.engine.is_empty() {
            local_options.add_engine_entry(options.engine);
        }
        let local = LocalServer::start(&local_options).await?;
        let port = local.port();
        local_options.port = Some(port);
        Ok(Self {
            options: local_options,
            port,
            local: Some(local),
        })
    }

    async fn state(&self) -> Result<MemberState> {
        let server = Server::connect(&self.uri()).await?;
        Ok(server.hello().await?.state)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn uri(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.host())
    }
}
