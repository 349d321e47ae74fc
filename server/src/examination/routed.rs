//! Finds the servers behind a router. A mongos keeps no data, so the CPU and disk use of its process says
//! nothing about the work, and its shards are asked instead.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use seekscope_run::MemberState;
use seekscope_run::document::Limitation;

use super::asking::Asker;
use super::discovery::{FoundDeployment, FoundMember};
use crate::hello::Hello;
use crate::process::ProcFs;
use crate::sampling::server_status;
use crate::server::{Server, ServerError};

/// Time for asking the router what it is, and then for asking all primaries for their counters at once.
const TIME: Duration = Duration::from_secs(5);

/// The shards behind a router, as far as they could be found.
#[derive(Debug, Clone)]
pub struct Routed {
    pub found: FoundDeployment,
    pub shards: Vec<RoutedShard>,
    /// What could not be found out, with one limitation for each shard whose counters nobody provides.
    pub missing: Vec<Limitation>,
}

/// One of them. It is shown with its members, e.g. `s1 (db1:27018, db2:27018)`.
#[derive(Debug, Clone)]
pub struct RoutedShard {
    pub name: String,
    /// Its members, as `host:port`.
    pub members: Vec<String>,
    /// The member that takes its writes and lets its counters be read.
    pub primary: Option<ShardPrimary>,
}

#[derive(Debug, Clone)]
pub struct ShardPrimary {
    /// `host:port`.
    pub name: String,
    /// A direct connection to it.
    pub server: Server,
}

impl Routed {
    /// Finds the shards; `None` for a server that keeps data itself, or does not say what it is. `uri` is the
    /// connection string that led to the server.
    ///
    /// # Errors
    /// Fails if the router no longer answers.
    pub async fn find(
        server: &Server,
        uri: &str,
        proc_fs: &ProcFs,
    ) -> Result<Option<Self>, ServerError> {
        let hello = Hello::ask(&mut Asker::new(server, None, TIME)).await;
        if !hello.is_ok_and(|hello| hello.is_router()) {
            return Ok(None);
        }
        let found = FoundDeployment::find(uri, proc_fs).await?;
        let by_shard = found.members.chunk_by(|a, b| a.shard == b.shard);
        let asked = join_all(by_shard.map(RoutedShard::ask)).await;
        let (shards, refused): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let missing = found.missing.iter().cloned();
        Ok(Some(Self {
            missing: missing.chain(refused.into_iter().flatten()).collect(),
            shards,
            found,
        }))
    }

    /// Returns the primaries whose counters can be read.
    pub fn primaries(&self) -> impl Iterator<Item = &ShardPrimary> {
        self.shards
            .iter()
            .filter_map(|shard| shard.primary.as_ref())
    }
}

impl RoutedShard {
    /// Looks for the primary among a shard's members; the limitation says why there is none.
    async fn ask(members: &[FoundMember]) -> (Self, Option<Limitation>) {
        let name = members.first().and_then(|member| member.shard.clone());
        let mut shard = Self {
            name: name.unwrap_or_else(|| "a shard".into()),
            members: members.iter().map(|member| member.name.clone()).collect(),
            primary: None,
        };
        let takes_writes = |member: &&FoundMember| {
            [MemberState::Primary, MemberState::Standalone].contains(&member.state())
        };
        let why = match members.iter().find(takes_writes) {
            Some(member) => match primary(member).await {
                Ok(primary) => {
                    shard.primary = Some(primary);
                    return (shard, None);
                }
                Err(why) => Some(why),
            },
            None => members.iter().find_map(|m| m.hello.as_ref().err()).cloned(),
        };
        let limitation = Limitation {
            what: format!("the counters of the shard {} are not known", shard.name),
            why: why.unwrap_or_else(|| "none of its members reports that it accepts writes".into()),
            remedy: "use a login that exists on its members, from a host that can reach them"
                .into(),
        };
        (shard, Some(limitation))
    }
}

impl fmt::Display for RoutedShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.members.join(", "))
    }
}

/// Returns a member whose counters can be read, or why they cannot.
async fn primary(member: &FoundMember) -> Result<ShardPrimary, String> {
    let server = member
        .server
        .clone()
        .ok_or("its name is not a valid address")?;
    let mut asker = Asker::new(&server, None, TIME);
    let status = asker.ask("admin", server_status::command()).await;
    status.map_err(|why| why.to_string())?;
    Ok(ShardPrimary {
        name: member.name.clone(),
        server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shard_that_does_not_tell_is_named() {
        let member = |name: &str, hello| FoundMember {
            name: name.into(),
            shard: Some("s1".into()),
            hello,
            server: None,
            pid: None,
        };
        let secondary = Hello {
            state: MemberState::Secondary,
            ..Hello::default()
        };
        let refused = Err("the login may not run hello".into());
        let members = [member("a:1", Ok(secondary)), member("b:1", refused)];
        let (shard, missing) = RoutedShard::ask(&members).await;
        assert_eq!(shard.to_string(), "s1 (a:1, b:1)");
        assert!(shard.primary.is_none());
        let missing = missing.unwrap();
        assert!(missing.what.contains("s1") && missing.why.contains("login"));
    }
}
