//! `seekscope reorder`: rewrites a collection in scan order or in that of an index. Contains the plan, its
//! execution, and the recovery after an interruption.
//!
//! `plan` predicts from the layout (`collection_files`), the server's statistics and its writes, with times
//! from `duration`; `apply` lets the library do the work and measures again, and `judge` decides before the
//! swap; `recovery` resumes and rolls back; `results` shows what the records say.

mod apply;
mod clustering;
mod collection_files;
mod duration;
mod judge;
mod plan;
mod progress_lines;
mod recovery;
mod results;
pub mod summary;
mod write_rate;
mod writers;

pub use results::show;

use anyhow::Result;
use seekscope_reorder::{By, Definition, check_room};
use seekscope_run::{MemberState, ReorderMeasurement, ReorderTask, RunDocument, visible};
use seekscope_server::{Namespace, ProcFs, Server};
use seekscope_workload::IndexKeys;

use crate::args::ReorderArgs;
use crate::environment::Environment;
use crate::exit::{Elsewhere, Usage};
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::Session;
use crate::{disk, ending};
use collection_files::CollectionFiles;
use plan::Subject;

/// Runs the command.
pub async fn run(
    mut args: ReorderArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let namespace: Option<Namespace> = args
        .collection
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: seekscope_server::NamespaceError| Usage(error.to_string()))?;
    let by = order(&args.by)?;
    disk::measure_first(&mut args.disk, args.output, environment, &arguments).await?;
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let server = {
        let _step = progress.step("connecting");
        interruption
            .or(async { Ok(Server::connect(&args.uri).await?) })
            .await?
    };
    let command = Reorder {
        args,
        server,
        by,
        progress,
        interruption,
    };
    match namespace {
        Some(namespace) if !(command.args.resume || command.args.rollback) => {
            command.plan_or_apply(&namespace, arguments).await
        }
        namespace => command.recover(namespace.as_ref(), arguments).await,
    }
}

/// The running command.
struct Reorder {
    args: ReorderArgs,
    server: Server,
    by: By,
    progress: Progress,
    interruption: Interruption,
}

impl Reorder {
    async fn plan_or_apply(&self, namespace: &Namespace, arguments: Vec<String>) -> Result<()> {
        let definition = self.refuse(namespace).await?;
        let task = match self.args.apply {
            true => ReorderTask::Apply,
            false => ReorderTask::Plan,
        };
        let mut session = self.begin(task, &namespace.to_string(), arguments)?;
        let worked = self
            .plan_and_apply(&mut session, namespace, &definition)
            .await;
        self.finish(session, worked)
    }

    /// Refuses a process that is not the server's, servers where it cannot be done and collections that cannot be
    /// reordered, before anything is created. Returns what the collection is.
    async fn refuse(&self, namespace: &Namespace) -> Result<Definition> {
        let server = async {
            if self.args.pid.is_some() {
                let proc_fs = ProcFs::host();
                self.server
                    .facts_with_process(self.args.pid, &proc_fs)
                    .await?;
            }
            self.refuse_server().await
        };
        self.interruption.or(server).await?;
        let definition = async { Ok(Definition::read(&self.server, namespace).await?) };
        let definition = self.interruption.or(definition).await?;
        if let Some(why) = definition.refusal(&self.by, self.args.writers.quiesced) {
            let name = visible(&namespace.to_string());
            return Err(Elsewhere(format!("{name} cannot be reordered: {why}")).into());
        }
        let room = async { Ok(check_room(&self.server, namespace).await?) };
        self.interruption.or(room).await?;
        Ok(definition)
    }

    /// Refuses an arbiter, and to write to a member that takes no writes.
    async fn refuse_server(&self) -> Result<()> {
        // One that does not answer says so when it is asked for the collection.
        let Ok(hello) = self.server.hello().await else {
            return Ok(());
        };
        let why = match hello.state {
            MemberState::Arbiter => "is an arbiter, which has no data",
            _ if self.args.apply && !hello.is_writable => "is not a primary and accepts no writes",
            _ => return Ok(()),
        };
        Err(Elsewhere(format!(
            "{} {why}: leave directConnection=true out of the connection string, and the copy is made at the primary",
            self.server.shown_uri()
        ))
        .into())
    }

    fn begin(&self, task: ReorderTask, namespace: &str, arguments: Vec<String>) -> Result<Session> {
        let mut session = Session::begin("reorder", arguments, self.args.out.as_deref())?;
        session.document.reorder = Some(ReorderMeasurement {
            namespace: namespace.into(),
            by: self.by.to_string(),
            task,
            ..ReorderMeasurement::default()
        });
        session.save()?;
        Ok(session)
    }

    async fn plan_and_apply(
        &self,
        session: &mut Session,
        namespace: &Namespace,
        definition: &Definition,
    ) -> Result<()> {
        let mut files = self.find_files(session, namespace).await?;
        let layout = files
            .layout(
                namespace,
                &self.args.disk,
                &mut session.document,
                &self.interruption,
            )
            .await?;
        let subject = Subject {
            server: &self.server,
            namespace,
            by: definition.order_keys(&self.by),
            args: &self.args,
            progress: self.progress,
        };
        let plan = subject.plan(&files, layout.as_ref(), &mut session.document);
        let plan = self.interruption.or(plan).await?;
        let record = measurement(&mut session.document);
        record.before = layout.map(|layout| layout.layout);
        record.plan = Some(plan);
        session.save()?;
        if self.args.apply {
            self.apply(session, &mut files, namespace).await?;
        }
        Ok(())
    }

    async fn find_files(
        &self,
        session: &mut Session,
        namespace: &Namespace,
    ) -> Result<CollectionFiles> {
        let found =
            CollectionFiles::find(&self.server, namespace, &self.args, &mut session.document);
        self.interruption.or(async { Ok(found.await) }).await
    }

    /// Ends the run and shows it, whatever the result.
    fn finish(&self, mut session: Session, worked: Result<()>) -> Result<()> {
        ending::end(&mut session, worked, self.progress, |session| {
            show(session, &self.args.output, self.progress)
        })
    }
}

/// Returns this command's record, which `begin` made.
fn measurement(document: &mut RunDocument) -> &mut ReorderMeasurement {
    document.reorder.get_or_insert_default()
}

fn order(text: &str) -> Result<By, Usage> {
    if text.trim() == "natural" {
        return Ok(By::Natural);
    }
    let keys = IndexKeys::parse(text).map_err(|error| {
        Usage(format!(
            "--by {error}; write natural, or the keys of an index as JSON"
        ))
    })?;
    Ok(By::Index(keys.document().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_natural_or_keys() {
        assert_eq!(order("natural").unwrap(), By::Natural);
        let By::Index(keys) = order(r#"{"client": 1, "date": -1}"#).unwrap() else {
            panic!()
        };
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["client", "date"]);
        assert!(order("sideways").is_err());
    }
}
