//! Real deployments of MongoDB's own servers on this machine: one server, a replica set, a sharded cluster.
//!
//! [`Deployment::start`] starts all processes on free loopback ports, with their data below a folder of the
//! caller's, sets up what belongs to the topology, and returns when the deployment takes writes. Dropping it
//! kills them. Each can be killed by itself, and comes back on the same port and data.

pub mod certificates;
pub mod replica_set;
mod restarts;
mod sharded;

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use futures_util::future::try_join_all;
use seekscope_server::{
    LocalServer, LocalServerOptions, Server, ServerBinary, ServerKind, ServerRole,
};

use crate::replica_server::LOG_AT_COMMIT;

/// The name of replica sets that are no part of a cluster.
const SET: &str = "seekscope";
/// The cache of each server. mongod raises it to its minimum.
const CACHE_BYTES: u64 = 256 << 20;
/// A server on a busy machine takes its time, three of them more so.
const START_LIMIT: Duration = Duration::from_secs(120);
/// What a mongod's file says before anybody changes it: a comment, and a setting that must survive.
const CONFIG: &str =
    "# As its owner wrote it.\noperationProfiling:\n  slowOpThresholdMs: 250   # not 100\n";
const USER: &str = "root";
const PASSWORD: &str = "correct horse battery staple";
const PASSWORD_ESCAPED: &str = "correct%20horse%20battery%20staple";

/// The programs, of one version.
#[derive(Debug, Clone)]
pub struct MongoPrograms {
    pub mongod: ServerBinary,
    /// Needed for [`Topology::Sharded`] only.
    pub mongos: Option<ServerBinary>,
}

impl MongoPrograms {
    /// A mongod, and the mongos that is named or lies beside it.
    pub fn find(mongod: &Path, mongos: Option<PathBuf>) -> Result<Self> {
        Self::of(ServerBinary::find(Some(mongod), None, &[])?, mongos)
    }

    /// The same of a server that was found.
    pub fn of(mongod: ServerBinary, mongos: Option<PathBuf>) -> Result<Self> {
        let beside = mongod.path.with_file_name("mongos");
        let mongos = mongos.or_else(|| beside.exists().then_some(beside));
        let find = |path: PathBuf| ServerBinary::find(Some(&path), None, &[]);
        Ok(Self {
            mongod,
            mongos: mongos.map(find).transpose()?,
        })
    }
}

/// Which servers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topology {
    Standalone,
    /// A server whose only user has all rights and a password.
    StandaloneWithPassword,
    /// A server that accepts no connection without TLS. Its certificate is signed by an authority of ours.
    StandaloneWithTls,
    ReplicaSet {
        members: usize,
    },
    /// Shards and configuration servers are replica sets of one member; there is one mongos.
    Sharded {
        shards: usize,
    },
}

/// What differs from the usual.
#[derive(Debug, Clone, Default)]
pub struct DeploymentOptions {
    /// WiredTiger's cache of each server, bytes; the least that mongod takes (256 MiB) if it is less.
    pub cache_bytes: u64,
    /// Arguments for the command line of every mongod, but not of mongos.
    pub mongod_arguments: Vec<OsString>,
    /// Record no diagnostic data (FTDC). The recorder writes every second; real servers have it.
    pub without_diagnostic_data: bool,
    /// Whether each mongod reads a configuration file, `mongod-PORT.conf` in the deployment's folder.
    pub config_files: bool,
}

/// One process.
#[derive(Debug)]
pub struct Member {
    /// "standalone", "member-0", "config", "shard-0", "mongos" and so on; its folder is called so, too.
    pub name: String,
    pub process: LocalServer,
    /// How it is started again.
    options: LocalServerOptions,
}

impl Member {
    pub fn role(&self) -> &ServerRole {
        &self.options.role
    }
}

/// Running servers.
#[derive(Debug)]
pub struct Deployment {
    uri: String,
    /// The running servers, in the order in which they were started: a cluster's mongos comes last.
    members: Vec<Member>,
    down: Vec<restarts::Down>,
}

impl Deployment {
    /// Starts it below `folder`, which must be empty and private.
    pub async fn start(
        programs: &MongoPrograms,
        topology: Topology,
        options: &DeploymentOptions,
        folder: &Path,
    ) -> Result<Self> {
        let site = Site {
            programs,
            options,
            folder,
        };
        match topology {
            Topology::Standalone => {
                let member = site.start("standalone", ServerRole::Standalone, |_| {});
                let member = member.await?;
                Ok(Self::new(member.process.uri(), vec![member]))
            }
            Topology::StandaloneWithPassword => site.start_with_password().await,
            Topology::StandaloneWithTls => site.start_with_tls().await,
            Topology::ReplicaSet { members } => site.start_set(members).await,
            Topology::Sharded { shards } => site.start_sharded(shards).await,
        }
    }

    fn new(uri: String, members: Vec<Member>) -> Self {
        Self {
            uri,
            members,
            down: Vec::new(),
        }
    }

    /// The connection string that its users have, with the password if there is one.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The process of this name.
    pub fn member(&self, name: &str) -> Result<&LocalServer> {
        let member = self.members.iter().find(|member| member.name == name);
        let names = || self.members.iter().map(|one| one.name.as_str());
        let member = member.with_context(|| {
            let names: Vec<&str> = names().collect();
            format!("no member is called {name}; there are {}", names.join(", "))
        })?;
        Ok(&member.process)
    }

    /// Runs a command as its users would.
    pub async fn command(&self, database: &str, command: Document) -> Result<Document> {
        let server = Server::connect(&self.uri).await?;
        Ok(server.command(database, command).await?)
    }
}

/// Where and how all members are started.
struct Site<'a> {
    programs: &'a MongoPrograms,
    options: &'a DeploymentOptions,
    folder: &'a Path,
}

impl Site<'_> {
    /// Starts one process in a folder of its own; `change` has the last word about how.
    async fn start(
        &self,
        name: &str,
        role: ServerRole,
        change: impl FnOnce(&mut LocalServerOptions),
    ) -> Result<Member> {
        let is_router = matches!(role, ServerRole::Router(_));
        let binary = if is_router {
            let mongos = self.programs.mongos.clone();
            mongos.context("no mongos; a sharded cluster needs one beside mongod")?
        } else {
            self.programs.mongod.clone()
        };
        let cache_bytes = self.options.cache_bytes.max(CACHE_BYTES);
        let data = self.folder.join(name).join("data");
        let mut options = LocalServerOptions {
            role,
            start_limit: START_LIMIT,
            diagnostic_data: !self.options.without_diagnostic_data && !is_router,
            ..LocalServerOptions::new(binary, data, cache_bytes)
        };
        if !is_router {
            let arguments = self.options.mongod_arguments.iter().cloned();
            options.extra_arguments.extend(arguments);
        }
        if options.binary.kind == ServerKind::SecantusdRs {
            options.add_engine_entry(LOG_AT_COMMIT);
        }
        if self.options.config_files && !is_router {
            // Its name tells the port, which is therefore chosen here.
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            let path = self.folder.join(format!("mongod-{port}.conf"));
            std::fs::write(&path, CONFIG)?;
            options.port = Some(port);
            options
                .extra_arguments
                .extend(["--config".into(), path.into()]);
        }
        change(&mut options);
        let process = LocalServer::start(&options).await;
        let process = process.with_context(|| format!("starting {name}"))?;
        options.port = Some(process.port());
        Ok(Member {
            name: name.to_owned(),
            process,
            options,
        })
    }

    async fn start_with_password(&self) -> Result<Deployment> {
        let with_password = |options: &mut LocalServerOptions| {
            options.extra_arguments.push("--auth".into());
        };
        let member = self.start("standalone", ServerRole::Standalone, with_password);
        let member = member.await?;
        // While there is no user, one may be made from this host without a login.
        let server = Server::connect(&member.process.uri()).await?;
        let user = doc! { "createUser": USER, "pwd": PASSWORD, "roles": ["root"] };
        server.command("admin", user).await?;
        let port = member.process.port();
        let login = format!("{USER}:{PASSWORD_ESCAPED}");
        let uri = format!("mongodb://{login}@127.0.0.1:{port}/?directConnection=true");
        Ok(Deployment::new(uri, vec![member]))
    }

    async fn start_with_tls(&self) -> Result<Deployment> {
        let folder = self.folder.join("certificates");
        std::fs::create_dir_all(&folder)?;
        certificates::write(&folder)?;
        let path = |name: &str| folder.join(name).into_os_string();
        let authority = folder.join("ca.pem");
        let with_tls = |options: &mut LocalServerOptions| {
            options.extra_arguments.extend([
                "--tlsMode".into(),
                "requireTLS".into(),
                "--tlsCertificateKeyFile".into(),
                path("server.pem"),
                "--tlsCAFile".into(),
                path("ca.pem"),
                "--tlsAllowConnectionsWithoutCertificates".into(),
            ]);
            options.uri_options = format!("tls=true&tlsCAFile={}", authority.display());
        };
        let member = self.start("standalone", ServerRole::Standalone, with_tls);
        let member = member.await?;
        Ok(Deployment::new(member.process.uri(), vec![member]))
    }

    async fn start_set(&self, count: usize) -> Result<Deployment> {
        let role = ServerRole::Member(SET.into());
        let starts = (0..count).map(|number| {
            let role = role.clone();
            async move { self.start(&format!("member-{number}"), role, |_| {}).await }
        });
        let members = try_join_all(starts).await?;
        if let [only] = &members[..]
            && only.process.kind() == ServerKind::SecantusdRs
        {
            // Always the only member of a set of its own.
            return Ok(Deployment::new(only.process.uri(), members));
        }
        let processes: Vec<&LocalServer> = members.iter().map(|one| &one.process).collect();
        replica_set::initiate(SET, &processes, false).await?;
        let hosts: Vec<String> = processes.iter().map(|one| replica_set::host(one)).collect();
        let uri = format!("mongodb://{}/?replicaSet={SET}", hosts.join(","));
        Ok(Deployment::new(uri, members))
    }
}
