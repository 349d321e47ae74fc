//! The server that a benchmark works on: an existing one, by its connection string, or a private one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use mongodb::bson::doc;
use mongodb::options::{ConnectionString, ReadPreference};
use seekscope_cassandra::CqlTarget;
use seekscope_client::Wanted;
use seekscope_run::{CacheState, DeviceFacts, Limitation, MemberState, StorageFacts, TargetFacts};
use seekscope_server::examination::Routed;
use seekscope_server::sampling::Sampler;
use seekscope_server::tcp_listener::local_address;
use seekscope_server::{
    NoServerKind, ProcFs, Server, ServerError, ServerUse, directory_bytes, storage_facts,
};
use seekscope_settings::{PrimaryChanged, Reign};
use seekscope_workload::ownership::refuse_shard;
use seekscope_workload::{DEFAULT_DATABASE, NoCheckpoint, checkpoint};
use tokio::time::timeout;

use super::client_choice::{Chosen, choose};
use super::private_server::BenchServer;
use super::whereabouts;
use crate::args::BenchTargetArgs;
use crate::environment::Environment;
use crate::exit::Usage;

/// A server that is stopped or frozen must not block the run.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// A checkpoint of a large cache on a slow disk takes a while.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(600);

/// The server for queries beside the measured requests.
#[derive(Debug)]
enum Peer {
    MongoDb(Server),
    /// Its target names no keyspace; a command does.
    Cassandra(CqlTarget),
}

/// A server that responds.
#[derive(Debug)]
pub struct Target {
    /// Name among several, e.g. "zlib"; empty if there is only one.
    pub variant: String,
    /// Connection string with credentials: for clients only.
    pub uri: String,
    /// The primary of the set that the connection string means, which it need not name: `host:port`.
    pub primary: Option<String>,
    /// The member that took the writes when this was connected to; `None` for Cassandra.
    writer: Option<Server>,
    /// That member's time as the primary of a set of several.
    reign: Option<Reign>,
    /// Why the driver is its client although nothing of its own asks for that: both servers of a comparison have the same.
    pub driver_because: Option<String>,
    peer: Peer,
    pub facts: TargetFacts,
    /// Whether it is on another host than this process; `false` if that is unknown.
    pub is_elsewhere: bool,
    /// What the server would not reveal about itself.
    pub missing: Vec<Limitation>,
    /// Whether it is the server of an earlier target that is asked in another way, and works on what that one loaded.
    pub shares_data: bool,
    /// Whether other members of its set may serve the reads, so that its process is not all that works.
    reads_elsewhere: bool,
    /// The members that do the work, if the server is a router.
    routed: Option<Routed>,
    local: Option<BenchServer>,
}

impl Target {
    /// Connects to `uri`.
    pub async fn connect(uri: &str, variant: &str, pid: Option<u32>) -> Result<Self> {
        Self::new(uri.into(), variant, pid, None).await
    }

    /// Starts a local server with these settings in addition to the command line's, whose data lie below `parent`.
    pub async fn start_local(
        args: &BenchTargetArgs,
        variant: &str,
        more: &[(String, String)],
        parent: &Path,
        environment: &Environment,
    ) -> Result<Self> {
        let local = BenchServer::start(args, more, parent, environment).await?;
        let uri = local.uri().unwrap_or_default();
        Self::new(uri, variant, None, Some(local)).await
    }

    async fn new(
        uri: String,
        variant: &str,
        pid: Option<u32>,
        local: Option<BenchServer>,
    ) -> Result<Self> {
        if is_cassandra(&uri) {
            return cassandra(uri, variant, pid).await;
        }
        let server = Server::connect(&uri).await?;
        let routed = Routed::find(&server, &uri, &ProcFs::host()).await?;
        let named = pid.filter(|_| routed.is_none());
        // First the reign: with a writer that was elected after it, the next check fails.
        let reign = Reign::of(&server).await?;
        let writer = server.writer().await;
        let known = writer.facts_with_process(named, &ProcFs::host()).await?;
        let mut facts = TargetFacts {
            uri: server.shown_uri(),
            local: local.is_some(),
            ..known.target
        };
        let mut missing = known.missing;
        if let Some(routed) = &routed {
            // A router's own usage is not the cost of the work.
            facts.pid = None;
            facts.shards = routed.shards.iter().map(ToString::to_string).collect();
            let is_counted = routed.primaries().next().is_some();
            missing.push(shards_do_the_work(&facts, is_counted));
            missing.extend(routed.missing.clone());
        }
        let reads_elsewhere = routed.is_none() && may_read_elsewhere(&uri);
        missing.extend(reads_elsewhere.then(|| Limitation {
            what: "what the servers used for the operations is not known".into(),
            why: "the connection string's readPreference sends reads to members other than the primary, whose \
                  processes are not counted"
                .into(),
            remedy: "leave readPreference out of the connection string to have them counted".into(),
        }));
        Ok(Self {
            variant: variant.into(),
            reads_elsewhere,
            is_elsewhere: whereabouts::is_elsewhere(&server, routed.as_ref()).await,
            uri,
            primary: primary_of(&server, &writer),
            writer: Some(writer),
            reign,
            driver_because: None,
            shares_data: false,
            peer: Peer::MongoDb(server),
            facts,
            missing,
            routed,
            local,
        })
    }

    /// Returns one member of its set, whatever its state, by its name there.
    pub async fn member(&self, name: &str, patience: Duration) -> Result<Self> {
        let server = self.server()?.member(name, patience)?;
        server.ping().await?;
        let known = server.facts(&ProcFs::host()).await;
        Ok(Self {
            variant: self.variant.clone(),
            // Without credentials: nothing is sent to it but through `server`.
            uri: server.shown_uri(),
            primary: None,
            writer: Some(server.clone()),
            reign: None,
            driver_because: None,
            shares_data: self.shares_data,
            facts: TargetFacts {
                uri: server.shown_uri(),
                ..known.target
            },
            is_elsewhere: whereabouts::is_elsewhere(&server, None).await,
            missing: known.missing,
            reads_elsewhere: false,
            routed: None,
            local: None,
            peer: Peer::MongoDb(server),
        })
    }

    /// Chooses the client that sends operations to it.
    pub fn choose_client(&self, database: &str, wanted: Wanted) -> Result<Chosen> {
        let primary = self.primary.as_deref();
        match (&self.driver_because, wanted) {
            (Some(why), Wanted::Auto) => Ok(Chosen {
                reason: why.clone(),
                ..choose(&self.uri, primary, database, Wanted::Driver)?
            }),
            _ => choose(&self.uri, primary, database, wanted),
        }
    }

    /// Returns the MongoDB server; an error for Cassandra.
    pub fn server(&self) -> Result<&Server> {
        match &self.peer {
            Peer::MongoDb(server) => Ok(server),
            Peer::Cassandra(_) => {
                Err(Usage("Cassandra can be asked for `bench ycsb` only".into()).into())
            }
        }
    }

    /// Returns the member that took the writes when this was connected to: a set's primary, or the server itself.
    pub fn writer(&self) -> Result<&Server> {
        match &self.writer {
            Some(writer) => Ok(writer),
            None => self.server(),
        }
    }

    /// Returns how the primary of its set has changed since this was connected to, if it has.
    pub async fn change_of_primary(&self) -> Option<PrimaryChanged> {
        let (Peer::MongoDb(server), Some(reign)) = (&self.peer, &self.reign) else {
            return None;
        };
        reign.check(server).await.err()
    }

    /// Returns the members that do the work, if the server is a router.
    pub fn routed(&self) -> Option<&Routed> {
        self.routed.as_ref()
    }

    /// Returns the names of the shards behind it; none if it is no router.
    pub fn shard_names(&self) -> Vec<String> {
        let shards = self.routed.iter().flat_map(|routed| &routed.shards);
        shards.map(|shard| shard.name.clone()).collect()
    }

    /// Refuses a shard of a cluster.
    pub async fn refuse_shard(&self) -> Result<()> {
        match &self.peer {
            Peer::MongoDb(server) if self.local.is_none() => Ok(refuse_shard(server).await?),
            _ => Ok(()),
        }
    }

    /// Returns what it is, in words.
    pub async fn described(&self) -> String {
        let Peer::MongoDb(server) = &self.peer else {
            return "Cassandra".into();
        };
        let hello = server.hello().await.unwrap_or_default();
        match (hello.state, hello.set) {
            (MemberState::Router, _) => "a mongos".into(),
            (MemberState::Standalone, _) => "a mongod on its own".into(),
            (_, Some(set)) => format!("a member of the replica set {set}"),
            (_, None) => "a server that does not say that it is a mongos".into(),
        }
    }

    /// Returns whether the other target is the same server.
    pub async fn is_same_server(&self, other: &Self) -> bool {
        if let (Peer::MongoDb(a), Peer::MongoDb(b)) = (&self.peer, &other.peer) {
            let (a, b) = tokio::join!(a.identity(), b.identity());
            if a.is_some() && b.is_some() {
                return a == b;
            }
        }
        self.facts.pid.is_some() && self.facts.pid == other.facts.pid
    }

    /// Returns the cluster if the target is Cassandra, with the connection string's keyspace or else this one.
    pub fn cassandra(&self, keyspace: &str) -> Result<Option<CqlTarget>> {
        match &self.peer {
            Peer::MongoDb(_) => Ok(None),
            Peer::Cassandra(_) => Ok(Some(CqlTarget::parse(&self.uri, keyspace)?)),
        }
    }

    /// Returns samplers for the counters of the process, the host and, if it has any, the server itself; for a
    /// router also those of its shards, each under its own name.
    pub fn samplers(&self, device: Option<&str>) -> Vec<Sampler> {
        let (proc_fs, pid) = (ProcFs::host(), self.facts.pid);
        let of_host = || Sampler::of_host(&proc_fs, pid, device);
        match (&self.peer, &self.routed) {
            (Peer::MongoDb(server), Some(routed)) => {
                let router = Sampler::of_member("router", server);
                let primaries = routed.primaries();
                let shards = primaries.map(|one| Sampler::of_member(&one.name, &one.server));
                [of_host(), router].into_iter().chain(shards).collect()
            }
            (Peer::MongoDb(server), None) => {
                vec![Sampler::new(server, &proc_fs, pid, device)]
            }
            (Peer::Cassandra(_), _) => vec![of_host()],
        }
    }

    /// Returns a step's name, which is unique in the run if `what` is. Includes the variant and the repetition
    /// if there are several.
    pub fn step_name(&self, what: &str, repetition: u32, repetitions: u32) -> String {
        let mut name = what.to_string();
        if !self.variant.is_empty() {
            name = format!("{name} {}", self.variant);
        }
        match repetitions {
            0 | 1 => name,
            _ => format!("{name} {repetition}"),
        }
    }

    /// Returns what the server's process has used so far; `None` if it cannot be observed.
    pub fn server_use(&self) -> Option<ServerUse> {
        let pid = self.facts.pid.filter(|_| !self.reads_elsewhere)?;
        ServerUse::read(&ProcFs::host(), pid)
    }

    /// Returns the size of the collections from the server's statistics; `None` if it reports none, or if they are an
    /// earlier target's too, which has grown with the work of both.
    pub async fn storage(&self, database: &str, collections: &[String]) -> Option<StorageFacts> {
        if self.shares_data {
            return None;
        }
        let names: Vec<&str> = collections.iter().map(String::as_str).collect();
        let asked = storage_facts(self.server().ok()?, database, &names);
        let facts = timeout(ANSWER_LIMIT, asked).await.ok()?.ok()?;
        Some(facts)
    }

    /// Makes the server write everything to its files, and waits for that.
    pub async fn checkpoint(&self) -> Result<(), NoCheckpoint> {
        let Peer::MongoDb(server) = &self.peer else {
            return Err(NoCheckpoint::NotOffered);
        };
        // A hanging server must not be waited for that long.
        self.ping_mongodb(server).await?;
        let asked = timeout(CHECKPOINT_LIMIT, checkpoint(server)).await;
        Ok(asked.map_err(|_| NoCheckpoint::TooLong(CHECKPOINT_LIMIT))??)
    }

    /// Checks that the server still responds.
    pub async fn ping(&self) -> Result<()> {
        match &self.peer {
            Peer::MongoDb(server) => Ok(self.ping_mongodb(server).await?),
            Peer::Cassandra(target) => {
                let asked = timeout(ANSWER_LIMIT, target.release()).await;
                asked.map_err(|_| self.silent())??;
                Ok(())
            }
        }
    }

    async fn ping_mongodb(&self, server: &Server) -> Result<(), ServerError> {
        let asked = timeout(ANSWER_LIMIT, server.command("admin", doc! { "ping": 1 })).await;
        asked.map_err(|_| self.silent())?.map(drop)
    }

    fn silent(&self) -> ServerError {
        ServerError::Unreachable {
            uri: self.facts.uri.clone(),
            why: format!("no answer within {ANSWER_LIMIT:?}"),
            remedy: NoServerKind::Silent.remedy(),
        }
    }

    /// Returns the disk under its data, if that is on this host.
    pub fn device(&self) -> Option<DeviceFacts> {
        let folder = self.facts.dbpath.as_deref()?;
        DeviceFacts::of_path(Path::new("/"), Path::new(folder)).ok()
    }

    /// Restarts the private server with cold files. Returns a limitation if they could not be made cold.
    pub async fn make_cold(&mut self) -> Result<Option<Limitation>> {
        let Some(local) = &mut self.local else {
            return Ok(None);
        };
        let state = local.restart_cold().await?;
        self.find_again().await?;
        Ok(not_cold(state))
    }

    /// Stops the private server if it runs, and sets its data aside under this name. Returns where they are.
    pub async fn set_data_aside(&mut self, name: &str) -> Result<Option<PathBuf>> {
        let Some(local) = &mut self.local else {
            return Ok(None);
        };
        local.stop().await?;
        local.set_data_aside(name).map(Some)
    }

    /// Restarts the private server with these settings, on a cold copy of data that was set aside, or without
    /// data. Returns a limitation if the copy could not be made cold.
    pub async fn start_as(
        &mut self,
        args: &BenchTargetArgs,
        more: &[(String, String)],
        data: Option<&Path>,
        environment: &Environment,
    ) -> Result<Option<Limitation>> {
        let Some(local) = &mut self.local else {
            return Ok(None);
        };
        local.stop().await?;
        let state = data.map(|data| local.restore_data(data)).transpose()?;
        local.start_as(args, more, environment).await?;
        self.find_again().await?;
        Ok(state.and_then(not_cold))
    }

    /// Updates the target after others restarted the server: its process may have changed, and connections are
    /// new.
    pub async fn refresh(&mut self) -> Result<()> {
        if let Peer::MongoDb(server) = &self.peer {
            let server = server.another().await?;
            if self.routed.is_none() {
                self.reign = Reign::of(&server).await?;
                let writer = server.writer().await;
                self.facts.pid = writer.facts(&ProcFs::host()).await.target.pid;
                self.primary = primary_of(&server, &writer);
                self.writer = Some(writer);
            }
            self.peer = Peer::MongoDb(server);
        }
        Ok(())
    }

    /// Reconnects to the private server where it listens now.
    async fn find_again(&mut self) -> Result<()> {
        self.uri = (self.local.as_ref())
            .and_then(BenchServer::uri)
            .unwrap_or_default();
        let server = Server::connect(&self.uri).await?;
        self.facts.pid = server.facts(&ProcFs::host()).await.target.pid;
        self.writer = Some(server.clone());
        self.peer = Peer::MongoDb(server);
        Ok(())
    }

    /// Stops the private server; keeps its data and says where if asked to. Another server is left alone.
    pub async fn close(self, keep: bool) -> Result<Closed> {
        let Some(mut local) = self.local else {
            return Ok(Closed::default());
        };
        // Only a server that has ended has written everything to its files.
        let limitation = local.stop().await?;
        Ok(Closed {
            limitation,
            directory_bytes: directory_bytes(local.data_directory()),
            kept: keep.then(|| local.keep()),
        })
    }
}

/// Returns the address of a set's primary, where that is known and the set was not left for one of its members.
fn primary_of(server: &Server, writer: &Server) -> Option<String> {
    let is_of_set = !server.is_direct() && writer.is_direct();
    writer.seeds().into_iter().next().filter(|_| is_of_set)
}

fn not_cold(state: CacheState) -> Option<Limitation> {
    match state {
        CacheState::Cold { .. } => None,
        CacheState::AsFound { why } => Some(Limitation {
            what: "a step did not begin on cold files, so it read less from the disk than it would have".into(),
            why,
            remedy: "put the data on a disk of its own with --data-dir; a filesystem in memory cannot be cold".into(),
        }),
    }
}

/// Returns whether this is a Cassandra connection string.
pub fn is_cassandra(uri: &str) -> bool {
    uri.starts_with(seekscope_cassandra::target::SCHEME)
}

/// Returns whether a connection string lets several members of a set serve the reads.
fn may_read_elsewhere(uri: &str) -> bool {
    let Ok(parsed) = ConnectionString::parse(uri) else {
        return false;
    };
    let preference = parsed.read_preference;
    let is_primary = |preference: &ReadPreference| matches!(preference, ReadPreference::Primary);
    parsed.direct_connection != Some(true) && preference.is_some_and(|one| !is_primary(&one))
}

async fn cassandra(uri: String, variant: &str, pid: Option<u32>) -> Result<Target> {
    let target = CqlTarget::parse(&uri, DEFAULT_DATABASE)?;
    let version = target.release().await?;
    let proc_fs = ProcFs::host();
    let listener = |(host, port): (&str, u16)| {
        let address = local_address(host)?;
        proc_fs.listener(port, Some(address)).ok()?
    };
    let facts = TargetFacts {
        uri: target.to_string(),
        version,
        product: "Cassandra".into(),
        pid: pid.or_else(|| target.only_host().and_then(listener)),
        ..TargetFacts::default()
    };
    Ok(Target {
        variant: variant.into(),
        // Nothing is known of its other nodes.
        is_elsewhere: false,
        primary: None,
        writer: None,
        reign: None,
        driver_because: None,
        shares_data: false,
        uri,
        peer: Peer::Cassandra(target),
        facts,
        missing: Vec::new(),
        reads_elsewhere: false,
        routed: None,
        local: None,
    })
}

fn shards_do_the_work(router: &TargetFacts, is_counted: bool) -> Limitation {
    let shards = match router.shards.as_slice() {
        [] => "which the login may not list".into(),
        shards => shards.join(", "),
    };
    Limitation {
        what: "what the servers used of CPU and disk is not known".into(),
        why: format!(
            "{} is a router (mongos), which keeps no data; its shards do the work: {shards}",
            router.uri
        ),
        remedy: match is_counted {
            true => "server.parquet has the counters of the shards' primaries that let them be read, second by \
                     second; for CPU and disk, run `seekscope top` on the shards' hosts meanwhile",
            false => "run `seekscope top` on the shards' hosts meanwhile",
        }
        .into(),
    }
}

/// What is left of a closed target.
#[derive(Debug, Default)]
pub struct Closed {
    /// The kept data of a private server.
    pub kept: Option<PathBuf>,
    pub limitation: Option<Limitation>,
    /// Size of its tables on disk.
    pub directory_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_preference_lets_other_members_work() {
        for (uri, elsewhere) in [
            ("mongodb://a,b/?replicaSet=rs", false),
            ("mongodb://a,b/?replicaSet=rs&readPreference=primary", false),
            (
                "mongodb://a,b/?replicaSet=rs&readPreference=secondary",
                true,
            ),
            ("mongodb://a/?readPreference=nearest", true),
            (
                "mongodb://a/?directConnection=true&readPreference=secondary",
                false,
            ),
            ("cql://a/", false),
        ] {
            assert_eq!(may_read_elsewhere(uri), elsewhere, "{uri}");
        }
    }
}
