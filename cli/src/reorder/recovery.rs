//! `--resume` and `--rollback`: handle what an interrupted reordering left on the server.

use std::time::Instant;

use anyhow::Result;
use seekscope_reorder::{Pending, ReorderError, RolledBack, pending, resume, rollback};
use seekscope_run::{ReorderPlan, ReorderTask};
use seekscope_server::Namespace;

use super::progress_lines::ProgressLines;
use super::{Reorder, measurement, writers};
use crate::session::Session;

impl Reorder {
    /// Recovers one collection, or all. It is not a failure if nothing is pending.
    pub async fn recover(
        &self,
        namespace: Option<&Namespace>,
        arguments: Vec<String>,
    ) -> Result<()> {
        let task = match self.args.resume {
            true => ReorderTask::Resume,
            false => ReorderTask::Rollback,
        };
        let name = namespace.map_or_else(String::new, ToString::to_string);
        let found = async { Ok(pending(&self.server, namespace).await?) };
        let found = self.interruption.or(found).await?;
        let mut session = self.begin(task, &name, arguments)?;
        let worked = self.each(&mut session, found).await;
        // Whoever stopped the writers may have been killed before resuming them.
        let unknown = |error: &anyhow::Error| {
            matches!(error.downcast_ref(), Some(ReorderError::SwapUnknown { .. }))
        };
        let went_on = match &worked {
            Err(error) if unknown(error) => Ok(()),
            _ => writers::go_on(&self.args.writers).await,
        };
        self.finish(session, worked.and(went_on))
    }

    async fn each(&self, session: &mut Session, found: Vec<Pending>) -> Result<()> {
        for pending in found {
            let record = measurement(&mut session.document);
            record.namespace = pending.namespace.to_string();
            record.by.clone_from(&pending.by);
            let go_on_named = self.args.writers.continue_writers.is_some();
            for sentence in what_was_found(&pending, go_on_named) {
                self.progress.say(&sentence);
                record.recovered.push(sentence);
            }
            match self.args.resume {
                true => self.resume(session, &pending.namespace).await?,
                false => self.roll_back(session, &pending.namespace).await?,
            }
        }
        Ok(())
    }

    async fn resume(&self, session: &mut Session, namespace: &Namespace) -> Result<()> {
        let mut files = self.find_files(session, namespace).await?;
        let plan = ReorderPlan {
            blocking: writers::blocking(&self.server, &self.args.writers).await?,
            ..ReorderPlan::default()
        };
        let folder = session.directory.path().to_path_buf();
        let mut request = self.request(namespace, &plan, &files, folder)?;
        let started = Instant::now();
        let progress_lines = ProgressLines::new(self.progress);
        let work = resume(&self.server, &mut request, &progress_lines, self.stop());
        let done = self.until_stopped(work).await;
        drop(progress_lines);
        self.note_done(session, &mut files, namespace, done?, started)
            .await?;
        let record = measurement(&mut session.document);
        record
            .recovered
            .push(format!("{namespace} was carried on to its end."));
        Ok(())
    }

    /// Rolls back. This is short and can be repeated if interrupted, so signals are not handled.
    async fn roll_back(&self, session: &mut Session, namespace: &Namespace) -> Result<()> {
        let progress_lines = ProgressLines::new(self.progress);
        let rolled_back = rollback(&self.server, namespace, &progress_lines).await?;
        drop(progress_lines);
        let text = match rolled_back {
            RolledBack::Original => format!("{namespace} is as it was; the copy is removed."),
            RolledBack::AlreadySwapped => format!(
                "{namespace} had been replaced by its verified copy already; only what was recorded \
                 about it is removed."
            ),
        };
        measurement(&mut session.document).recovered.push(text);
        session.save()
    }
}

/// Returns sentences on what was found. `go_on_named`: the user named a command that resumes the writers.
fn what_was_found(pending: &Pending, go_on_named: bool) -> Vec<String> {
    let blocked = match pending.writes_blocked {
        true => ", with the server's writes blocked",
        false => "",
    };
    let mut found = vec![format!(
        "{} was left in the phase {}, in the order {}, by {}{blocked}.",
        pending.namespace,
        pending.phase.name(),
        pending.by,
        pending.worker
    )];
    if pending.writers_paused {
        found.push(match go_on_named {
            true => "Its writers had been paused; the command of --continue-writers lets them go on.".into(),
            false => "Its writers had been paused by the command of --pause-writers, and stay so: nothing \
                      here lets them go on, since no --continue-writers is named. Let them go on yourself."
                .into(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use seekscope_reorder::Phase;

    use super::*;

    #[test]
    fn paused_writers_are_told_of_with_what_lets_them_go_on() {
        let mut pending = Pending {
            namespace: "shop.orders".parse().unwrap(),
            phase: Phase::Indexed,
            by: "natural".into(),
            worker: "seekscope 1, process 7 on h".into(),
            alive: false,
            writes_blocked: false,
            writers_paused: false,
        };
        assert_eq!(what_was_found(&pending, false).len(), 1);
        pending.writers_paused = true;
        let unnamed = what_was_found(&pending, false).join(" ");
        assert!(unnamed.contains("Let them go on yourself"), "{unnamed}");
        let named = what_was_found(&pending, true).join(" ");
        assert!(named.contains("lets them go on"), "{named}");
    }
}
