//! Runs the steps in order, and handles stops and failures.

use std::future::Future;
use std::time::Duration;

use seekscope_run::Reordered;
use seekscope_server::{Namespace, Server, ServerError};

use crate::hold::Hold;
use crate::job::Job;
use crate::site::Site;
use crate::state::Record;
use crate::worker::{AtWork, Worker};
use crate::{
    By, Definition, Phase, Progress, ReorderError, Request, RolledBack, Step, Writers, space, undo,
};

const HEARTBEAT: Duration = Duration::from_secs(5);

/// Reorders a collection. When `stop` is ready before the swap, or anything fails, everything is rolled back.
/// Dropping the future instead leaves the record for [`crate::resume`] or [`crate::rollback`].
pub async fn apply(
    server: &Server,
    request: &mut Request,
    progress: &dyn Progress,
    stop: impl Future<Output = ()> + Send,
) -> Result<Reordered, ReorderError> {
    progress.step(Step::Checking);
    let site = Site::open(server, &request.namespace).await?;
    refuse_unfinished(&site).await?;
    let definition = check(&site, request).await?;
    let mut record = Record::new(&site, &request.by, &definition, Worker::this())?;
    record.forced = request.force;
    record.set_max_rate(request.max_rate_bytes_per_s);
    if let Err(error) = record.insert(&site).await {
        if matches!(
            error,
            ReorderError::Server(ServerError::Unacknowledged { .. })
        ) {
            record.withdraw(&site).await;
        }
        return Err(error);
    }
    let by = request.by.clone();
    let (job, writers) = job(site, record, definition, by, request, progress);
    drive(job, writers, stop).await
}

/// Returns an error where an earlier reordering of the collection has not come to its end, or a collection of others
/// has the copy's name. Changes nothing.
pub async fn check_room(server: &Server, namespace: &Namespace) -> Result<(), ReorderError> {
    let site = Site::open(server, namespace).await?;
    refuse_unfinished(&site).await?;
    refuse_taken_name(&site).await
}

async fn refuse_unfinished(site: &Site) -> Result<(), ReorderError> {
    let Some(record) = Record::read(site).await? else {
        return Ok(());
    };
    let unfinished = ReorderError::Unfinished {
        namespace: site.namespace.to_string(),
    };
    Err(record.busy(site).await?.unwrap_or(unfinished))
}

async fn refuse_taken_name(site: &Site) -> Result<(), ReorderError> {
    match site.listed(site.copy_name()).await? {
        Some(_) => Err(site.refused(format!(
            "there is a collection {} that no reordering here has created; rename or drop it",
            site.copy_namespace()
        ))),
        None => Ok(()),
    }
}

/// Checks whether the reordering is possible at all. Changes nothing.
async fn check(site: &Site, request: &mut Request) -> Result<Definition, ReorderError> {
    let definition = Definition::with_obstacles(site).await?;
    let mut hold = Hold::new(&mut request.writers);
    if let Some(why) = definition.refusal(&request.by, hold.is_quiesced()) {
        return Err(site.refused(why));
    }
    if let Some(why) = hold.refusal(site).await? {
        return Err(site.refused(why));
    }
    refuse_taken_name(site).await?;
    space::check(site).await?;
    Ok(definition)
}

/// Builds a job with the way in which its writers are stopped.
pub(crate) fn job<'a>(
    site: Site,
    record: Record,
    definition: Definition,
    by: By,
    request: &'a mut Request,
    progress: &'a dyn Progress,
) -> (Job<'a>, &'a mut Writers) {
    let done = Reordered {
        by: by.to_string(),
        ..Reordered::default()
    };
    let mut site = site;
    site.has_validator = definition.has_validator();
    let job = Job {
        site,
        record,
        definition,
        by,
        max_rate_bytes_per_s: request.max_rate_bytes_per_s,
        guard: request.guard,
        judge: request.judge.as_deref_mut(),
        spool: request.spool.clone(),
        progress,
        done,
    };
    (job, &mut request.writers)
}

/// Completes a job, or rolls it back. Lets writers continue, unless the name of the collection may belong to
/// nobody at that moment.
pub(crate) async fn drive(
    mut job: Job<'_>,
    writers: &mut Writers,
    stop: impl Future<Output = ()> + Send,
) -> Result<Reordered, ReorderError> {
    let mut hold = Hold::new(writers);
    let (site, worker) = (job.site.clone(), job.record.worker.clone());
    let _at_work = AtWork::begin(&worker);
    let prepared = tokio::select! {
        biased;
        () = stop => Err(ReorderError::Stopped),
        error = beat(&site, &worker) => Err(error),
        error = space::watch(&site) => Err(error),
        prepared = job.prepare(&mut hold) => prepared,
    };
    let swapped = match prepared {
        Ok(watch) => job.swap(&watch).await,
        Err(error) => Err(error),
    };
    let (mut settled, mut is_undone) = (true, false);
    let outcome = match swapped {
        // The work that was done is not thrown away because a set elects another primary.
        Err(first) if is_gone(&first) && job.record.phase < Phase::Swapping => {
            settled = false;
            Err(or_gone(&site, first))
        }
        Err(first) if !matches!(first, ReorderError::WrittenDuringSwap { .. }) => {
            job.progress.step(Step::RollingBack);
            match undo::undo(&site, &mut job.record).await {
                Ok(RolledBack::Original) => {
                    is_undone = true;
                    Err(undone(first, &site))
                }
                Ok(RolledBack::AlreadySwapped) => Ok(()),
                Err(_) if job.record.phase == Phase::Swapping => {
                    return Err(ReorderError::SwapUnknown {
                        namespace: site.namespace.to_string(),
                        why: Box::new(first),
                    });
                }
                Err(second) => {
                    settled = false;
                    Err(not_rolled_back(&site, first, second))
                }
            }
        }
        other => other,
    };
    // The record is removed last: it is the only sign that writers are stopped.
    let end = async {
        let blocked = hold.go_on(&site, &mut job.record).await?;
        if settled {
            job.record.remove(&site).await?;
        }
        Ok(blocked)
    };
    let ended: Result<Duration, ReorderError> = end.await;
    if is_undone && ended.is_ok() {
        job.progress.undone(hold.has_let_go());
    }
    match (outcome, ended) {
        (Ok(()), Ok(blocked)) => {
            job.done.blocked_s = blocked.as_secs_f64();
            Ok(job.done)
        }
        (Err(error), Ok(_)) => Err(error),
        (Ok(()), Err(error)) => Err(or_gone(&site, error)),
        (Err(first), Err(second)) => Err(not_rolled_back(&site, first, second)),
    }
}

/// Says of a server that went away at the swap what became of the collection.
fn undone(first: ReorderError, site: &Site) -> ReorderError {
    match or_gone(site, first) {
        ReorderError::ServerGone {
            namespace,
            uri,
            why,
        } => ReorderError::GoneBeforeSwap {
            namespace,
            uri,
            why,
        },
        other => other,
    }
}

/// Combines the errors when something failed, and rolling back failed too.
fn not_rolled_back(site: &Site, first: ReorderError, second: ReorderError) -> ReorderError {
    match or_gone(site, second) {
        gone @ ReorderError::ServerGone { .. } => gone,
        second => ReorderError::NotRolledBack {
            first: Box::new(first),
            second: Box::new(second),
        },
    }
}

/// Returns whether the server is away, or the member that was at work.
fn is_gone(error: &ReorderError) -> bool {
    matches!(
        error,
        ReorderError::Server(ServerError::Unreachable { .. } | ServerError::RoleLost { .. })
    )
}

/// Explains more if the server is away: it keeps the record.
fn or_gone(site: &Site, error: ReorderError) -> ReorderError {
    match error {
        ReorderError::Server(ServerError::Unreachable { uri, why, .. }) => {
            ReorderError::ServerGone {
                namespace: site.namespace.to_string(),
                uri,
                why,
            }
        }
        ReorderError::Server(ServerError::RoleLost { uri, .. }) => ReorderError::ServerGone {
            namespace: site.namespace.to_string(),
            uri,
            why: "the member at work shut down, or is no longer the set's primary".into(),
        },
        other => other,
    }
}

/// Sends the server regular heartbeats of the worker. Returns when this process is no longer the worker.
async fn beat(site: &Site, worker: &Worker) -> ReorderError {
    loop {
        match Record::beat(site, worker).await {
            // The work itself will notice a server that does not answer.
            Ok(()) | Err(ReorderError::Server(_)) => tokio::time::sleep(HEARTBEAT).await,
            Err(error) => return error,
        }
    }
}
