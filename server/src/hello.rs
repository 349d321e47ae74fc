//! What a server says about itself before anybody has logged in.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};
use seekscope_run::MemberState;

use crate::replies::{at, number};
use crate::server::{Server, ServerError};

/// A cluster may have more; beyond these members are named and not asked.
pub(crate) const MEMBERS_MAX: usize = 200;
const NAME_MAX_BYTES: usize = 300;

/// The reply to `hello`, which servers before 4.4.2 know as `isMaster`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hello {
    /// What it is in its deployment.
    pub state: MemberState,
    /// The replica set that it is in.
    pub set: Option<String>,
    /// Its own name in the set.
    pub me: Option<String>,
    /// Members of its set that hold data, itself among them: `host:port`.
    pub data_members: Vec<String>,
    /// Members of its set that only vote.
    pub arbiters: Vec<String>,
    /// Whether it takes writes: as the primary of a set, alone or as a router.
    pub is_writable: bool,
    /// The newest version of the wire protocol that it speaks.
    pub wire_version: u64,
    /// Drawn anew by each process as it starts; unknown of servers before 4.4.
    pub process_id: Option<ObjectId>,
}

impl Hello {
    /// From the reply.
    pub fn read(reply: &Document) -> Self {
        let flag = |name: &str| reply.get_bool(name).unwrap_or(false);
        let text = |name: &str| reply.get_str(name).ok();
        let members = |lists: &[&str]| {
            let names = lists.iter().flat_map(|list| reply.get_array(list));
            let names = names.flatten().filter_map(Bson::as_str);
            names.filter_map(checked_name).take(MEMBERS_MAX).collect()
        };
        let is_writable = flag("isWritablePrimary") || flag("ismaster");
        let state = if text("msg") == Some("isdbgrid") {
            MemberState::Router
        } else if flag("arbiterOnly") {
            MemberState::Arbiter
        } else if flag("secondary") {
            MemberState::Secondary
        } else if !is_writable || flag("isreplicaset") {
            MemberState::Other
        } else if text("setName").is_some() {
            MemberState::Primary
        } else {
            MemberState::Standalone
        };
        let process_id = at(reply, &["topologyVersion", "processId"]);
        Self {
            state,
            set: text("setName").map(String::from),
            me: text("me").and_then(checked_name),
            data_members: members(&["hosts", "passives"]),
            arbiters: members(&["arbiters"]),
            is_writable,
            wire_version: reply.get("maxWireVersion").and_then(number).unwrap_or(0),
            process_id: process_id.and_then(Bson::as_object_id),
        }
    }

    /// A router (mongos) keeps no data itself.
    pub fn is_router(&self) -> bool {
        self.state == MemberState::Router
    }
}

impl Server {
    /// What it is to others, as it says.
    ///
    /// # Errors
    /// It refused, or did not answer within some seconds.
    pub async fn hello(&self) -> Result<Hello, ServerError> {
        let ask = |word: &str| self.command_in_time("admin", doc! { word: 1 });
        let reply = match ask("hello").await {
            Err(_) => ask("isMaster").await,
            reply => reply,
        };
        Ok(Hello::read(&reply?))
    }
}

/// A name that a server gave for another: nothing that could be taken for login or options.
pub(crate) fn checked_name(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    (!name.is_empty() && name.len() <= NAME_MAX_BYTES && name.chars().all(is_plain))
        .then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_servers_say_they_are() {
        let state = |reply: Document| Hello::read(&reply).state;
        let old = doc! { "ismaster": true, "maxWireVersion": 5, "readOnly": false, "ok": 1.0 };
        assert_eq!(Hello::read(&old).wire_version, 5);
        assert_eq!(state(old), MemberState::Standalone);
        let router = doc! { "isWritablePrimary": true, "msg": "isdbgrid" };
        assert_eq!(state(router), MemberState::Router);
        let starting = doc! { "isreplicaset": true, "ismaster": false, "secondary": false };
        assert_eq!(state(starting), MemberState::Other);
    }

    #[test]
    fn a_set_names_its_members() {
        let hello = Hello::read(
            &doc! { "hosts": ["a:1", "b:2"], "passives": ["c:3"], "arbiters": ["d:4"] },
        );
        assert_eq!(hello.data_members, ["a:1", "b:2", "c:3"]);
        assert_eq!(hello.arbiters, ["d:4"]);
    }

    #[test]
    fn answers_are_not_trusted() {
        let id = ObjectId::new();
        let told = Hello::read(&doc! { "topologyVersion": { "processId": id, "counter": 6_i64 } });
        assert_eq!(told.process_id, Some(id));
        let odd = doc! {
            "topologyVersion": { "processId": 5 }, "hosts": ["mongodb://x@y", 5], "passives": 1,
            "maxWireVersion": "x", "setName": 7, "me": "a:1/?tls=true",
        };
        assert_eq!(Hello::read(&odd).data_members, [""; 0]);
        assert_eq!(Hello::read(&odd), Hello::read(&doc! {}));
    }
}
