//! Finds the servers that belong to a server: the members of its replica set, the shards behind a router.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use seekscope_run::document::Limitation;
use seekscope_run::units::format_list;
use seekscope_run::{Deployment, MemberState};

use super::asking::{Asker, NoAnswer};
use crate::hello::{Hello, MEMBERS_MAX, checked_name};
use crate::replies::{at, number};
use crate::server::{Server, ServerError};

const SHARD_NAME_MAX_CHARS: usize = 300;

/// Another server of the deployment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fellow {
    /// `host:port`.
    pub(super) name: String,
    pub(super) shard: Option<String>,
}

impl Fellow {
    /// Returns a server outside any shard.
    pub(super) fn named(name: String) -> Self {
        Self { name, shard: None }
    }
}

/// The contents of `replSetGetStatus`, by member name.
#[derive(Debug, Default, PartialEq)]
pub struct SetStatus {
    /// The state of the member that was asked; `None` if it did not report one.
    pub(super) own_state: Option<MemberState>,
    states: HashMap<String, MemberState>,
    lags_s: HashMap<String, f64>,
    /// The members from which others copy or take their changes, by the names of those.
    sources: HashMap<String, String>,
    own_name: Option<String>,
    /// Bytes copied and in total, for the member that was asked.
    pub(super) initial_sync: Option<(u64, u64)>,
}

impl Hello {
    /// Asks the server; servers before 4.4.2 know the command by another name.
    pub(super) async fn ask(asker: &mut Asker) -> Result<Self, NoAnswer> {
        let reply = match asker.ask("admin", doc! { "hello": 1 }).await {
            Err(error) if error.is_unknown() => asker.ask("admin", doc! { "isMaster": 1 }).await?,
            answer => answer?,
        };
        Ok(Self::read(&reply))
    }

    pub(super) fn deployment(&self) -> Deployment {
        match self.state {
            MemberState::Router => Deployment::Sharded,
            _ if self.set.is_some() => Deployment::ReplicaSet,
            _ => Deployment::Standalone,
        }
    }

    /// Returns all members of its set, including arbiters.
    pub(super) fn members(&self) -> impl Iterator<Item = &String> {
        self.data_members.iter().chain(&self.arbiters)
    }

    /// Returns whether others replicate with it. A set of one that knows itself by another name than ours is
    /// still a set of one, and how far its oplog reaches back matters to nobody.
    pub(super) fn has_company(&self) -> bool {
        self.set.is_some() && self.data_members.len() + self.arbiters.len() != 1
    }

    /// Returns the other members of its set, hidden ones too if `status` names them; `own` is its name if it does not
    /// give one itself.
    pub(super) fn fellows(&self, own: &str, status: &SetStatus) -> Vec<Fellow> {
        let me = self.me.as_deref().unwrap_or(own);
        let others = self.members().chain(status.hidden_from(self));
        others
            .filter(|host| *host != me && self.has_company())
            .map(|host| Fellow::named(host.clone()))
            .collect()
    }
}

/// Time for asking whether a server is a router, and which shards are behind it.
const ROUTER_TIME: Duration = Duration::from_secs(5);
/// The number of members named in a message, so that it stays readable.
const MEMBERS_SHOWN: usize = 12;

/// Refuses a router (mongos): whatever needs data files, or the disk below them, has to be asked of a member of
/// a shard, and the error names them. A server that does not say what it is is accepted.
pub async fn refuse_router(server: &Server) -> Result<(), ServerError> {
    let mut asker = Asker::new(server, None, ROUTER_TIME);
    match Hello::ask(&mut asker).await {
        Ok(hello) if hello.is_router() => {}
        _ => return Ok(()),
    }
    let members = all_of_shards(&mut asker).await;
    Err(ServerError::Unsuitable {
        uri: server.shown_uri(),
        why: "it is a mongos, which keeps no data".into(),
        remedy: members_to_name(&members),
    })
}

fn members_to_name(members: &[Fellow]) -> String {
    if members.is_empty() {
        return "name a member of one of its shards instead (sh.status() in mongosh lists them)"
            .into();
    }
    let name = |member: &Fellow| {
        let shard = member.shard.as_deref().unwrap_or("a shard");
        format!("{} ({shard})", member.name)
    };
    let names: Vec<String> = members.iter().map(name).collect();
    format!(
        "name a member of a shard instead: {}",
        format_list(&names, MEMBERS_SHOWN, ", ")
    )
}

/// Returns the members of all shards, as known to a router. If there are too many, the rest is noted.
pub(super) async fn shards(asker: &mut Asker) -> Vec<Fellow> {
    let mut members = all_of_shards(asker).await;
    let left_out = members.split_off(members.len().min(MEMBERS_MAX));
    if !left_out.is_empty() {
        asker.missing.push(too_many(left_out.len()));
    }
    members
}

/// Returns the names of the shards that these members belong to.
pub(super) fn shard_names(members: &[Fellow]) -> Vec<String> {
    let names: BTreeSet<&String> = members.iter().filter_map(|m| m.shard.as_ref()).collect();
    names.into_iter().cloned().collect()
}

fn too_many(left_out: usize) -> Limitation {
    Limitation {
        what: format!("{left_out} members of shards were left out"),
        why: format!("the cluster has very many members, and at most {MEMBERS_MAX} are examined"),
        remedy: "to examine one of the others, name it".into(),
    }
}

async fn all_of_shards(asker: &mut Asker) -> Vec<Fellow> {
    if let Ok(reply) = asker.ask("admin", doc! { "listShards": 1 }).await {
        let shards = reply.get_array("shards").into_iter().flatten();
        let named = shards.filter_map(|shard| {
            let shard = shard.as_document()?;
            Some((shard.get_str("_id").ok()?, shard.get_str("host").ok()?))
        });
        return members_of_shards(named);
    }
    let map = asker
        .ask_or_note("admin", doc! { "getShardMap": 1 }, "the list of shards")
        .await;
    let named = map.get_document("map").into_iter().flatten();
    let named = named.filter_map(|(shard, host)| Some((shard.as_str(), host.as_str()?)));
    members_of_shards(named.filter(|(shard, _)| *shard != "config"))
}

/// Returns the members from pairs of (name, `set/host:port,host:port`).
fn members_of_shards<'a>(shards: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Fellow> {
    let mut fellows: Vec<Fellow> = Vec::new();
    let mut known = HashSet::new();
    for (shard, text) in shards {
        let hosts = text.split_once('/').map_or(text, |(_, hosts)| hosts);
        for name in hosts.split(',').filter_map(checked_name) {
            // The map also names a shard by its set and by each of its hosts.
            if known.insert(name.clone()) {
                fellows.push(Fellow {
                    name,
                    shard: Some(shard.chars().take(SHARD_NAME_MAX_CHARS).collect()),
                });
            }
        }
    }
    fellows
}

/// Returns the members of the server's set and their states, as the server sees them.
///
/// # Errors
/// It is in no replica set, refuses the question, or does not answer within some seconds.
pub async fn set_status(server: &Server) -> Result<SetStatus, ServerError> {
    let command = doc! { "replSetGetStatus": 1 };
    let reply = server.command_in_time("admin", command).await?;
    Ok(SetStatus::read(&reply))
}

/// Returns how far a secondary is behind its primary, seconds; `None` for a server that is no secondary.
///
/// # Errors
/// It is in no replica set, refuses the question, or does not answer within some seconds.
pub async fn replication_lag_s(server: &Server) -> Result<Option<f64>, ServerError> {
    let status = set_status(server).await?;
    Ok(status.own_name().and_then(|name| status.lag_s(name)))
}

/// Returns the members of the server's set that keep data, hidden ones among them, which no reply to `hello`
/// names.
///
/// # Errors
/// It is in no replica set, refuses the question, or does not answer within some seconds.
pub async fn members_with_data(server: &Server) -> Result<Vec<String>, ServerError> {
    let status = set_status(server).await?;
    let keeps_data = |name: &&String| status.state(name) != Some(MemberState::Arbiter);
    Ok(status.names().filter(keeps_data).cloned().collect())
}

impl SetStatus {
    /// Asks a member of a set.
    pub(super) async fn ask(asker: &mut Asker) -> Self {
        let what = "how far members lag behind";
        let command = doc! { "replSetGetStatus": 1, "initialSync": 1 };
        Self::read(&asker.ask_or_note("admin", command, what).await)
    }

    pub(super) fn read(reply: &Document) -> Self {
        let own_state = reply.get("myState").and_then(number);
        let mut status = Self {
            own_state: own_state.map(|number| state_of(Some(number))),
            ..Self::default()
        };
        let members = reply.get_array("members").into_iter().flatten();
        let members: Vec<&Document> = members.filter_map(Bson::as_document).collect();
        let date_ms = |member: &Document, name: &str| {
            let date = member.get_datetime(name).ok()?;
            Some(date.timestamp_millis())
        };
        let applied_ms = |member: &Document| date_ms(member, "optimeDate");
        // A majority waits for what is in the journal of its members, which may be behind what they have applied.
        let durable_ms = |member: &Document| {
            let durable = date_ms(member, "optimeDurableDate").filter(|ms| *ms > 0);
            applied_ms(member).map(|applied| durable.map_or(applied, |ms| ms.min(applied)))
        };
        let state = |member: &Document| state_of(member.get("state").and_then(number));
        let primary = members.iter().find(|m| state(m) == MemberState::Primary);
        let primary_ms = primary.and_then(|member| applied_ms(member));
        for member in members.iter().take(MEMBERS_MAX) {
            let Some(name) = member.get_str("name").ok().and_then(checked_name) else {
                continue;
            };
            status.states.insert(name.clone(), state(member));
            if member.get_bool("self").is_ok_and(|is_self| is_self) {
                status.own_name = Some(name.clone());
            }
            if let Some(source) = member.get_str("syncSourceHost").ok().and_then(checked_name) {
                status.sources.insert(name.clone(), source);
            }
            let is_copy = state(member) == MemberState::Secondary;
            if let (true, Some(primary), Some(own)) = (is_copy, primary_ms, durable_ms(member)) {
                let behind_ms = primary.saturating_sub(own).max(0);
                status.lags_s.insert(name, behind_ms as f64 / 1e3);
            }
        }
        let of_sync = |name| at(reply, &["initialSyncStatus", name]).and_then(number);
        status.initial_sync = of_sync("approxTotalBytesCopied").zip(of_sync("approxTotalDataSize"));
        status
    }

    /// Returns the names (`host:port`) of all members, hidden ones among them.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.states.keys()
    }

    /// Returns the names of members that `hello` does not announce, which are hidden ones; none where the two name members
    /// differently, as in a set whose members have other names for clients.
    pub(super) fn hidden_from<'a>(&'a self, hello: &'a Hello) -> impl Iterator<Item = &'a String> {
        let is_known = |name: &String| self.states.contains_key(name);
        let agree = hello.members().all(is_known);
        let is_announced = |name: &String| hello.members().any(|announced| announced == name);
        self.names()
            .filter(move |name| agree && !is_announced(name))
    }

    /// Returns the state of the member of that name; `None` if there is no such member.
    pub fn state(&self, name: &str) -> Option<MemberState> {
        self.states.get(name).copied()
    }

    /// Returns the name of the member that was asked.
    pub fn own_name(&self) -> Option<&str> {
        self.own_name.as_deref()
    }

    /// Returns the name of the member that the one of that name copies from or takes its changes from; `None` while
    /// it has none.
    pub fn source(&self, name: &str) -> Option<&str> {
        self.sources.get(name).map(String::as_str)
    }

    pub(super) fn lag_s(&self, name: &str) -> Option<f64> {
        self.lags_s.get(name).copied()
    }
}

/// Returns the state for a number of `replSetGetStatus.members[].state` (manual, "Replica Set Member States").
fn state_of(number: Option<u64>) -> MemberState {
    match number {
        Some(0) => MemberState::Startup,
        Some(1) => MemberState::Primary,
        Some(2) => MemberState::Secondary,
        Some(3) => MemberState::Recovering,
        Some(5) => MemberState::InitialSync,
        Some(7) => MemberState::Arbiter,
        Some(8) => MemberState::Down,
        Some(9) => MemberState::Rollback,
        Some(10) => MemberState::Removed,
        _ => MemberState::Other,
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::DateTime;

    use super::*;

    fn names(fellows: &[Fellow]) -> Vec<&str> {
        fellows.iter().map(|fellow| fellow.name.as_str()).collect()
    }

    #[test]
    fn hidden_members_are_those_that_only_the_status_names() {
        let named = |name: &str| doc! { "name": name, "state": 2 };
        let members = ["a:27017", "b:27017", "hidden:27017"].map(named).to_vec();
        let status = SetStatus::read(&doc! { "members": members });
        let of = |hosts: [&str; 2]| {
            let hello = Hello::read(&doc! { "setName": "rs0", "hosts": hosts.to_vec() });
            let hidden = status.hidden_from(&hello);
            hidden.cloned().collect::<Vec<String>>()
        };
        assert_eq!(of(["a:27017", "b:27017"]), ["hidden:27017"]);
        let for_clients = of(["db1.example:27017", "db2.example:27017"]);
        assert_eq!(for_clients, Vec::<String>::new());
    }

    #[test]
    fn fellows_are_the_other_members() {
        let router = doc! { "isWritablePrimary": true, "msg": "isdbgrid" };
        assert_eq!(Hello::read(&router).deployment(), Deployment::Sharded);
        let secondary = doc! {
            "setName": "rs0", "isWritablePrimary": false, "secondary": true, "me": "b:27017",
            "hosts": ["a:27017", "b:27017", "mongodb://x@y", 5], "arbiters": ["c:27017"],
        };
        let hello = Hello::read(&secondary);
        assert_eq!(
            (hello.state, hello.deployment()),
            (MemberState::Secondary, Deployment::ReplicaSet)
        );
        assert_eq!(
            names(&hello.fellows("127.0.0.1:27017", &SetStatus::default())),
            ["a:27017", "c:27017"]
        );
        let single = doc! { "setName": "r", "ismaster": true, "hosts": ["localhost:1"] };
        let alone = Hello::read(&single).fellows("127.0.0.1:1", &SetStatus::default());
        assert_eq!(alone, []);
    }

    #[test]
    fn members_of_a_cluster() {
        let shards = [
            ("s1", "rs1/a:1,b:1"),
            ("s2", "c:1"),
            ("rs1/a:1,b:1", "rs1/a:1,b:1"),
            ("evil", "x/user:p@h,d:1"),
        ];
        let fellows = members_of_shards(shards.into_iter());
        assert_eq!(names(&fellows), ["a:1", "b:1", "c:1", "d:1"]);
        assert_eq!(fellows[1].shard.as_deref(), Some("s1"));
        let text = members_to_name(&fellows[..2]);
        assert!(text.ends_with("instead: a:1 (s1), b:1 (s1)"), "{text}");
        let many = vec![fellows[0].clone(); MEMBERS_SHOWN + 3];
        assert!(members_to_name(&many).ends_with("and 3 more"));
        assert!(members_to_name(&[]).contains("sh.status()"));
    }

    #[test]
    fn lags_and_an_initial_sync() {
        let at_s = |s: i64| DateTime::from_millis(s * 1_000);
        let status = SetStatus::read(&doc! {
            "myState": 5,
            "members": [
                { "name": "a:1", "state": 1, "optimeDate": at_s(100) },
                { "name": "b:1", "state": 2, "optimeDate": at_s(88) },
                { "name": "c:1", "state": 2, "optimeDate": at_s(101) },
                { "name": "e:1", "state": 2, "optimeDate": at_s(100), "optimeDurableDate": at_s(81) },
                { "name": "d:1", "state": 5, "optimeDate": at_s(0) },
                { "name": "e:1", "state": 7 },
            ],
            "initialSyncStatus": { "approxTotalDataSize": 1000_i64, "approxTotalBytesCopied": 250 },
        });
        assert_eq!(status.lag_s("b:1"), Some(12.0));
        assert_eq!(status.lag_s("c:1"), Some(0.0));
        assert_eq!(status.lag_s("e:1"), Some(19.0));
        assert_eq!(status.lag_s("d:1"), None);
        assert_eq!(status.state("e:1"), Some(MemberState::Arbiter));
        assert_eq!(status.state("d:1"), Some(MemberState::InitialSync));
        assert_eq!(status.own_state, Some(MemberState::InitialSync));
        assert_eq!(status.initial_sync, Some((250, 1000)));
        assert_eq!(
            SetStatus::read(&doc! { "members": 5 }),
            SetStatus::default()
        );
    }
}
