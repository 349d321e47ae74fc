//! `advise --since RUN`: whether what an earlier run advised has come true.

use std::path::Path;

use anyhow::Result;
use seekscope_advice::since::{Now, advised, compare, compared_with};
use seekscope_doctor::since::other_server;
use seekscope_run::{
    AdviceRecord, AdviceSince, Limitation, RunDirectory, RunDocument, StoringWay, WayKind,
};
use seekscope_server::Namespace;

use crate::exit::Usage;

/// An earlier run that advised another way of storing.
pub struct Earlier {
    name: String,
    started_realtime_ns: u64,
    document: RunDocument,
    record: AdviceRecord,
    way: StoringWay,
}

impl Earlier {
    /// Reads the run, of which `namespace` must be the collection.
    pub fn load(run: &Path, namespace: &Namespace) -> Result<Self> {
        let (directory, mut document) = RunDirectory::open(run)?;
        let shown = run.display();
        let refused = |why: String| Usage(format!("--since: {shown} {why}"));
        let record = document
            .advice
            .take()
            .ok_or_else(|| refused("is not a run of `seekscope advise`".into()))?;
        let way = advised(&record)
            .cloned()
            .ok_or_else(|| refused("advised no other way of storing".into()))?;
        // Some ways are made beside the present collection, which may still be there.
        let is_beside = matches!(way.kind, WayKind::Buckets | WayKind::Compressor);
        if record.namespace != namespace.to_string() && !is_beside {
            return Err(refused(format!("is about {}", record.namespace)).into());
        }
        compared_with(&record).map_err(|why| {
            refused(format!(
                "cannot tell whether its advice has come true: {why}. To find out, a run must have watched the queries \
                 before the change, without --query and for long enough (--for)"
            ))
        })?;
        let name = directory.path().file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            started_realtime_ns: document.started.realtime_ns,
            document,
            record,
            way,
        })
    }

    /// Returns what is to be said where `now` is a run on another server.
    pub fn caution(&self, now: &RunDocument) -> Option<Limitation> {
        other_servers(&self.name, &self.document, now)
    }

    /// Returns what became of its advice.
    pub fn compare(&self, now: Now<'_>) -> AdviceSince {
        AdviceSince {
            run: self.name.clone(),
            started_realtime_ns: self.started_realtime_ns,
            ..compare(&self.record, &self.way, now)
        }
    }
}

/// Returns what is to be said where an earlier run is of another server than the present one.
pub fn other_servers(name: &str, earlier: &RunDocument, now: &RunDocument) -> Option<Limitation> {
    let servers = other_server(earlier, now)?;
    Some(Limitation {
        what: format!("what the run {name} tells need not hold for this server"),
        why: format!("it is of another one: {servers}"),
        remedy: "name a run on this server".into(),
    })
}
