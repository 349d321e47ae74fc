//! Chooses the one server of a deployment that is examined.

use std::time::Duration;

use futures_util::future::join_all;
use seekscope_run::MemberState;

use super::asking::Asker;
use crate::hello::Hello;
use crate::process::ProcFs;
use crate::server::{SELECTION_LIMIT, Server, ServerError};

/// Time limit for each server to say what it is; all are asked at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// If a set names more, the rest is not considered: a set has at most 50.
const CANDIDATES_MAX: usize = 50;

/// Connects directly to the server that should be examined.
///
/// If the connection string names one server, it is that one. Of several, one on this host is preferred, since
/// its process and disks can be examined; then a secondary, since it has the data and no writers wait for it;
/// then any that answers. Takes at most about ten seconds.
pub async fn choose_member(uri: &str, proc_fs: &ProcFs) -> Result<Server, ServerError> {
    let given = Server::unasked(uri).await?;
    if given.is_load_balanced() {
        return Server::connect(uri).await;
    }
    if let [(host, port)] = given.addresses()
        && !uri.starts_with("mongodb+srv://")
    {
        let one = given.member(&address(host, *port), SELECTION_LIMIT)?;
        one.ping().await?;
        return Ok(one);
    }
    let seeds = given.addresses().iter();
    let names: Vec<String> = seeds.map(|(host, port)| address(host, *port)).collect();
    if names.is_empty() {
        return Server::connect(uri).await;
    }
    let mut candidates = greet(&given, &names, proc_fs).await;
    // The string need not name all members.
    let announced = candidates.iter().flat_map(|c| c.hello.members().cloned());
    let mut others: Vec<String> = announced.filter(|host| !names.contains(host)).collect();
    others.sort_unstable();
    others.dedup();
    candidates.extend(greet(&given, &others, proc_fs).await);
    let best = candidates.into_iter().min_by_key(Candidate::rank);
    match best {
        Some(candidate) => Ok(candidate.server),
        // This gives the reason why nobody answers.
        None => Server::connect(uri).await,
    }
}

/// A server that answered.
struct Candidate {
    server: Server,
    hello: Hello,
    is_here: bool,
}

impl Candidate {
    /// Returns the rank: the lowest is chosen, and of equal ones the first that was named.
    fn rank(&self) -> (bool, u8) {
        let state = match self.hello.state {
            MemberState::Secondary => 0,
            MemberState::Primary | MemberState::Standalone | MemberState::Router => 1,
            MemberState::Other => 2,
            MemberState::Arbiter => 3,
        };
        (!self.is_here, state)
    }
}

async fn greet(given: &Server, names: &[String], proc_fs: &ProcFs) -> Vec<Candidate> {
    let questions = names.iter().take(CANDIDATES_MAX).map(|name| async move {
        let server = given.member(name, SELECTION_LIMIT).ok()?;
        let hello = Hello::ask(&mut Asker::new(&server, None, PATIENCE))
            .await
            .ok()?;
        let is_here = server.local_process(proc_fs).await.is_ok();
        Some(Candidate {
            server,
            hello,
            is_here,
        })
    });
    join_all(questions).await.into_iter().flatten().collect()
}

/// Returns `host:port`, with brackets around an IPv6 address.
pub(super) fn address(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn here_before_elsewhere_and_secondaries_before_primaries() {
        let server = Server::unasked("mongodb://127.0.0.1:1").await.unwrap();
        let candidate = |state, is_here| Candidate {
            server: server.clone(),
            hello: Hello {
                state,
                ..Hello::default()
            },
            is_here,
        };
        let best = |candidates: Vec<Candidate>| {
            let best = candidates.into_iter().min_by_key(Candidate::rank).unwrap();
            (best.hello.state, best.is_here)
        };
        let (primary, secondary) = (MemberState::Primary, MemberState::Secondary);
        assert_eq!(
            best(vec![candidate(primary, false), candidate(secondary, false)]),
            (secondary, false)
        );
        assert_eq!(
            best(vec![candidate(secondary, false), candidate(primary, true)]),
            (primary, true)
        );
        assert_eq!(address("::1", 7), "[::1]:7");
    }
}
