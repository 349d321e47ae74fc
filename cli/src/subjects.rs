//! Finds the servers or the process that a long-running command watches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use seekscope_run::{DeviceFacts, Limitation};
use seekscope_server::examination::{choose_member, refuse_router};
use seekscope_server::tcp_listener::is_this_host;
use seekscope_server::{ProcFs, Sampler, Server, ServerFacts};

use crate::exit::Usage;
use crate::layout::seen_from_here;
use crate::local_members::{LocalMembers, OtherMember, limitation_of};
use crate::member_role::MemberRole;

/// A server or process that is watched.
pub struct Subject {
    /// What stands in front of its files, where several are watched.
    pub label: Option<String>,
    pub name: String,
    pub server: Option<Server>,
    pub pid: Option<u32>,
    pub dbpath: Option<PathBuf>,
    /// What could not be found out about it.
    pub missing: Vec<Limitation>,
}

/// All that is watched.
pub struct Subjects {
    /// Description for people.
    pub name: String,
    pub here: Vec<Subject>,
    /// Members on other hosts, whose own counters are shown.
    pub others: Vec<OtherMember>,
    /// Addresses of the members that do not answer.
    pub away: BTreeSet<String>,
    /// What could not be found out about the deployment as a whole, and what is not watched of it.
    pub missing: Vec<Limitation>,
}

impl Subjects {
    /// Finds what a connection string, a process id or both name.
    ///
    /// # Errors
    /// Nobody answers, or neither is given.
    pub async fn find(uri: Option<&str>, pid: Option<u32>, proc_fs: &ProcFs) -> Result<Self> {
        let local = match (uri, pid) {
            (Some(uri), None) => LocalMembers::find(uri, proc_fs).await?,
            _ => None,
        };
        let away = local.as_ref().map(LocalMembers::away).unwrap_or_default();
        let others = local.as_ref().map(|local| local.elsewhere("shown"));
        if let Some(local) = local
            && local.members.iter().any(|member| member.label.is_some())
        {
            return Ok(Self::of_members(local, away, proc_fs).await);
        }
        let only = Subject::find(uri, pid, proc_fs).await?;
        Ok(Self {
            name: only.name.clone(),
            others: Vec::new(),
            away,
            missing: others.into_iter().flatten().collect(),
            here: vec![only],
        })
    }

    async fn of_members(local: LocalMembers, away: BTreeSet<String>, proc_fs: &ProcFs) -> Self {
        let mut missing = local.missing.clone();
        missing.extend(local.elsewhere("shown with their processes, disks and files"));
        let mut here = Vec::new();
        for member in &local.members {
            let server = member.server.clone();
            let facts = server.facts(proc_fs).await;
            let mut subject = Subject::of_server(server, facts);
            subject.label.clone_from(&member.label);
            subject.name = member.shown().into();
            here.push(subject);
        }
        Self {
            name: local.subject(),
            here,
            others: local.others,
            away,
            missing,
        }
    }

    /// Returns all limitations: those of each subject with its label, then those of the whole.
    pub fn limitations(&self) -> Vec<Limitation> {
        let of_subjects = self.here.iter().flat_map(|subject| {
            let missing = subject.missing.iter().cloned();
            missing.map(|limitation| subject.limitation(limitation))
        });
        of_subjects.chain(self.missing.iter().cloned()).collect()
    }
}

impl Subject {
    async fn find(uri: Option<&str>, pid: Option<u32>, proc_fs: &ProcFs) -> Result<Self> {
        match (uri, pid) {
            (Some(uri), pid) => {
                let server = choose_member(uri, proc_fs).await?;
                refuse_router(&server).await?;
                let facts = server.facts_with_process(pid, proc_fs).await?;
                Ok(Self::of_server(server, facts))
            }
            (None, Some(pid)) => {
                let name = proc_fs.exe_name(pid).unwrap_or_default();
                Ok(Self {
                    label: None,
                    name: format!("process {pid} {name}"),
                    server: None,
                    pid: Some(pid),
                    dbpath: proc_fs.dbpath(pid),
                    missing: Vec::new(),
                })
            }
            (None, None) => Err(Usage("name a server or a --pid".into()).into()),
        }
    }

    fn of_server(server: Server, facts: ServerFacts) -> Self {
        let ServerFacts {
            target, missing, ..
        } = facts;
        // The path of a server on another host means nothing here.
        let is_here = |(host, _): &(String, u16)| is_this_host(host);
        let here = target.pid.is_some()
            || server.sockets().next().is_some()
            || server.addresses().iter().any(is_here);
        Self {
            label: None,
            name: format!("{} {} at {}", target.product, target.version, target.uri),
            server: Some(server),
            pid: target.pid,
            dbpath: target.dbpath.filter(|_| here).map(PathBuf::from),
            missing,
        }
    }

    /// Returns the data directory as accessible to this process, as far as that is known.
    pub fn data(&self) -> Option<PathBuf> {
        let dbpath = self.dbpath.as_ref()?;
        let seen = self.pid.and_then(|pid| seen_from_here(pid, dbpath).ok());
        Some(seen.unwrap_or_else(|| dbpath.clone()))
    }

    /// Returns the device under the data; without figures where the data is not on this host.
    pub fn device(&self) -> DeviceFacts {
        let path = self.dbpath.as_deref();
        let device = path.and_then(|path| DeviceFacts::of_path(Path::new("/"), path).ok());
        device.unwrap_or_default()
    }

    /// Returns what reads the counters of the server, its process and the device.
    pub fn sampler(&self, proc_fs: &ProcFs, device: &DeviceFacts) -> Sampler {
        let number = device.disk_device.as_deref();
        match &self.server {
            Some(server) => Sampler::new(server, proc_fs, self.pid, number),
            None => Sampler::of_host(proc_fs, self.pid, number),
        }
    }

    /// Returns the limitation with the label in front, if there is one.
    pub fn limitation(&self, limitation: Limitation) -> Limitation {
        limitation_of(self.label.as_deref(), limitation)
    }

    /// Returns whether this is a primary with other members, which could be watched instead.
    pub async fn must_be_spared(&self) -> bool {
        let Some(server) = &self.server else {
            return false;
        };
        let role = MemberRole::ask(server).await;
        role.unwrap_or_default().others_may_depend_on_it()
    }
}
