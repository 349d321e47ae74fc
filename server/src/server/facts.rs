//! What a server is: its own answers, and its process if that is on this host.

use std::path::Path;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_run::{Lacking, TargetFacts, document::Limitation};
use tokio::time::timeout;

use super::{ANSWER_LIMIT, Server, ServerError, lacking, not_authorised};
use crate::examination::rights;
use crate::process::{ProcFs, ProcessError};
use crate::sampling::server_status;
use crate::{replies, tcp_listener};

/// Time limit for finding the server's process, which involves resolving names and reading all descriptors of
/// this host.
const LOCATING_LIMIT: Duration = Duration::from_secs(2);

/// What a server says about itself, and what it would not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerFacts {
    pub target: TargetFacts,
    /// One limitation for each fact that the user may not see or the server does not offer.
    pub missing: Vec<Limitation>,
    /// What it wants before it tells more; `None` if it refused nothing.
    pub lacking: Option<Lacking>,
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
        let (mut facts, told) = self.told_facts().await;
        let located = self.locate(&mut facts.target, told, proc_fs).await;
        facts.missing.extend(located.err());
        facts
    }

    /// Returns the same where somebody may have named the server's process, which is then not looked for.
    ///
    /// # Errors
    /// [`ServerError::OtherProcess`]: the named process is known not to be the server's.
    pub async fn facts_with_process(
        &self,
        named: Option<u32>,
        proc_fs: &ProcFs,
    ) -> Result<ServerFacts, ServerError> {
        let Some(pid) = named else {
            return Ok(self.facts(proc_fs).await);
        };
        let (mut facts, told) = self.told_facts().await;
        if let Some(why) = misfit(pid, told, proc_fs) {
            let uri = self.shown_uri();
            return Err(ServerError::OtherProcess { uri, pid, why });
        }
        add_process(&mut facts.target, pid, proc_fs);
        Ok(facts)
    }

    /// Returns what the server itself says, and the number that its process has for itself.
    async fn told_facts(&self) -> (ServerFacts, Option<u32>) {
        let mut facts = ServerFacts::default();
        let what = "the server's version";
        let build = self.ask(doc! { "buildInfo": 1 }, what, &mut facts).await;
        let what = "the configured data directory";
        let options = doc! { "getCmdLineOpts": 1 };
        let options = self.ask(options, what, &mut facts).await;
        let what = "the server's own status (cache size, process ID)";
        let status = self.ask(server_status::command(), what, &mut facts).await;
        facts.target = self.target_facts(&build, &options, &status);
        let pid = self.told_pid(&status).await;
        (facts, pid)
    }

    /// Returns the number that the named server's process has for itself, if it says so. `status`: its answer to
    /// `serverStatus`, which without a direct connection is that of its set's primary, or of one of several routers.
    pub(crate) async fn told_pid(&self, status: &Document) -> Option<u32> {
        let pid = |status: &Document| replies::process(status).1;
        if self.is_direct() {
            return pid(status);
        }
        let seeds = self.seeds();
        let [named] = seeds.as_slice() else {
            return None;
        };
        if self.hello().await.ok()?.set.is_none() {
            return pid(status);
        }
        let named = self.member(named, ANSWER_LIMIT).ok()?;
        let status = named.command_in_time("admin", server_status::command());
        pid(&status.await.ok()?)
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
            has_user: self.has_user(),
            version: replies::version(build).unwrap_or_default(),
            product: process.unwrap_or_default(),
            dbpath: replies::dbpath(options),
            cache_bytes: replies::cache_bytes(status),
            ..TargetFacts::default()
        }
    }

    /// Adds what is known from the server's process, if it runs on this host. `told`: the number that it has for itself,
    /// if it says so.
    pub(crate) async fn locate(
        &self,
        target: &mut TargetFacts,
        told: Option<u32>,
        proc_fs: &ProcFs,
    ) -> Result<(), Limitation> {
        let pid = self.local_process(proc_fs).await?;
        if let Some(why) = other_number(pid, told, proc_fs) {
            let remedy = "run seekscope on the server's host; if the server runs in a container, name \
                          its process with --pid";
            return Err(process_unknown(
                format!("process {pid} accepts its connections, but {why}"),
                remedy,
            ));
        }
        add_process(target, pid, proc_fs);
        Ok(())
    }

    async fn ask(&self, command: Document, what: &str, facts: &mut ServerFacts) -> Document {
        match self.command_in_time("admin", command).await {
            Ok(reply) => reply,
            Err(error) => {
                let remedy = match &error {
                    ServerError::TimeOver { .. } => "try again when the server is less busy".into(),
                    ServerError::NotAuthorised {
                        command, has_user, ..
                    } => rights::grant(command, *has_user),
                    _ => String::new(),
                };
                let why = match error {
                    ServerError::NotAuthorised {
                        command, has_user, ..
                    } => {
                        facts.lacking = Some(lacking(has_user));
                        not_authorised(&command, has_user)
                    }
                    other => other.to_string(),
                };
                facts.missing.push(Limitation {
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
                "resolving its name and searching the processes of this host took too long".into(),
                "name the process with --pid",
            )),
        }
    }
}

/// Adds what is known from the server's process.
fn add_process(target: &mut TargetFacts, pid: u32, proc_fs: &ProcFs) {
    // The program's own name is more exact: compatible servers call themselves mongod.
    if let Ok(program) = proc_fs.exe_name(pid) {
        target.product = program;
    }
    // The path as the process sees it is preferred, since the configured one can be relative.
    if let Some(path) = proc_fs.dbpath(pid) {
        target.dbpath = Some(path.to_string_lossy().into_owned());
    }
    target.pid = Some(pid);
}

/// Returns why a process cannot be that of a server which says that it has the number `told`; `None` if it may be.
fn misfit(pid: u32, told: Option<u32>, proc_fs: &ProcFs) -> Option<String> {
    let name = match proc_fs.exe_name(pid) {
        Ok(name) => name,
        Err(ProcessError::Gone { .. }) => return Some("there is no such process".into()),
        Err(_) => return None,
    };
    // The number alone does not tell: in a container the server is often process 1, as is the host's init.
    let no_files = || {
        let is_visible = proc_fs.exe(pid).is_ok();
        (is_visible && proc_fs.dbpath(pid).is_none())
            .then(|| format!("it runs {name}, which has no WiredTiger files open"))
    };
    other_number(pid, told, proc_fs).or_else(no_files)
}

/// Returns how a process is known to have another number for itself than a server says that it has: the one that
/// accepts its connections may forward them, into a container or to another host.
fn other_number(pid: u32, told: Option<u32>, proc_fs: &ProcFs) -> Option<String> {
    let (told, own) = (told?, proc_fs.own_pid(pid).ok()?);
    let name = proc_fs.exe_name(pid).ok()?;
    (told != own)
        .then(|| format!("it runs {name}, and the server reports that it is process {told}"))
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
            format!("no process visible from here listens on {what}"),
            "if the server runs in a container, name its process with --pid",
        )),
        Err(error) => Err(process_unknown(error.to_string(), "run seekscope as root")),
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
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_process_that_is_not_the_servers_is_known() {
        let root = tempfile::tempdir().unwrap();
        let proc_fs = ProcFs::at(root.path());
        let process = |pid: u32, program: &str, numbers: &str, files: &[&str]| {
            let folder = root.path().join(pid.to_string());
            fs::create_dir_all(folder.join("fd")).unwrap();
            symlink(program, folder.join("exe")).unwrap();
            fs::write(
                folder.join("status"),
                format!("Pid:\t{pid}\nNSpid:\t{numbers}\n"),
            )
            .unwrap();
            for (number, file) in files.iter().enumerate() {
                symlink(file, folder.join("fd").join(number.to_string())).unwrap();
            }
        };
        process(1, "/sbin/init", "1", &["/run/initctl"]);
        process(70, "/usr/bin/mongod", "70\t1", &["/data/db/WiredTiger.wt"]);
        process(80, "/usr/bin/mongod", "80", &["/srv/WiredTiger.wt"]);
        let misfit = |pid: u32, told: Option<u32>| misfit(pid, told, &proc_fs).unwrap_or_default();
        // In a container, where it is process 1.
        assert_eq!(misfit(70, Some(1)), "");
        assert_eq!(misfit(70, None), "");
        let init = misfit(1, Some(1));
        assert!(
            init.contains("runs init") && init.contains("no WiredTiger files"),
            "{init}"
        );
        let other = misfit(80, Some(1));
        assert!(
            other.contains("runs mongod") && other.contains("process 1"),
            "{other}"
        );
        assert!(misfit(99, Some(99)).contains("no such process"));
    }

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
