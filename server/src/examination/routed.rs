//! Finds the servers behind a router. A mongos keeps no data, so the CPU and disk use of its process says
//! nothing about the work, and its shards are asked instead.

use std::time::Duration;

use futures_util::future::join_all;
use seekscope_run::MemberState;
use seekscope_run::document::Limitation;

use super::asking::Asker;
use super::deployment::{Fellow, shards};
use crate::hello::Hello;
use crate::sampling::server_status;
use crate::server::Server;

/// Time for asking the router, and then again for asking all members of its shards at once.
const TIME: Duration = Duration::from_secs(5);

/// The members of the shards behind a router, as far as they could be found.
#[derive(Debug, Clone)]
pub struct Routed {
    /// Each shard with its members, e.g. `s1 (db1:27018, db2:27018)`.
    pub shards: Vec<String>,
    /// All of these members, as `host:port`.
    pub members: Vec<String>,
    /// The members that take their shards' writes and let their counters be read, by `host:port`.
    pub primaries: Vec<(String, Server)>,
    /// One limitation for each shard whose counters nobody provides.
    pub missing: Vec<Limitation>,
}

impl Routed {
    /// Finds the members; `None` for a server that keeps data itself, or does not say what it is.
    pub async fn find(server: &Server) -> Option<Self> {
        let mut asker = Asker::new(server, None, TIME);
        let hello = Hello::ask(&mut asker).await.ok()?;
        if !hello.is_router() {
            return None;
        }
        let members = shards(&mut asker).await;
        let asked = members.iter().map(|member| primary(server, member));
        let asked = join_all(asked).await;
        let mut routed = Self {
            shards: Vec::new(),
            members: members.iter().map(|member| member.name.clone()).collect(),
            primaries: Vec::new(),
            missing: asker.missing,
        };
        let told: Vec<(&Fellow, Result<Option<Server>, String>)> =
            members.iter().zip(asked).collect();
        for of_shard in told.chunk_by(|a, b| a.0.shard == b.0.shard) {
            routed.add(of_shard);
        }
        Some(routed)
    }

    /// Adds a shard, given its members and the answer of each.
    fn add(&mut self, members: &[(&Fellow, Result<Option<Server>, String>)]) {
        let shard = members.first().and_then(|(member, _)| member.shard.clone());
        let shard = shard.unwrap_or_else(|| "a shard".into());
        let names: Vec<&str> = members.iter().map(|(m, _)| m.name.as_str()).collect();
        self.shards.push(format!("{shard} ({})", names.join(", ")));
        let primary = members.iter().find_map(|(member, told)| {
            let server = told.as_ref().ok()?.as_ref()?;
            Some((member.name.clone(), server.clone()))
        });
        if let Some(primary) = primary {
            self.primaries.push(primary);
            return;
        }
        let refused = members.iter().find_map(|(_, told)| told.as_ref().err());
        self.missing.push(Limitation {
            what: format!("the counters of the shard {shard} are not known"),
            why: refused
                .cloned()
                .unwrap_or_else(|| "none of its members says that it takes writes".into()),
            remedy: "use a login that its members know, from where they can be reached".into(),
        });
    }
}

/// Returns the member if it takes writes and lets its counters be read. An error says why it could not be
/// asked.
async fn primary(router: &Server, member: &Fellow) -> Result<Option<Server>, String> {
    let server = router.member(&member.name, TIME);
    let server = server.map_err(|error| error.to_string())?;
    let mut asker = Asker::new(&server, None, TIME);
    let hello = Hello::ask(&mut asker).await;
    let hello = hello.map_err(|why| why.to_string())?;
    if ![MemberState::Primary, MemberState::Standalone].contains(&hello.state) {
        return Ok(None);
    }
    let status = asker.ask("admin", server_status::command()).await;
    status.map_err(|why| why.to_string())?;
    Ok(Some(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_does_not_tell_is_named() {
        let fellow = |name: &str| Fellow {
            name: name.into(),
            shard: Some("s1".into()),
        };
        let (a, b) = (fellow("a:1"), fellow("b:1"));
        let mut routed = Routed {
            shards: Vec::new(),
            members: Vec::new(),
            primaries: Vec::new(),
            missing: Vec::new(),
        };
        routed.add(&[
            (&a, Ok(None)),
            (&b, Err("the login may not run hello".into())),
        ]);
        assert_eq!(routed.shards, ["s1 (a:1, b:1)"]);
        assert!(routed.primaries.is_empty());
        let [missing] = routed.missing.as_slice() else {
            panic!("{:?}", routed.missing);
        };
        assert!(missing.what.contains("s1") && missing.why.contains("login"));
    }
}
