//! Index builds as the work during which a server is watched: with cold files on a private server; on another
//! server only with permission. Either way they are removed afterwards, whatever happens.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{CacheState, Disk, Limitation, Phase, RunDocument, monotonic_ns};
use seekscope_server::{Namespace, Server, page_cache};
use seekscope_workload::{IndexKeys, IndexPlan, drop_index};

use crate::doctor::measurement::as_found;
use crate::progress::Progress;
use crate::session::{Session, limit};

/// Name of the index: marks it as ours, to explain it and to find one that a crashed run left.
pub const INDEX_NAME: &str = "seekscope_doctor";
/// The limitation that makes a run incomplete.
pub const INDEX_STAYED: &str = "the index built for this run could not be removed";
/// How long an interrupted run may take to remove its index.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);
const REMOVE_TRIES: u32 = 5;
const REMOVE_PAUSE: Duration = Duration::from_millis(200);

/// Index builds that run one after the other, each dropped before the next begins. Kept outside of the future
/// that a signal drops, so that completed builds are recorded and leftovers are removed.
pub struct Builds {
    plans: Vec<IndexPlan>,
    whose: Whose,
    done: Vec<Phase>,
    limitations: Vec<Limitation>,
}

/// Owner of the server on which the indexes are built.
enum Whose {
    /// A private server on this disk: the files in the folder are evicted from the page cache before each
    /// build.
    Ours { disk: Disk, data: PathBuf },
    /// Somebody else's server. While `built` is set, the index may exist there.
    Theirs {
        uri: String,
        built: Option<Namespace>,
    },
}

impl Builds {
    /// Returns builds on a private server whose data is in `data`.
    pub fn ours(plans: Vec<IndexPlan>, disk: Disk, data: PathBuf) -> Self {
        Self::new(plans, Whose::Ours { disk, data })
    }

    /// Returns one permitted build on a server that is not ours, after checking that it is possible.
    pub async fn permitted(
        server: &Server,
        uri: &str,
        namespace: &Namespace,
        keys: &IndexKeys,
    ) -> Result<Self> {
        let plan = IndexPlan::check(server, namespace, keys, INDEX_NAME).await?;
        let whose = Whose::Theirs {
            uri: uri.to_string(),
            built: None,
        };
        Ok(Self::new(vec![plan], whose))
    }

    fn new(plans: Vec<IndexPlan>, whose: Whose) -> Self {
        Self {
            plans,
            whose,
            done: Vec::new(),
            limitations: Vec::new(),
        }
    }

    /// Returns what the server does meanwhile, in words, and the first collection.
    pub fn activity(&self) -> (String, Option<&Namespace>) {
        let keys = self.plans.first().map(|plan| plan.keys.to_json());
        let text = format!("index builds {}", keys.unwrap_or_default());
        (text, self.plans.first().map(|plan| &plan.namespace))
    }

    /// Returns the disk that the server uses.
    pub fn disk(&self) -> Disk {
        self.whose.disk()
    }

    /// Builds and drops all indexes.
    pub async fn run(&mut self, server: &Server, progress: Progress) -> Result<()> {
        for plan in &self.plans {
            let (keys, namespace) = (plan.keys.to_json(), &plan.namespace);
            let name = match &mut self.whose {
                Whose::Ours { disk, .. } => format!("{namespace}, {}", disk.name()),
                Whose::Theirs { built, .. } => {
                    *built = Some(namespace.clone());
                    namespace.to_string()
                }
            };
            let _step = progress.step(format!("building the index {keys} on {name}"));
            let cache = self.whose.make_cold(&mut self.limitations)?;
            let started_ns = monotonic_ns();
            let build = plan.build(server).await?;
            self.done.push(Phase {
                name,
                activity: format!("index build {keys}"),
                namespace: Some(namespace.to_string()),
                disk: self.whose.disk(),
                cache,
                started_ns,
                ended_ns: monotonic_ns(),
                index_build: Some(build),
                trace: None,
                process_io: None,
            });
            drop_index(server, namespace, &plan.name).await?;
            if let Whose::Theirs { built, .. } = &mut self.whose {
                *built = None;
            }
        }
        Ok(())
    }

    /// Stores the builds in the session, and removes the index from a server that is not ours.
    pub async fn end(self, session: &mut Session) -> Result<()> {
        let document = &mut session.document;
        self.limitations
            .into_iter()
            .for_each(|limitation| limit(document, limitation));
        self.done
            .into_iter()
            .for_each(|phase| keep(document, phase));
        if let Whose::Theirs {
            uri,
            built: Some(namespace),
        } = self.whose
            && let Err(by_hand) = remove(&uri, &namespace).await
        {
            session.limit(Limitation {
                what: INDEX_STAYED.into(),
                why: "the server refused or did not answer".into(),
                remedy: by_hand,
            });
        }
        session.save()
    }
}

impl Whose {
    fn disk(&self) -> Disk {
        match self {
            Self::Ours { disk, .. } => disk.clone(),
            Self::Theirs { .. } => Disk::Plain,
        }
    }

    /// Evicts a private server's files from the page cache; returns what is cached when a build begins.
    fn make_cold(&self, limitations: &mut Vec<Limitation>) -> Result<CacheState> {
        let Self::Ours { data, .. } = self else {
            return Ok(as_found());
        };
        let state = page_cache::evict(data)?.state();
        if let CacheState::AsFound { why } = &state {
            limitations.push(Limitation {
                what: "some builds did not begin on cold files, so they read less from the disk than they would have".into(),
                why: why.clone(),
                remedy: "put the data on a disk of its own with --data-dir; a filesystem in memory cannot be cold".into(),
            });
        }
        Ok(state)
    }
}

/// Adds a build to the run, or adds its time as a repetition to an earlier build on the same disk.
fn keep(document: &mut RunDocument, phase: Phase) {
    let mut phases = document.phases.iter_mut();
    let same = phases.find(|known| known.name == phase.name && known.index_build.is_some());
    match (
        same.and_then(|known| known.index_build.as_mut()),
        &phase.index_build,
    ) {
        (Some(known), Some(again)) => known.repeats_ns.push(again.elapsed_ns),
        _ => document.phases.push(phase),
    }
}

/// Removes the index, finished or still being built. `Err` holds the command to type instead.
async fn remove(uri: &str, namespace: &Namespace) -> Result<(), String> {
    let by_hand = format!(
        "the index {INDEX_NAME} may still be on {namespace}; remove it with: db.getCollection({}).dropIndex({INDEX_NAME:?})",
        serde_json::Value::from(namespace.collection()),
    );
    let removal = async {
        let server = Server::connect(uri).await?;
        for _ in 0..REMOVE_TRIES {
            match drop_index(&server, namespace, INDEX_NAME).await {
                Err(error) if error.to_string().contains("IndexNotFound") => {
                    // It was never begun, or the command is still on its way: check again.
                    tokio::time::sleep(REMOVE_PAUSE).await;
                }
                other => return Ok(other?),
            }
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(REMOVE_LIMIT, removal).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{by_hand} ({error})")),
        Err(_) => Err(by_hand),
    }
}
