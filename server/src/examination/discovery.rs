//! Finds the servers that a connection string leads to: what each is, and which of them run on this host.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::future::join_all;
use seekscope_run::document::Limitation;
use seekscope_run::{Deployment, MemberState};

use super::asking::Asker;
use super::deployment::{Fellow, SetStatus, shards};
use crate::hello::{Hello, MEMBERS_MAX};
use crate::process::ProcFs;
use crate::server::{SELECTION_LIMIT, Server, ServerError};

/// Time limit for each server to say what it is; all are asked at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// The servers of a deployment.
#[derive(Debug, Clone)]
pub struct FoundDeployment {
    pub kind: Deployment,
    /// Whether the connection string means one server rather than its set.
    pub is_one_server: bool,
    /// The routers that the connection string leads to; empty unless it is a sharded cluster.
    pub routers: Vec<FoundMember>,
    /// The servers that keep data or vote, reached or not. Without configuration servers.
    pub members: Vec<FoundMember>,
    /// What could not be found out about the deployment as a whole.
    pub missing: Vec<Limitation>,
}

/// One server of a deployment.
#[derive(Debug, Clone)]
pub struct FoundMember {
    /// `host:port`, as its fellows or the connection string name it.
    pub name: String,
    /// The shard it belongs to; `None` outside a sharded cluster.
    pub shard: Option<String>,
    /// What it says of itself, or why it could not be asked.
    pub hello: Result<Hello, String>,
    /// A direct connection to it; `None` if its name is no address.
    pub server: Option<Server>,
    /// Its process, if that runs on this host and can be seen.
    pub pid: Option<u32>,
}

impl FoundMember {
    /// Asks the server what it is, and looks for its process.
    async fn greet(given: &Server, fellow: Fellow, proc_fs: &ProcFs) -> Self {
        let Fellow { name, shard } = fellow;
        let mut found = Self {
            name,
            shard,
            hello: Err(String::new()),
            server: None,
            pid: None,
        };
        match given.member(&found.name, SELECTION_LIMIT) {
            Ok(server) => {
                let hello = Hello::ask(&mut Asker::new(&server, None, PATIENCE)).await;
                found.hello = hello.map_err(|why| {
                    let seen = server.failure_seen().filter(|_| why.is_late());
                    seen.unwrap_or_else(|| why.to_string())
                });
                // The name by which its fellows know it, rather than one that was typed.
                let own_name = found.hello.as_ref().ok().and_then(|hello| hello.me.clone());
                found.name = own_name.unwrap_or(found.name);
                found.pid = server.local_process(proc_fs).await.ok();
                found.server = Some(server);
            }
            Err(error) => found.hello = Err(error.to_string()),
        }
        found
    }

    /// Returns its state; that of one that did not answer is [`MemberState::Other`].
    pub fn state(&self) -> MemberState {
        let hello = self.hello.as_ref();
        hello.map_or(MemberState::Other, |hello| hello.state)
    }

    /// Returns whether it answers and keeps data.
    pub fn keeps_data(&self) -> bool {
        let keeps_none = [MemberState::Router, MemberState::Arbiter];
        self.hello.is_ok() && !keeps_none.contains(&self.state())
    }

    /// Returns the name of its replica set.
    fn set(&self) -> Option<&str> {
        self.hello.as_ref().ok()?.set.as_deref()
    }

    /// Returns the order in which members of one deployment are preferred for an examination, the lowest first:
    /// on this host, where process and disks can be examined; then a secondary, which has the data and holds up
    /// no writer.
    fn preference(&self) -> (bool, u8) {
        let state = match self.state() {
            MemberState::Secondary => 0,
            MemberState::Primary | MemberState::Standalone | MemberState::Router => 1,
            MemberState::Arbiter => 3,
            _ => 2,
        };
        (self.pid.is_none(), state)
    }
}

impl FoundDeployment {
    /// Finds all servers of the deployment; takes at most some twenty seconds.
    ///
    /// A connection string with one address means that server alone, unless it names a replica set or the
    /// server is a router.
    ///
    /// # Errors
    /// Fails if the connection string is malformed, or none of the servers that it names answers or belongs to the
    /// replica set that it names.
    pub async fn find(uri: &str, proc_fs: &ProcFs) -> Result<Self, ServerError> {
        let given = Server::unasked(uri).await?;
        let seeds = given.seeds();
        if given.is_load_balanced() || seeds.is_empty() {
            return Self::behind_balancer(uri, proc_fs).await;
        }
        let is_one_server = given.names_one_server();
        if let ([name], true) = (seeds.as_slice(), is_one_server) {
            given.member(name, SELECTION_LIMIT)?.ping().await?;
        }
        let seeds = seeds.into_iter().map(Fellow::named);
        let seeds = greet(&given, seeds.collect(), proc_fs).await;
        if !is_one_server && seeds.iter().all(|seed| seed.hello.is_err()) {
            // This gives the reason why nobody answers.
            given.ping().await?;
        }
        let seeds = of_named_set(&given, seeds)?;
        check_one_set(&given, &seeds)?;
        Ok(Self::of(&given, seeds, is_one_server, proc_fs).await)
    }

    async fn behind_balancer(uri: &str, proc_fs: &ProcFs) -> Result<Self, ServerError> {
        let server = Server::connect(uri).await?;
        let hello = Hello::ask(&mut Asker::new(&server, None, PATIENCE)).await;
        let found = FoundMember {
            name: server.shown_uri(),
            shard: None,
            hello: hello.map_err(|why| why.to_string()),
            pid: server.local_process(proc_fs).await.ok(),
            server: Some(server.clone()),
        };
        Ok(Self::of(&server, vec![found], true, proc_fs).await)
    }

    /// Finds the rest of the deployment from those that the connection string names.
    async fn of(
        given: &Server,
        seeds: Vec<FoundMember>,
        is_one_server: bool,
        proc_fs: &ProcFs,
    ) -> Self {
        let (routers, members): (Vec<_>, Vec<_>) = seeds
            .into_iter()
            .partition(|seed| seed.state() == MemberState::Router);
        let mut found = Self {
            kind: Deployment::Standalone,
            is_one_server: is_one_server && routers.is_empty(),
            routers,
            members,
            missing: Vec::new(),
        };
        if let Some(router) = found.router() {
            let mut asker = Asker::new(router, None, PATIENCE);
            found.kind = Deployment::Sharded;
            let members = shards(&mut asker).await;
            found.missing = asker.missing;
            found.members = greet(given, members, proc_fs).await;
        } else if found.members.iter().any(|member| member.set().is_some()) {
            found.kind = Deployment::ReplicaSet;
        }
        if !found.is_one_server {
            found.add_fellows(given, proc_fs).await;
        }
        found
    }

    /// Adds the members that a connection string or a shard's host list need not name: those that the others
    /// announce, and hidden ones, which only `replSetGetStatus` shows.
    async fn add_fellows(&mut self, given: &Server, proc_fs: &ProcFs) {
        let mut known: HashSet<String> = HashSet::new();
        self.members
            .retain(|member| known.insert(member.name.clone()));
        let mut others = Vec::new();
        for of_set in self.members.chunk_by(|a, b| a.shard == b.shard) {
            let announced = of_set
                .iter()
                .filter_map(|member| member.hello.as_ref().ok());
            let announced = announced.flat_map(|hello| hello.members().cloned());
            let hidden = match of_set.iter().find(|m| m.set().is_some() && m.keeps_data()) {
                Some(FoundMember {
                    server: Some(server),
                    hello: Ok(hello),
                    ..
                }) => {
                    let status = SetStatus::ask(&mut Asker::new(server, None, PATIENCE)).await;
                    status.hidden_from(hello).cloned().collect()
                }
                _ => Vec::new(),
            };
            let shard = of_set.first().and_then(|member| member.shard.clone());
            let names = announced.chain(hidden);
            for name in names.filter(|name| known.insert(name.clone())) {
                let shard = shard.clone();
                others.push(Fellow { name, shard });
            }
        }
        let room = MEMBERS_MAX.saturating_sub(self.members.len());
        others.truncate(room);
        others.sort_unstable_by(|a, b| (&a.shard, &a.name).cmp(&(&b.shard, &b.name)));
        self.members.extend(greet(given, others, proc_fs).await);
        self.members.sort_by(|a, b| a.shard.cmp(&b.shard));
    }

    /// Returns a router; `None` unless it is a sharded cluster.
    pub fn router(&self) -> Option<&Server> {
        self.routers
            .iter()
            .find_map(|router| router.server.as_ref())
    }

    /// Returns the members that keep data and whose process is on this host.
    pub fn on_this_host(&self) -> impl Iterator<Item = &FoundMember> {
        let members = self.members.iter();
        members.filter(|member| member.pid.is_some() && member.keeps_data())
    }

    /// Returns the server to ask where only one is asked: of a sharded cluster a router; else the named server,
    /// or of several a member on this host rather than one elsewhere, and a secondary rather than a primary.
    ///
    /// # Errors
    /// Fails if none of them answers; `uri` is the connection string that led here.
    pub async fn preferred(&self, uri: &str) -> Result<Server, ServerError> {
        let all = match self.routers.is_empty() {
            true => &self.members,
            false => &self.routers,
        };
        // The one that was named has answered, even if it does not say what it is.
        let answers = all
            .iter()
            .filter(|member| self.is_one_server || member.hello.is_ok());
        let best = answers.min_by_key(|member| member.preference());
        match best.and_then(|member| member.server.clone()) {
            Some(server) => Ok(server),
            None => Server::connect(uri).await,
        }
    }
}

/// Leaves out those that do not belong to the replica set that the connection string names. Those that did not answer
/// may belong to it.
///
/// # Errors
/// Fails if none belongs to it that answered.
fn of_named_set(
    given: &Server,
    mut seeds: Vec<FoundMember>,
) -> Result<Vec<FoundMember>, ServerError> {
    let check = |seed: &FoundMember| seed.hello.as_ref().map_or(Ok(()), |h| given.check_set(h));
    let is_of_set = |seed: &FoundMember| check(seed).is_ok();
    match seeds.iter().any(|s| s.hello.is_ok() && is_of_set(s)) {
        true => seeds.retain(is_of_set),
        false => seeds.iter().try_for_each(check)?,
    }
    Ok(seeds)
}

/// Checks that all servers which a connection string names are of one replica set, as far as they answer.
///
/// # Errors
/// Fails if they are of several: their members are not each other's fellows.
fn check_one_set(given: &Server, seeds: &[FoundMember]) -> Result<(), ServerError> {
    let mut sets: BTreeMap<&str, &str> = BTreeMap::new();
    for seed in seeds {
        if let Some(set) = seed.set() {
            sets.entry(set).or_insert(&seed.name);
        }
    }
    if sets.len() < 2 {
        return Ok(());
    }
    let of_sets = sets.iter().map(|(set, name)| format!("{name} of {set}"));
    let of_sets: Vec<String> = of_sets.collect();
    Err(ServerError::Unsuitable {
        uri: given.shown_uri(),
        why: format!(
            "it names members of several replica sets: {}",
            of_sets.join(", ")
        ),
        remedy: "name members of one set only, or the mongos of the cluster whose shards they are"
            .into(),
    })
}

/// Asks all of them at once.
async fn greet(given: &Server, fellows: Vec<Fellow>, proc_fs: &ProcFs) -> Vec<FoundMember> {
    let greeted = fellows.into_iter().take(MEMBERS_MAX);
    let greeted = greeted.map(|fellow| FoundMember::greet(given, fellow, proc_fs));
    join_all(greeted).await
}

/// Connects directly to the server that [`FoundDeployment::preferred`] names.
///
/// # Errors
/// Fails if no server answers.
pub async fn choose_member(uri: &str, proc_fs: &ProcFs) -> Result<Server, ServerError> {
    let found = FoundDeployment::find(uri, proc_fs).await?;
    found.preferred(uri).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(state: MemberState, pid: Option<u32>) -> FoundMember {
        FoundMember {
            name: "a:1".into(),
            shard: None,
            hello: Ok(Hello {
                state,
                ..Hello::default()
            }),
            server: None,
            pid,
        }
    }

    fn of_set(name: &str, set: Option<&str>) -> FoundMember {
        FoundMember {
            name: name.into(),
            hello: Ok(Hello {
                set: set.map(String::from),
                ..Hello::default()
            }),
            ..member(MemberState::Primary, None)
        }
    }

    #[test]
    fn here_before_elsewhere_and_secondaries_before_primaries() {
        let (primary, secondary) = (MemberState::Primary, MemberState::Secondary);
        let here = Some(7);
        let best = |members: [FoundMember; 2]| {
            let best = members.into_iter().min_by_key(FoundMember::preference);
            let best = best.unwrap();
            (best.state(), best.pid)
        };
        assert_eq!(
            best([member(primary, None), member(secondary, None)]),
            (secondary, None)
        );
        assert_eq!(
            best([member(secondary, None), member(primary, here)]),
            (primary, here)
        );
    }

    #[tokio::test]
    async fn servers_of_other_sets_than_the_named_one_are_refused() {
        let away = || FoundMember {
            name: "away".into(),
            hello: Err("it hangs".into()),
            ..member(MemberState::Other, None)
        };
        let (right, wrong, alone) = (
            || of_set("right", Some("rs0")),
            || of_set("wrong", Some("rs1")),
            || of_set("alone", None),
        );
        let uri = "mongodb://127.0.0.1:1/";
        let any = Server::unasked(uri).await.unwrap();
        let seeds = of_named_set(&any, vec![right(), wrong(), alone()]).unwrap();
        assert_eq!(seeds.len(), 3, "no set was named");
        for options in ["replicaSet=rs0", "replicaSet=rs0&directConnection=true"] {
            let given = Server::unasked(&format!("{uri}?{options}")).await.unwrap();
            let seeds = of_named_set(&given, vec![wrong(), away(), right(), alone()]).unwrap();
            let names: Vec<&str> = seeds.iter().map(|seed| seed.name.as_str()).collect();
            assert_eq!(names, ["away", "right"]);
            for (seed, words) in [
                (wrong(), "belongs to the replica set rs1, not to rs0"),
                (
                    alone(),
                    "does not belong to a replica set, and the connection string names rs0",
                ),
            ] {
                let error = of_named_set(&given, vec![away(), seed]).unwrap_err();
                assert!(matches!(error, ServerError::Unsuitable { .. }), "{error}");
                assert!(error.to_string().contains(words), "{error}");
            }
            assert_eq!(of_named_set(&given, vec![away()]).unwrap().len(), 1);
        }
    }

    #[tokio::test]
    async fn members_of_two_sets_are_no_deployment() {
        let given = Server::unasked("mongodb://127.0.0.1:1/").await.unwrap();
        let (a, b) = (of_set("a:1", Some("rs0")), of_set("b:1", Some("rs0")));
        let router = of_set("m:1", None);
        assert!(check_one_set(&given, &[a.clone(), b, router]).is_ok());
        let error = check_one_set(&given, &[a, of_set("c:1", Some("rs1"))]).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("a:1 of rs0, c:1 of rs1"), "{said}");
    }

    #[test]
    fn those_without_data_are_not_examined() {
        let found = FoundDeployment {
            kind: Deployment::ReplicaSet,
            is_one_server: false,
            routers: Vec::new(),
            members: vec![
                member(MemberState::Primary, Some(1)),
                member(MemberState::Arbiter, Some(2)),
                member(MemberState::Secondary, None),
                FoundMember {
                    hello: Err("it hangs".into()),
                    ..member(MemberState::Secondary, Some(4))
                },
            ],
            missing: Vec::new(),
        };
        let pids: Vec<_> = found.on_this_host().map(|member| member.pid).collect();
        assert_eq!(pids, [Some(1)]);
    }
}
