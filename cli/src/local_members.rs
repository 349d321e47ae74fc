//! Finds the members of a replica set or sharded cluster that run on this host, for commands that look at all of them
//! at once.

use std::collections::{BTreeSet, HashSet};

use anyhow::Result;
use seekscope_run::units::format_list;
use seekscope_run::{Deployment, Limitation, TargetFacts};
use seekscope_server::examination::{FoundDeployment, FoundMember};
use seekscope_server::tcp_listener::is_this_host;
use seekscope_server::{ProcFs, Server, ServerError, redact_uri};

use crate::exit::{Elsewhere, NotPermitted};

/// The number of members named in a message, so that it stays readable.
const NAMED_MAX: usize = 12;
/// The number of reasons why members do not answer.
const REASONS_MAX: usize = 3;

/// The members of a deployment that are on this host, and what is known of the others.
#[derive(Debug)]
pub struct LocalMembers {
    /// The connection string without credentials.
    pub uri: String,
    pub members: Vec<LocalMember>,
    /// Members on other hosts, or that did not answer.
    pub others: Vec<OtherMember>,
    /// What could not be found out about the deployment as a whole.
    pub missing: Vec<Limitation>,
    pub router: Option<Server>,
    /// Each shard with its members, e.g. `shard0 (db1:27018, db2:27018)`.
    pub shards: Vec<String>,
}

/// A member on this host.
#[derive(Debug, Clone)]
pub struct LocalMember {
    /// What stands in front of its files' names: the name of its shard, `host:port`, or `shard@host:port` if several
    /// members of a shard are here. `None` for the only one here of a set, whose files need no telling apart.
    pub label: Option<String>,
    /// `host:port`.
    pub name: String,
    /// The shard it belongs to; `None` outside a sharded cluster.
    pub shard: Option<String>,
    /// A direct connection to it.
    pub server: Server,
    pub pid: u32,
}

/// A member that is not seen on this host.
#[derive(Debug, Clone)]
pub struct OtherMember {
    /// `host:port`, of a cluster `shard@host:port`.
    pub label: String,
    /// `host:port`.
    address: String,
    /// `host:port (shard)`.
    name: String,
    /// Why it does not answer.
    silent: Option<String>,
    /// A direct connection to it, if it answers.
    pub server: Option<Server>,
}

impl LocalMember {
    /// Returns its label, or its name where it needs none.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// Returns the limitation of a server with its label in front, as others may have the same.
pub fn limitation_of(label: Option<&str>, limitation: Limitation) -> Limitation {
    match label {
        Some(label) => Limitation {
            what: format!("{label}: {}", limitation.what),
            ..limitation
        },
        None => limitation,
    }
}

impl LocalMembers {
    /// Finds the members on this host. `None` if the connection string means one server, or a set of which no member
    /// is here.
    ///
    /// # Errors
    /// Nobody answers, or it is a sharded cluster of which no member is here.
    pub async fn find(uri: &str, proc_fs: &ProcFs) -> Result<Option<Self>> {
        let found = match FoundDeployment::find(uri, proc_fs).await {
            Ok(found) => found,
            // The one that did not answer is what was named, not a connection of ours to it.
            Err(ServerError::Unreachable { why, remedy, .. }) => {
                let uri = redact_uri(uri);
                return Err(ServerError::Unreachable { uri, why, remedy }.into());
            }
            Err(ServerError::Unsuitable { why, remedy, .. }) => {
                let uri = redact_uri(uri);
                return Err(ServerError::Unsuitable { uri, why, remedy }.into());
            }
            // The caller, who connects to a single server, meets the same error.
            Err(_) => return Ok(None),
        };
        if found.is_one_server {
            return Ok(None);
        }
        let all = Self::of(&found, uri);
        let is_cluster = found.kind == Deployment::Sharded;
        if all.members.is_empty() && is_cluster {
            return Err(match all.hidden_here() {
                Some(hidden) => hidden.into(),
                None => all.nobody_here().into(),
            });
        }
        let is_set_of_one = found.members.len() == 1 && !is_cluster;
        Ok((!all.members.is_empty() && !is_set_of_one).then_some(all))
    }

    /// Divides the members up by whether they are on this host.
    pub fn of(found: &FoundDeployment, uri: &str) -> Self {
        // A member may be known by several names.
        let mut pids = HashSet::new();
        let here: Vec<&FoundMember> = found
            .on_this_host()
            .filter(|member| member.pid.is_some_and(|pid| pids.insert(pid)))
            .collect();
        let labels = labels(&here);
        let members = here.iter().zip(labels);
        let others = found.members.iter().filter(|member| {
            let is_here = member.pid.is_some_and(|pid| pids.contains(&pid));
            !is_here && (member.keeps_data() || member.hello.is_err())
        });
        Self {
            uri: redact_uri(uri),
            members: members
                .filter_map(|(member, label)| LocalMember::of(member, label))
                .collect(),
            others: others.map(OtherMember::of).collect(),
            missing: found.missing.clone(),
            router: found.router().cloned(),
            shards: shards(&found.members),
        }
    }

    /// Returns the error for a cluster whose members run on this host, and whose processes the user may not see.
    fn hidden_here(&self) -> Option<NotPermitted> {
        let is_here = |other: &OtherMember| {
            let host = other.address.rsplit_once(':').map(|(host, _)| host);
            other.silent.is_none() && host.is_some_and(is_this_host)
        };
        let is_root = rustix::process::geteuid().is_root();
        (!is_root && self.others.iter().any(is_here)).then(|| {
            NotPermitted(format!(
                "{} is a mongos, which keeps no data, and the processes of its shards' members on \
                 this host are not visible: permission denied; run seekscope as root or as the \
                 servers' user ({})",
                self.uri,
                named(&self.others)
            ))
        })
    }

    /// Returns the error for a cluster without a member on this host.
    fn nobody_here(&self) -> Elsewhere {
        let uri = &self.uri;
        let are_silent = self.others.iter().all(|other| other.silent.is_some());
        Elsewhere(match (self.others.is_empty(), self.missing.first()) {
            (true, Some(Limitation { what, why, remedy })) => {
                format!("{uri} is a mongos, which keeps no data; {what}: {why}; {remedy}")
            }
            (true, None) => format!(
                "{uri} is a mongos, which keeps no data, and knows of no shards; name a member of one of its shards"
            ),
            (false, _) if are_silent => format!(
                "{uri} is a mongos, which keeps no data, and of its shards' members {} do not \
                 answer: {}; {FOR_SILENT}",
                named(&self.others),
                why_silent(&self.others)
            ),
            (false, _) => format!(
                "{uri} is a mongos, which keeps no data, and no member of its shards is visible on \
                 this host; run seekscope as root, or as the servers' user, on the hosts of {}",
                named(&self.others)
            ),
        })
    }

    /// Returns the addresses, `host:port`, of the members that do not answer.
    pub fn away(&self) -> BTreeSet<String> {
        let away = self.others.iter().filter(|other| other.silent.is_some());
        away.map(|other| other.address.clone()).collect()
    }

    /// Returns the limitations that name the members on other hosts and those that do not answer; `done` is what was not
    /// done with them.
    pub fn elsewhere(&self, done: &str) -> impl Iterator<Item = Limitation> + use<> {
        let others = self.others.iter().cloned();
        let (silent, answering): (Vec<_>, Vec<_>) = others.partition(|o| o.silent.is_some());
        let limitation = |members: &[OtherMember], why: &str, remedy: &str| {
            (!members.is_empty()).then(|| Limitation {
                what: format!("not {done}: {}", named(members)),
                why: why.into(),
                remedy: remedy.into(),
            })
        };
        let elsewhere = limitation(
            &answering,
            "their processes are not visible on this host",
            "run seekscope on their hosts",
        );
        let silent = limitation(&silent, &why_silent(&silent), FOR_SILENT);
        elsewhere.into_iter().chain(silent)
    }

    /// Describes them for people: "the members shard0 and shard1 of mongodb://…".
    pub fn subject(&self) -> String {
        let labels: Vec<&str> = self.members.iter().map(LocalMember::shown).collect();
        match labels.as_slice() {
            [only] => format!("the member {only} of {}", self.uri),
            _ => format!(
                "{} members of {} on this host ({})",
                labels.len(),
                self.uri,
                labels.join(", ")
            ),
        }
    }

    /// Returns what a run records of the server that was named: of a cluster its router; of a set the one member, or
    /// what all of them have in common.
    pub async fn target(&self, proc_fs: &ProcFs, of_members: &[TargetFacts]) -> TargetFacts {
        let first = of_members.first().cloned().unwrap_or_default();
        match (&self.router, of_members) {
            (Some(router), _) => {
                let router = router.facts(proc_fs).await.target;
                TargetFacts {
                    uri: self.uri.clone(),
                    dbpath: None,
                    cache_bytes: None,
                    shards: self.shards.clone(),
                    ..router
                }
            }
            (None, [_]) => first,
            (None, _) => TargetFacts {
                uri: self.uri.clone(),
                pid: None,
                dbpath: None,
                cache_bytes: None,
                ..first
            },
        }
    }
}

impl LocalMember {
    fn of(found: &FoundMember, label: Option<String>) -> Option<Self> {
        Some(Self {
            label,
            name: found.name.clone(),
            shard: found.shard.clone(),
            server: found.server.clone()?,
            pid: found.pid?,
        })
    }
}

impl OtherMember {
    fn of(found: &FoundMember) -> Self {
        let address = found.name.clone();
        let (label, name) = match &found.shard {
            Some(shard) => (format!("{shard}@{address}"), format!("{address} ({shard})")),
            None => (address.clone(), address.clone()),
        };
        let silent = found.hello.as_ref().err().cloned();
        Self {
            label,
            address,
            name,
            server: found.server.clone().filter(|_| silent.is_none()),
            silent,
        }
    }
}

fn shards(members: &[FoundMember]) -> Vec<String> {
    let of_shard = members.chunk_by(|a, b| a.shard == b.shard);
    of_shard
        .filter_map(|of_shard| {
            let shard = of_shard.first()?.shard.as_ref()?;
            let names: Vec<String> = of_shard.iter().map(|member| member.name.clone()).collect();
            Some(format!("{shard} ({})", names.join(", ")))
        })
        .collect()
}

/// Returns the label of each of the members on this host.
fn labels(here: &[&FoundMember]) -> Vec<Option<String>> {
    let label = |member: &&FoundMember| match &member.shard {
        Some(shard) => {
            let of_shard = here.iter().filter(|other| other.shard == member.shard);
            Some(match of_shard.count() {
                1 => shard.clone(),
                _ => format!("{shard}@{}", member.name),
            })
        }
        None => (here.len() > 1).then(|| member.name.clone()),
    };
    here.iter().map(label).collect()
}

/// What to do about members of a cluster's shards that do not answer.
pub const FOR_SILENT: &str = "check on its host whether the server is running; if it refuses the \
                          login, create the user there as well (the users of a mongos do not exist \
                          on the shards of its cluster)";

/// Returns why members do not answer: each reason once.
fn why_silent(members: &[OtherMember]) -> String {
    let reasons: BTreeSet<&String> = members.iter().filter_map(|m| m.silent.as_ref()).collect();
    let reasons: Vec<&String> = reasons.into_iter().collect();
    format_list(&reasons, REASONS_MAX, "; ")
}

fn named(members: &[OtherMember]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    format_list(&names, NAMED_MAX, ", ")
}

#[cfg(test)]
mod tests {
    use seekscope_run::MemberState;
    use seekscope_server::Hello;

    use super::*;

    fn member(shard: Option<&str>, name: &str, pid: Option<u32>) -> FoundMember {
        FoundMember {
            name: name.into(),
            shard: shard.map(String::from),
            hello: Ok(Hello {
                state: MemberState::Secondary,
                ..Hello::default()
            }),
            server: None,
            pid,
        }
    }

    fn labels_of(members: &[FoundMember]) -> Vec<Option<String>> {
        labels(&members.iter().collect::<Vec<_>>())
    }

    #[test]
    fn labels_are_short_and_tell_all_apart() {
        let told = |text: &str| Some(text.to_string());
        let cluster = [
            member(Some("shard0"), "a:1", Some(1)),
            member(Some("shard1"), "a:2", Some(2)),
            member(Some("shard1"), "a:3", Some(3)),
        ];
        assert_eq!(
            labels_of(&cluster),
            [told("shard0"), told("shard1@a:2"), told("shard1@a:3")]
        );
        assert_eq!(labels_of(&cluster[..1]), [told("shard0")]);
        let set = [member(None, "a:1", Some(1)), member(None, "a:2", Some(2))];
        assert_eq!(labels_of(&set), [told("a:1"), told("a:2")]);
        assert_eq!(labels_of(&set[..1]), [None], "nobody to be told apart from");
    }

    fn cluster(members: Vec<FoundMember>) -> LocalMembers {
        let found = FoundDeployment {
            kind: Deployment::Sharded,
            is_one_server: false,
            routers: Vec::new(),
            members,
            missing: Vec::new(),
        };
        LocalMembers::of(&found, "mongodb://user:secret@mongos/")
    }

    #[test]
    fn those_elsewhere_are_named_with_their_shard_and_where_to_go() {
        let dead = FoundMember {
            hello: Err("it hangs".into()),
            ..member(Some("s1"), "c:3", None)
        };
        let arbiter = FoundMember {
            hello: Ok(Hello {
                state: MemberState::Arbiter,
                ..Hello::default()
            }),
            ..member(Some("s1"), "d:4", None)
        };
        let all = cluster(vec![member(Some("s0"), "b:2", None), dead, arbiter]);
        let limitations: Vec<Limitation> = all.elsewhere("traced").collect();
        let told = limitations
            .iter()
            .map(|l| (l.what.as_str(), l.why.as_str()));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (
                    "not traced: b:2 (s0)",
                    "their processes are not visible on this host"
                ),
                ("not traced: c:3 (s1)", "it hangs"),
            ]
        );
        let error = all.nobody_here().to_string();
        assert!(error.contains("a mongos, which keeps no data"), "{error}");
        assert!(
            error.contains("b:2 (s0)") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn a_refused_login_is_no_other_host() {
        let refused = |name| FoundMember {
            hello: Err("the login was refused".into()),
            ..member(Some("s0"), name, Some(1))
        };
        let error = cluster(vec![refused("b:2"), refused("c:3")]).nobody_here();
        let error = error.to_string();
        let once = error.matches("the login was refused").count();
        assert!(
            once == 1 && error.contains("create the user there"),
            "{error}"
        );
        let mut unknown = cluster(Vec::new());
        unknown.missing.push(Limitation {
            what: "not known: the list of shards".into(),
            why: "the login may not run listShards".into(),
            remedy: "grant it".into(),
        });
        let error = unknown.nobody_here().to_string();
        assert!(
            error.contains("may not run listShards; grant it"),
            "{error}"
        );
    }

    #[test]
    fn many_members_are_counted() {
        let many = (0..15).map(|n| OtherMember::of(&member(None, &format!("h:{n}"), None)));
        let text = named(&many.collect::<Vec<_>>());
        assert!(text.ends_with("h:11 and 3 more"), "{text}");
    }
}
