//! Finds the collection's files and their layout, now and again after the rewriting.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use mongodb::bson::doc;
use seekscope_layout::LayoutError;
use seekscope_run::{HostFacts, Limitation, MemberState, RunDocument, TargetFacts, shell_quoted};
use seekscope_server::{FileMap, Namespace, ProcFs, Server};

use crate::args::{ReorderArgs, ScanDiskArgs};
use crate::exit::message_of;
use crate::file_names::FileNames;
use crate::interruption::Interruption;
use crate::layout::{CollectionLayout, DataLocation, ScanDisk};
use crate::session::limit;

/// Time limit for connecting to the member of a shard.
const PATIENCE: Duration = Duration::from_secs(5);
/// What helps where the files are those of the last checkpoint.
const LATER: &str = "look again after the next checkpoint, which a mongod takes every 60 s, and at once when it is given \
                     the command {fsync: 1}";

/// The data directory as accessible to this process; without a path if it cannot be read.
#[derive(Debug, Clone)]
pub struct CollectionFiles {
    pub path: Option<PathBuf>,
    names: FileMap,
    /// Who keeps the collection, and knows which file is whose.
    keeper: Server,
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
        let keeper = keeper(server, namespace).await;
        let found = match of_primary_or_other(&keeper, args.pid).await {
            Ok(location) => location,
            Err(error) => {
                if args.dbpath.is_none() {
                    let mut lacking = no_layout(message_of(&error));
                    match server.hello().await.map(|hello| hello.state) {
                        // A member of a shard would be right for the files, and is refused for the copy.
                        Ok(MemberState::Router) => {
                            lacking.why = "a mongos keeps no data".into();
                            lacking.remedy = format!(
                                "see it with: seekscope layout {} {}",
                                shell_quoted(&server.shown_uri()),
                                shell_quoted(&namespace.to_string())
                            );
                        }
                        Ok(MemberState::Arbiter) => lacking.remedy.clear(),
                        _ => {}
                    }
                    limit(document, lacking);
                }
                let data = args.dbpath.as_deref();
                let named = std::slice::from_ref(namespace);
                let names = FileNames::find(Some(&keeper), data, named).await;
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
        document.target = found.target.map(|target| TargetFacts {
            uri: server.shown_uri(),
            ..target
        });
        let path = args.dbpath.clone().unwrap_or(found.path);
        Self {
            path: (!path.as_os_str().is_empty()).then_some(path),
            names: found.names,
            keeper,
        }
    }

    /// Asks again which file holds what, as the swap changed it.
    pub async fn ask_again(&mut self, namespace: &Namespace) {
        let (data, named) = (self.path.as_deref(), std::slice::from_ref(namespace));
        let names = FileNames::find(Some(&self.keeper), data, named).await;
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
        match walked.context("the walk over the files ended unexpectedly")? {
            Ok(layout) => {
                let file = layout.layout.files.first();
                if let Some((file, why)) = file.and_then(|f| Some((f, f.not_measured.clone()?))) {
                    let mut lacking = no_layout(why);
                    if file.was_walked() {
                        lacking.remedy = format!("if it holds documents, {LATER}");
                    }
                    limit(document, lacking);
                }
                Ok(Some(layout))
            }
            Err(error) => {
                limit(document, not_measured(&error, self.path.as_deref()));
                Ok(None)
            }
        }
    }
}

/// Returns who keeps the collection: behind a router the member of the one shard that does, otherwise the server itself.
async fn keeper(server: &Server, namespace: &Namespace) -> Server {
    let of_shard = async {
        if !server.hello().await.ok()?.is_router() {
            return None;
        }
        let pipeline = vec![doc! { "$collStats": {} }];
        let command =
            doc! { "aggregate": namespace.collection(), "pipeline": pipeline, "cursor": {} };
        let database = namespace.database();
        let shards = server.documents_in_time(database, command, 2);
        match shards.await.ok()?.as_slice() {
            [only] => server.member(only.get_str("host").ok()?, PATIENCE).ok(),
            _ => None,
        }
    };
    of_shard.await.unwrap_or_else(|| server.clone())
}

/// Finds the data of the primary, at which the copy is made; if they are not on this host, those of a member that the
/// connection string names, which are of the same collection, if not in the same order.
async fn of_primary_or_other(server: &Server, pid: Option<u32>) -> Result<DataLocation> {
    let writer = server.writer().await;
    let error = match DataLocation::of_server(&writer, pid).await {
        // Of a server without a set, or one that was named directly, there is no other member.
        Err(error) if writer.is_direct() && !server.is_direct() => error,
        of_primary => return of_primary,
    };
    let Ok(mut location) = DataLocation::of_server(server, pid).await else {
        return Err(error);
    };
    let primary = writer.seeds().concat();
    location.limitations.push(Limitation {
        what: format!(
            "the files looked at are those of another member, and the copy is made at the primary, {primary}"
        ),
        why: message_of(&error),
        remedy: "run seekscope on the primary's host".into(),
    });
    Ok(location)
}

/// Says why the files in the data directory could not be measured, and what helps.
fn not_measured(error: &anyhow::Error, directory: Option<&Path>) -> Limitation {
    let mut lacking = no_layout(message_of(error));
    match error.downcast_ref() {
        Some(LayoutError::NotInMetadata { file }) => {
            lacking.remedy = LATER.into();
            if directory.is_some_and(|directory| directory.join(file).exists()) {
                lacking.why = format!(
                    "{file} was created since the last checkpoint, and only a checkpoint tells what lies where in it"
                );
            }
        }
        Some(LayoutError::NoSuchTable { unnamed: 1.., .. }) => lacking.remedy = LATER.into(),
        _ => {}
    }
    lacking
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_newer_than_the_checkpoint_is_worth_waiting_for() {
        let folder = tempfile::tempdir().unwrap();
        let error: anyhow::Error = LayoutError::NotInMetadata {
            file: "collection-29.wt".into(),
        }
        .into();
        let gone = not_measured(&error, Some(folder.path()));
        assert!(gone.why.contains("it was dropped, or"), "{gone:?}");
        assert!(gone.remedy.contains("every 60 s"), "{gone:?}");
        std::fs::write(folder.path().join("collection-29.wt"), "").unwrap();
        let new = not_measured(&error, Some(folder.path()));
        assert!(
            new.why
                .starts_with("collection-29.wt was created since the last checkpoint"),
            "{new:?}"
        );
        assert!(new.remedy.contains("{fsync: 1}"), "{new:?}");
        let not_permitted = not_measured(&anyhow::anyhow!("may not be read"), None);
        assert!(
            not_permitted.remedy.contains("as root"),
            "{not_permitted:?}"
        );
    }

    #[test]
    fn a_collection_that_no_checkpoint_names_yet_is_worth_waiting_for() {
        let remedy = |unnamed| {
            let error = LayoutError::NoSuchTable {
                path: "/data".into(),
                wanted: "shop.orders".into(),
                candidates: Vec::new(),
                unnamed,
            };
            not_measured(&error.into(), None).remedy
        };
        assert_eq!(remedy(2), LATER);
        assert!(remedy(0).contains("--dbpath"));
    }
}
