//! Resumes or undoes what was interrupted, from the record on the server.

use std::future::Future;

use bson::doc;
use futures_util::TryStreamExt;
use seekscope_run::Reordered;
use seekscope_server::{Namespace, Server};

use crate::apply::{drive, job};
use crate::hold::{Hold, unblock};
use crate::site::{STATE, Site, records};
use crate::state::Record;
use crate::{Phase, Progress, ReorderError, Request, Step, indexes, swap, undo};

/// The most records that are read in a database.
const RECORDS_MAX: i64 = 1_000;

/// A reordering that was not completed, or is still running.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    pub namespace: Namespace,
    pub phase: Phase,
    /// "natural" or the key pattern.
    pub by: String,
    /// Host, process and seekscope version of its present or last worker.
    pub worker: String,
    /// Whether that process still seems to be at work.
    pub alive: bool,
    /// Whether it is blocking writes to the server.
    pub writes_blocked: bool,
    /// Had it paused the writers ([`crate::Writers::Paused`])? They may have been told to continue since.
    pub writers_paused: bool,
    /// The most bytes of documents copied per second, as it was asked for; `None` if there was no limit, or if the
    /// version that began did not record it.
    pub max_rate_bytes_per_s: Option<u64>,
}

/// What [`rollback`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolledBack {
    /// The copy is gone and the original is as it was.
    Original,
    /// The swap had taken place: only the record was removed.
    AlreadySwapped,
}

/// Returns the recorded reorderings of a collection, or (`None`) of all databases.
pub async fn pending(
    server: &Server,
    namespace: Option<&Namespace>,
) -> Result<Vec<Pending>, ReorderError> {
    if let Some(namespace) = namespace {
        let site = Site::open(server, namespace).await?;
        return match Record::read(&site).await? {
            Some(record) => Ok(vec![describe(&site, &record).await?]),
            None => Ok(Vec::new()),
        };
    }
    let mut found = Vec::new();
    for database in undo::databases(server).await? {
        // Marks in the change stream are kept there too; their keys are not names.
        let records = records(server, &database);
        let named = records.find(doc! { "_id": { "$type": "string" } });
        let failed = |error| server.error("find", &error);
        let cursor = named.limit(RECORDS_MAX).await.map_err(failed)?;
        let documents: Vec<bson::Document> = cursor.try_collect().await.map_err(failed)?;
        for document in documents {
            let name = document.get_str("_id").unwrap_or_default();
            let Ok(namespace) = Namespace::new(&database, name) else {
                continue;
            };
            let site = Site::open(server, &namespace).await?;
            let record = Record::parse(&site, document)?;
            found.push(describe(&site, &record).await?);
        }
    }
    Ok(found)
}

async fn describe(site: &Site, record: &Record) -> Result<Pending, ReorderError> {
    Ok(Pending {
        namespace: site.namespace.clone(),
        phase: record.phase,
        by: record.by(site)?.to_string(),
        worker: record.worker.to_string(),
        alive: record.busy(site).await?.is_some(),
        writes_blocked: record.blocked,
        writers_paused: record.paused,
        max_rate_bytes_per_s: record.max_rate(),
    })
}

/// Resumes from the record; order and definition are those recorded, and so is the rate unless the request has one. A
/// copy that was not finished is begun anew. Writers that had been stopped continue
/// meanwhile. Stops and fails as [`crate::apply()`] does.
pub async fn resume(
    server: &Server,
    request: &mut Request,
    progress: &dyn Progress,
    stop: impl Future<Output = ()> + Send,
) -> Result<Reordered, ReorderError> {
    progress.step(Step::Checking);
    let (site, mut record) = take_over(server, &request.namespace).await?;
    let resumed_from = Some(record.phase.name().to_owned());
    let by = record.by(&site)?;
    let swapped = carry_swap_on(&site, &record).await?;
    let mut hold = Hold::new(&mut request.writers);
    hold.go_on(&site, &mut record).await?;
    if swapped {
        record.remove(&site).await?;
        return Ok(Reordered {
            by: by.to_string(),
            documents: record.documents.cast_unsigned(),
            bytes: record.bytes.cast_unsigned(),
            resumed_from,
            writes_seen_by: match record.token {
                Some(_) => "change stream".into(),
                None => "the server's counters".into(),
            },
            ..Reordered::default()
        });
    }
    let definition = record.definition(&site)?;
    if record.phase > Phase::Copying && !usable(&site, &record).await? {
        record.phase = Phase::Copying;
    }
    if record.phase == Phase::Swapping {
        // Writers have been active since; what they wrote is applied first.
        indexes::let_nothing_expire(&site, &definition).await?;
        record.phase = Phase::Indexed;
    }
    record.forced |= request.force;
    request.max_rate_bytes_per_s = request.max_rate_bytes_per_s.or(record.max_rate());
    record.set_max_rate(request.max_rate_bytes_per_s);
    record.save(&site).await?;
    let (mut job, writers) = job(site, record, definition, by, request, progress);
    job.done.resumed_from = resumed_from;
    drive(job, writers, stop).await
}

/// Removes the copy and the record; never touches the original. The caller has to tell writers that had been
/// paused ([`Pending::writers_paused`]) to continue.
pub async fn rollback(
    server: &Server,
    namespace: &Namespace,
    progress: &dyn Progress,
) -> Result<RolledBack, ReorderError> {
    progress.step(Step::RollingBack);
    let (site, mut record) = take_over(server, namespace).await?;
    let rolled_back = undo::undo(&site, &mut record).await?;
    record.remove(&site).await?;
    Ok(rolled_back)
}

async fn take_over(server: &Server, namespace: &Namespace) -> Result<(Site, Record), ReorderError> {
    let site = Site::open(server, namespace).await?;
    let record = Record::read(&site).await?;
    let mut record = record.ok_or_else(|| ReorderError::NothingPending {
        namespace: namespace.to_string(),
    })?;
    record.take_over(&site).await?;
    if record.blocked {
        unblock(server).await?;
        record.blocked = false;
        record.save(&site).await?;
    }
    Ok((site, record))
}

/// Completes a swap that the server began. Returns whether it has taken place.
async fn carry_swap_on(site: &Site, record: &Record) -> Result<bool, ReorderError> {
    if record.phase != Phase::Swapping {
        return Ok(false);
    }
    if undo::is_swapped(site, record).await? {
        return Ok(true);
    }
    let target = site.identity(site.target_name()).await?;
    let copy = site.identity(site.copy_name()).await?;
    let gone = target.is_none() || target == record.copy;
    if gone && copy.is_some() && copy == record.copy {
        swap::rename(site, record).await?;
        return Ok(true);
    }
    if target.as_ref() != Some(&record.original) {
        return Err(site.refused(format!(
            "neither the original nor its copy is where it was left; look at {} and {}.{STATE}",
            site.copy_namespace(),
            site.database()
        )));
    }
    Ok(false)
}

/// Returns whether the copy is the one recorded, and the original is defined as it was.
async fn usable(site: &Site, record: &Record) -> Result<bool, ReorderError> {
    let copy = site.identity(site.copy_name()).await?;
    if copy.is_none() || copy != record.copy || record.dropping {
        return Ok(false);
    }
    let now = crate::Definition::of(site, site.target_name()).await?;
    Ok(now.identity == record.original && indexes::same(&now, &record.definition(site)?))
}
