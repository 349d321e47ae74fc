//! Finds the server to examine, its process and its data, and what is permitted.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seekscope_run::{DeviceFacts, Lacking, Limitation};
use seekscope_server::examination::refuse_router;
use seekscope_server::{ProcFs, Server};

use super::Asked;
use crate::file_names::FileNames;
use crate::layout::seen_from_here;
use crate::member_role::MemberRole;
use crate::session::Session;

/// The server that is examined, its process and its data.
#[derive(Debug)]
pub struct Subject {
    pub server: Server,
    pub pid: Option<u32>,
    /// Its data directory as accessible to this process.
    pub data: Option<PathBuf>,
    pub role: MemberRole,
    /// What the server wants before it tells more than its role; `None` if it refused nothing so far.
    pub lacking: Option<Lacking>,
}

impl Subject {
    /// Records in the run what the server says of itself, and finds its process and data.
    pub async fn find(session: &mut Session, asked: &Asked, server: Server) -> Result<Self> {
        let proc_fs = ProcFs::host();
        refuse_router(&server).await?;
        let role = role(session, &server).await;
        let examination = session.document.examination.get_or_insert_default();
        examination.set = role.0.as_ref().and_then(|hello| hello.set.clone());
        let facts = server.facts_with_process(asked.args.pid, &proc_fs).await?;
        facts.missing.into_iter().for_each(|m| session.limit(m));
        let pid = facts.target.pid;
        let data = data(
            session,
            asked.args.dbpath.as_deref(),
            pid,
            facts.target.dbpath.as_deref(),
        );
        if let Some(data) = &data {
            session.document.device = DeviceFacts::of_path(Path::new("/"), data).ok();
        }
        session.document.target = Some(facts.target);
        if pid.is_some() || data.is_some() {
            let names = FileNames::find(Some(&server), data.as_deref(), &asked.namespaces).await;
            session.file_map = Some(names.map);
            names.limitation.into_iter().for_each(|l| session.limit(l));
        }
        session.save()?;
        Ok(Self {
            server,
            pid,
            data,
            role,
            lacking: facts.lacking,
        })
    }
}

async fn role(session: &mut Session, server: &Server) -> MemberRole {
    match MemberRole::ask(server).await {
        Ok(role) => role,
        Err(error) => {
            session.limit(Limitation {
                what: "whether the server is a primary that others depend on is not known".into(),
                why: error.to_string(),
                remedy: String::new(),
            });
            MemberRole::default()
        }
    }
}

/// Returns the data directory as accessible to this process.
fn data(
    session: &mut Session,
    named: Option<&Path>,
    pid: Option<u32>,
    told: Option<&str>,
) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_path_buf());
    }
    let (pid, told) = (pid?, Path::new(told?));
    if !told.is_absolute() {
        session.limit(Limitation {
            what: "the data directory was not looked at".into(),
            why: format!(
                "{} is relative to where the server was started",
                told.display()
            ),
            remedy: "name it with --dbpath".into(),
        });
        return None;
    }
    match seen_from_here(pid, told) {
        Ok(path) => Some(path),
        Err(error) => {
            session.limit(Limitation {
                what: "the data directory was not looked at".into(),
                why: error.to_string(),
                remedy: "run as root, or name it with --dbpath".into(),
            });
            None
        }
    }
}
