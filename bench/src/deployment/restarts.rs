//! Servers of a deployment that are killed, or stopped, and come back on the same port and data.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seekscope_run::MemberState;
use seekscope_server::{LocalServer, LocalServerOptions, Server, ServerKind, ServerRole};

use super::{Deployment, Member};

const WHOLE_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

/// A server between two starts.
#[derive(Debug)]
pub(super) struct Down {
    name: String,
    options: LocalServerOptions,
    /// Its place among all.
    place: usize,
}

impl Deployment {
    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let process = self.take(name)?;
        drop(process);
        Ok(())
    }

    /// SIGTERM, and waits until it has written its last checkpoint.
    pub async fn stop(&mut self, name: &str) -> Result<()> {
        let process = self.take(name)?;
        process.stop(STOP_LIMIT).await;
        Ok(())
    }

    /// Starts all that are down; their journals are recovered. Does not wait for elections.
    pub async fn start_again(&mut self) -> Result<()> {
        // Those that stood before the others get their places back first.
        self.down.sort_by_key(|one| one.place);
        while let Some(down) = self.down.first() {
            let process = LocalServer::start(&down.options).await;
            let process = process.with_context(|| format!("starting {} again", down.name))?;
            let Down {
                name,
                options,
                place,
            } = self.down.remove(0);
            let member = Member {
                name,
                process,
                options,
            };
            self.members.insert(place.min(self.members.len()), member);
        }
        Ok(())
    }

    /// The running member of this state; of several sets, that of the one at `turn`.
    pub async fn member_in(&self, wanted: MemberState, turn: usize) -> Result<Option<&Member>> {
        let mut found = Vec::new();
        for member in &self.members {
            let is_of_user = matches!(
                member.role(),
                ServerRole::Member(_) | ServerRole::ShardMember(_)
            );
            if is_of_user && state(member).await.ok() == Some(wanted) {
                found.push(member);
            }
        }
        Ok(match found.len() {
            0 => None,
            count => Some(found[turn % count]),
        })
    }

    /// Waits until each set has a primary that takes writes, and all its others follow it.
    pub async fn until_whole(&self) -> Result<()> {
        let until = Instant::now() + WHOLE_LIMIT;
        loop {
            let faults = self.faults().await;
            if faults.is_empty() {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "after {WHOLE_LIMIT:?}: {}",
                faults.join(", ")
            );
            tokio::time::sleep(POLL).await;
        }
    }

    async fn faults(&self) -> Vec<String> {
        let mut primaries: BTreeMap<&str, usize> = BTreeMap::new();
        let mut faults = Vec::new();
        for member in &self.members {
            let (ServerRole::Member(set)
            | ServerRole::ShardMember(set)
            | ServerRole::ConfigMember(set)) = member.role()
            else {
                continue;
            };
            if member.process.kind() == ServerKind::SecantusdRs {
                continue;
            }
            let primary = primaries.entry(set).or_default();
            match state(member).await {
                Ok(MemberState::Primary) => *primary += 1,
                Ok(MemberState::Secondary) => {}
                Ok(other) => faults.push(format!("{} is {other:?}", member.name)),
                Err(why) => faults.push(format!("{}: {why:#}", member.name)),
            }
        }
        let wrong = primaries.iter().filter(|(_, count)| **count != 1);
        faults.extend(wrong.map(|(set, count)| format!("{set} has {count} primaries")));
        faults
    }

    fn take(&mut self, name: &str) -> Result<LocalServer> {
        let place = self.members.iter().position(|one| one.name == name);
        let place = place.with_context(|| format!("{name} does not run"))?;
        let Member {
            name,
            process,
            options,
        } = self.members.remove(place);
        // Those that are down before it count, too.
        let place = place + self.down.iter().filter(|one| one.place <= place).count();
        self.down.push(Down {
            name,
            options,
            place,
        });
        Ok(process)
    }
}

async fn state(member: &Member) -> Result<MemberState> {
    let server = Server::connect(&member.process.uri()).await?;
    Ok(server.hello().await?.state)
}
