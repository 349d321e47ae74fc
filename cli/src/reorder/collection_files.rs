//! Finds the collection's files and their layout, now and again after the rewriting.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::{HostFacts, Limitation, MemberState, RunDocument};
use seekscope_server::{FileMap, Namespace, ProcFs, Server};

use crate::args::{ReorderArgs, ScanDiskArgs};
use crate::exit::message_of;
use crate::file_names::FileNames;
use crate::interruption::Interruption;
use crate::layout::{CollectionLayout, DataLocation, ScanDisk};
use crate::session::limit;

/// How long the member that was named may take to say which one it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The data directory as accessible to this process; without a path if it cannot be read.
#[derive(Debug, Clone)]
pub struct CollectionFiles {
    pub path: Option<PathBuf>,
    names: FileMap,
}

impl CollectionFiles {
    /// Asks the server for the directory; `--dbpath` takes precedence. What is missing is noted in the document
    /// and is not an error, as collections can be reordered remotely.
    pub async fn find(
        server: &Server,
        namespace: &Namespace,
        args: &ReorderArgs,
        document: &mut RunDocument,
    ) -> Self {
        let found = match DataLocation::of_server(server, args.pid).await {
            Ok(mut location) => {
                location.limitations.extend(of_other_member(server).await);
                location
            }
            Err(error) => {
                if args.dbpath.is_none() {
                    let mut lacking = no_layout(message_of(&error));
                    if !keeps_data(server).await {
                        lacking.remedy.clear();
                    }
                    limit(document, lacking);
                }
                let data = args.dbpath.as_deref();
                let named = std::slice::from_ref(namespace);
                let names = FileNames::find(Some(server), data, named).await;
                DataLocation {
                    target: Some(server.facts(&ProcFs::host()).await.target),
                    names: names.map,
                    ..DataLocation::default()
                }
            }
        };
        for limitation in found.limitations {
            limit(document, limitation);
        }
        document.host = Some(HostFacts::read(Path::new("/")));
        document.target = found.target;
        let path = args.dbpath.clone().unwrap_or(found.path);
        Self {
            path: (!path.as_os_str().is_empty()).then_some(path),
            names: found.names,
        }
    }

    /// Asks again which file holds what, as the swap changed it.
    pub async fn ask_again(&mut self, server: &Server, namespace: &Namespace) {
        let (data, named) = (self.path.as_deref(), std::slice::from_ref(namespace));
        let names = FileNames::find(Some(server), data, named).await;
        if !names.map.is_empty() {
            self.names = names.map;
        }
    }

    /// Walks the files. `None` if they cannot be read, which is noted, or if the work was stopped.
    pub async fn layout(
        &self,
        namespace: &Namespace,
        disk: &ScanDiskArgs,
        document: &mut RunDocument,
        interruption: &Interruption,
    ) -> Result<Option<CollectionLayout>> {
        let Some(path) = self.path.clone() else {
            return Ok(None);
        };
        let disk = ScanDisk::choose(disk, &path)?;
        document.device.clone_from(&disk.device);
        let memory_bytes = document.host.as_ref().map_or(0, |host| host.memory_bytes);
        let (names, namespace) = (self.names.clone(), namespace.clone());
        let walk = move |stop: &AtomicBool| {
            CollectionLayout::measure(&path, &names, &namespace, disk, memory_bytes, stop)
        };
        let (walked, _) = interruption.cancelling(walk).await;
        interruption.check()?;
        match walked.context("the walk over the files broke off")? {
            Ok(layout) => {
                let lacks = layout
                    .layout
                    .files
                    .first()
                    .and_then(|f| f.not_measured.clone());
                if let Some(why) = lacks {
                    limit(document, no_layout(why));
                }
                Ok(Some(layout))
            }
            Err(error) => {
                limit(document, no_layout(message_of(&error)));
                Ok(None)
            }
        }
    }
}

/// Says that the files are those of the member that was named, and not of the primary, at which the copy is made.
async fn of_other_member(server: &Server) -> Option<Limitation> {
    let primary = server.hello().await.ok()?.me?;
    let named = server.seeds();
    if named.contains(&primary) {
        return None;
    }
    let named = named.into_iter().next()?;
    // A member may be known by several names.
    let identity = server.member(&named, PATIENCE).ok()?.identity().await?;
    (identity != server.identity().await?).then(|| Limitation {
        what: format!(
            "the files looked at are those of {named}, and the copy is made at the primary, {primary}"
        ),
        why: "the connection string names that member".into(),
        remedy: "name the primary, on its host".into(),
    })
}

/// Returns whether the server has files of its own, unlike a router and an arbiter.
async fn keeps_data(server: &Server) -> bool {
    let state = server.hello().await.map(|hello| hello.state);
    !matches!(state, Ok(MemberState::Router | MemberState::Arbiter))
}

fn no_layout(why: String) -> Limitation {
    Limitation {
        what: "how the collection lies on disk is not known, so neither is the gain".into(),
        why,
        remedy:
            "run seekscope on the server's host as root, or name the data directory with --dbpath"
                .into(),
    }
}
