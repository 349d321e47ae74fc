//! What a server is: its own answers, and its process if that is on this host.

use std::path::Path;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_run::{TargetFacts, document::Limitation};
use tokio::time::timeout;

use super::{Server, ServerError};
use crate::examination::rights;
use crate::process::{ProcFs, ProcessError};
use crate::sampling::server_status;
use crate::{replies, tcp_listener};

/// Time limit for finding the server's process, which involves resolving names and reading all descriptors of
/// this host.
const LOCATING_LIMIT: Duration = Duration::from_secs(2);

/// What a server says about itself, and what it would not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    pub target: TargetFacts,
    /// One limitation for each fact that the user may not see or the server does not offer.
    pub missing: Vec<Limitation>,
}

impl Server {
    /// Returns the release, which the server tells anyone who asks.
    pub async fn version(&self) -> Result<Option<String>, ServerError> {
        let reply = self.command_in_time("admin", doc! { "buildInfo": 1 });
        Ok(replies::version(&reply.await?))
    }

    /// Returns what the server is. A command that is refused, or not answered within some seconds, leaves out
    /// its facts and is listed as missing.
    pub async fn facts(&self, proc_fs: &ProcFs) -> ServerFacts {
        let mut missing = Vec::new();
        let what = "the server's version";
        let build = self.ask(doc! { "buildInfo": 1 }, what, &mut missing).await;
        let what = "the configured data directory";
        let options = doc! { "getCmdLineOpts": 1 };
        let options = self.ask(options, what, &mut missing).await;
        let what = "cache size and process number";
        let status = self.ask(server_status::command(), what, &mut missing).await;
        let mut target = self.target_facts(&build, &options, &status);
        missing.extend(self.locate(&mut target, proc_fs).await.err());
        ServerFacts { target, missing }
    }

    /// Returns the contents of the replies to `buildInfo`, `getCmdLineOpts` and `serverStatus`; any of them may
    /// be empty.
    pub(crate) fn target_facts(
        &self,
        build: &Document,
        options: &Document,
        status: &Document,
    ) -> TargetFacts {
        let (process, _) = replies::process(status);
        TargetFacts {
            uri: self.shown_uri(),
            version: replies::version(build).unwrap_or_default(),
            product: process.unwrap_or_default(),
            dbpath: replies::dbpath(options),
            cache_bytes: replies::cache_bytes(status),
            ..TargetFacts::default()
        }
    }

    /// Adds what is known from the server's process, if it runs on this host.
    pub(crate) async fn locate(
        &self,
        target: &mut TargetFacts,
        proc_fs: &ProcFs,
    ) -> Result<(), Limitation> {
        let pid = self.local_process(proc_fs).await?;
        // The program's own name is more exact: compatible servers call themselves mongod.
        if let Ok(program) = proc_fs.exe_name(pid) {
            target.product = program;
        }
        // The path as the process sees it is preferred, since the configured one can be relative.
        if let Some(path) = proc_fs.dbpath(pid) {
            target.dbpath = Some(path.to_string_lossy().into_owned());
        }
        target.pid = Some(pid);
        Ok(())
    }

    async fn ask(&self, command: Document, what: &str, missing: &mut Vec<Limitation>) -> Document {
        match self.command_in_time("admin", command).await {
            Ok(reply) => reply,
            Err(error) => {
                let remedy = match &error {
                    ServerError::TimeOver { .. } => {
                        "ask again when the server has less to do".into()
                    }
                    ServerError::NotAuthorised { command, .. } => rights::grant(command),
                    _ => String::new(),
                };
                let why = match error {
                    ServerError::NotAuthorised { command, .. } => {
                        format!("the user may not run {command}")
                    }
                    other => other.to_string(),
                };
                missing.push(Limitation {
                    what: format!("{what} is not known"),
                    why,
                    remedy,
                });
                Document::new()
            }
        }
    }

    /// Returns the process on this host that the connection string leads to; with several members, the first
    /// that is here. Other tasks continue meanwhile; a resolver that hangs is not waited for.
    pub(crate) async fn local_process(&self, proc_fs: &ProcFs) -> Result<u32, Limitation> {
        let socket = self.sockets().next().map(Path::to_path_buf);
        let (addresses, proc_fs) = (self.addresses.clone(), proc_fs.clone());
        let found = tokio::task::spawn_blocking(move || match &socket {
            Some(socket) => {
                known_process(proc_fs.unix_listener(socket), &socket.display().to_string())
            }
            None => local_process(&addresses, &proc_fs),
        });
        match timeout(LOCATING_LIMIT, found).await {
            Ok(Ok(found)) => found,
            _ => Err(process_unknown(
                "looking up its name and the processes of this host took too long".into(),
                "name the process with --pid",
            )),
        }
    }
}

fn local_process(addresses: &[(String, u16)], proc_fs: &ProcFs) -> Result<u32, Limitation> {
    let mut here = addresses.iter().filter_map(|(host, port)| {
        let address = tcp_listener::local_address(host)?;
        Some((address, *port))
    });
    match here.next() {
        Some((address, port)) => known_process(
            proc_fs.listener(port, Some(address)),
            &format!("port {port}"),
        ),
        None => Err(process_unknown(
            "the server is on another host".into(),
            "run seekscope on the server's host",
        )),
    }
}

/// Returns the process that was found to listen on `what`.
fn known_process(found: Result<Option<u32>, ProcessError>, what: &str) -> Result<u32, Limitation> {
    match found {
        Ok(Some(pid)) => Ok(pid),
        Ok(None) => Err(process_unknown(
            format!("no process seen from here listens on {what}"),
            "if the server runs in a container, name its process with --pid",
        )),
        Err(error) => Err(process_unknown(error.to_string(), "run as root")),
    }
}

fn process_unknown(why: String, remedy: &str) -> Limitation {
    Limitation {
        what: "the server's process is not known".into(),
        why,
        remedy: remedy.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_a_server_runs_is_looked_up_aside() {
        let elsewhere = Server::unasked("mongodb://192.0.2.7:1").await.unwrap();
        let unknown = elsewhere.local_process(&ProcFs::host()).await.unwrap_err();
        assert!(unknown.why.contains("another host"), "{unknown:?}");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("mongodb://{}", listener.local_addr().unwrap());
        let here = Server::unasked(&uri).await.unwrap();
        let pid = here.local_process(&ProcFs::host()).await.unwrap();
        assert_eq!(pid, std::process::id());
    }
}
