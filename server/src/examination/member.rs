//! One server of the deployment during its examination.

use std::time::Duration;

use mongodb::bson::doc;
use seekscope_run::document::Limitation;
use seekscope_run::{
    Deployment, MemberRecord, MemberState, OperationSeen, RoleChange, monotonic_ns,
};

use super::ExaminationOptions;
use super::asking::Asker;
use super::collections::Collections;
use super::deployment::{Fellow, SetStatus, shards};
use super::operations::Looks;
use super::spread::Spread;
use super::{oplog, rights, settings};
use crate::hello::Hello;
use crate::namespace::Namespace;
use crate::process::ProcFs;
use crate::sampling::{Sampler, server_status};
use crate::server::Server;

/// Time limit for connecting to another member. It is below the limit for an answer, so that the reason becomes
/// known.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// One look must not delay the next for long.
const LOOK_TIME: Duration = Duration::from_millis(2_500);

/// A member of the deployment, the connection to it, and its answers so far.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) record: MemberRecord,
    /// `None` for one that cannot be asked at all.
    asker: Option<Asker>,
    hello: Hello,
    status: SetStatus,
    collections: Collections,
    looks: Looks,
    is_examined: bool,
}

impl Member {
    /// Creates the examined server, through a direct connection.
    pub(super) fn examined(server: &Server, time: Duration) -> Self {
        let name = server.seeds().into_iter().next();
        Self {
            record: MemberRecord {
                name: name.unwrap_or_else(|| server.shown_uri()),
                ..MemberRecord::default()
            },
            asker: Some(Asker::new(server, None, time)),
            hello: Hello::default(),
            status: SetStatus::default(),
            collections: Collections::default(),
            looks: Looks::default(),
            is_examined: true,
        }
    }

    /// Creates another member from what the examined server's set says about it.
    pub(super) fn fellow(
        server: &Server,
        fellow: &Fellow,
        status: &SetStatus,
        time: Duration,
    ) -> Self {
        let connected = server.member(&fellow.name, CONNECT_LIMIT);
        let not_asked = connected.as_ref().err().map(ToString::to_string);
        let asker = connected.ok();
        Self {
            record: MemberRecord {
                name: fellow.name.clone(),
                shard: fellow.shard.clone(),
                state: status.state(&fellow.name).unwrap_or_default(),
                lag_s: status.lag_s(&fellow.name),
                not_asked,
                ..MemberRecord::default()
            },
            asker: asker.map(|server| Asker::new(&server, Some(&fellow.name), time)),
            hello: Hello::default(),
            status: SetStatus::default(),
            collections: Collections::default(),
            looks: Looks::default(),
            is_examined: false,
        }
    }

    /// Asks the examined server what it is and, with `members`, which other members there are.
    pub(super) async fn introduce(&mut self, members: bool) -> Vec<Fellow> {
        let Some(asker) = &mut self.asker else {
            return Vec::new();
        };
        match Hello::ask(asker).await {
            Ok(hello) => {
                note_role(&mut self.record, &hello);
                asker.is_of_router = hello.is_router();
                self.hello = hello;
            }
            Err(error) => {
                let what = "the server's role in its replica set";
                asker.note(what, &error, rights::remedy("hello"));
                return Vec::new();
            }
        }
        let given = self.record.name.clone();
        if let Some(name) = &self.hello.me {
            self.record.name = name.clone();
        }
        match self.hello.deployment() {
            Deployment::Standalone => Vec::new(),
            Deployment::Sharded if members => shards(asker).await,
            Deployment::Sharded => Vec::new(),
            Deployment::ReplicaSet => {
                self.status = SetStatus::ask(asker).await;
                if let (MemberState::Other, Some(state)) = (self.hello.state, self.status.own_state)
                {
                    self.record.state = state;
                }
                self.record.lag_s = self.status.lag_s(&self.record.name);
                self.looks.initial_sync(self.status.initial_sync);
                let fellows = self.hello.fellows(&given, &self.status);
                if members { fellows } else { Vec::new() }
            }
        }
    }

    /// Asks a router how the data is spread over its shards. `None` for other servers, and where no shards are known.
    pub(super) async fn spread(&mut self, shards: Vec<String>) -> Option<Spread> {
        let asker = self.asker.as_mut()?;
        match self.hello.is_router() && !shards.is_empty() {
            true => Some(Spread::begin(asker, shards).await),
            false => None,
        }
    }

    /// Returns whether another member answers and has data. If not, its record says why.
    pub(super) async fn greet(&mut self) -> bool {
        let Some(asker) = &mut self.asker else {
            return false;
        };
        match Hello::ask(asker).await {
            Ok(hello) => {
                note_role(&mut self.record, &hello);
                self.hello = hello;
            }
            Err(error) => self.record.not_asked = Some(error.to_string()),
        }
        if self.record.state == MemberState::Arbiter {
            self.record.not_asked = Some("an arbiter has no data".into());
        }
        if self.record.not_asked.is_some() {
            self.asker = None;
        }
        self.asker.is_some()
    }

    /// Asks every question once.
    pub(super) async fn gather(&mut self, proc_fs: &ProcFs, options: &ExaminationOptions) {
        let Some(asker) = &mut self.asker else {
            return;
        };
        let build = asker
            .ask_or_note("admin", doc! { "buildInfo": 1 }, "the server's version")
            .await;
        let what = "its settings and data directory";
        let cmd_line = asker
            .ask_or_note("admin", doc! { "getCmdLineOpts": 1 }, what)
            .await;
        let status = asker
            .ask_or_note(
                "admin",
                server_status::command(),
                "its counters and cache size",
            )
            .await;
        self.looks.note_default(&status);
        if self.is_examined {
            self.looks.note_begin(&status);
        }
        let mut target = asker.server.target_facts(&build, &cmd_line, &status);
        // Nothing needs the process of another member, and finding it takes time.
        if self.is_examined {
            let told = asker.server.told_pid(&status).await;
            let located = asker.server.locate(&mut target, told, proc_fs).await;
            asker.missing.extend(located.err());
        }
        self.record.target = target;
        self.record.options = settings::options(&cmd_line);
        let parameters = settings::parameters(asker).await;
        self.record.parameters = parameters.values;
        self.record.compatibility_version = parameters.compatibility_version;
        self.record.warnings = settings::warnings(asker).await;
        if self.hello.has_company() {
            self.record.oplog = oplog::facts(asker).await;
        }
        if self.is_examined {
            self.looks.look(asker).await;
        }
        if self.hello.is_router() {
            // The members of its shards say what their collections are like.
            return;
        }
        if options.collections_max == 0 && options.collections.is_empty() {
            return;
        }
        self.collections
            .begin(asker, options, self.hello.state)
            .await;
    }

    /// See [`super::Examination::look`].
    pub(super) async fn look(&mut self) {
        if let Some(asker) = &mut self.asker {
            asker.allow(LOOK_TIME);
            self.looks.look(asker).await;
        }
        self.look_at_role().await;
    }

    /// See [`super::Examination::take_operations`].
    pub(super) fn take_operations(&mut self) -> Vec<OperationSeen> {
        self.looks.take()
    }

    /// Asks again for what is compared with the beginning.
    pub(super) async fn finish(&mut self, time: Duration, spread: Option<&mut Spread>) {
        if let Some(asker) = &mut self.asker {
            asker.allow(time);
            if let Some(spread) = spread {
                spread.finish(asker).await;
            }
            self.collections.finish(asker).await;
            self.record.slow_log_s = self.looks.read_log(asker).await;
        }
        self.look_at_role().await;
        self.look_at_lag().await;
    }

    /// Asks the set again how far the member is behind. One that does not answer keeps what was known.
    async fn look_at_lag(&mut self) {
        let is_of_set = self.hello.deployment() == Deployment::ReplicaSet;
        let Some(asker) = self.asker.as_mut().filter(|_| is_of_set) else {
            return;
        };
        let reply = asker.ask("admin", doc! { "replSetGetStatus": 1 }).await;
        let Ok(status) = reply.map(|reply| SetStatus::read(&reply)) else {
            return;
        };
        let lag_s = status.lag_s(&self.record.name);
        self.status = status;
        if lag_s.is_some() {
            self.record.lag_at_begin_s = self.record.lag_s;
            self.record.lag_s = lag_s;
        }
    }

    /// Notes the first change of what it is to the others. One that does not answer has not changed.
    async fn look_at_role(&mut self) {
        let unchanged = self.record.role_change.is_none() && self.hello.set.is_some();
        if let (true, Some(asker)) = (unchanged, &mut self.asker)
            && let Ok(hello) = Hello::ask(asker).await
            && hello.state != self.hello.state
        {
            self.note_change(hello.state);
        }
    }

    /// Notes what another member's set says of it in the end, if that is another state than in the beginning: one that
    /// has gone does not say so itself.
    pub(super) fn note_state_of(&mut self, status: &SetStatus) {
        let before = self.record.state;
        let state = status.state(&self.record.name);
        let unchanged = self.record.role_change.is_none() && before != MemberState::Other;
        if let Some(state) = state.filter(|state| unchanged && *state != before) {
            self.note_change(state);
        }
    }

    fn note_change(&mut self, state: MemberState) {
        self.record.role_change = Some(RoleChange {
            state,
            seen_ns: monotonic_ns(),
        });
    }

    pub(super) fn deployment(&self) -> Deployment {
        self.hello.deployment()
    }

    pub(super) fn set_status(&self) -> &SetStatus {
        &self.status
    }

    /// Returns the collections that were asked about, at most `max`.
    pub(super) fn namespaces(&self, max: usize) -> Vec<Namespace> {
        self.collections.namespaces(max)
    }

    pub(super) fn sampler(&self) -> Option<Sampler> {
        let asker = self.asker.as_ref()?;
        Some(Sampler::of_member(&self.record.name, &asker.server))
    }

    /// Returns the record, what is missing from it, and the number of commands sent.
    pub(super) fn into_parts(self) -> (MemberRecord, Vec<Limitation>, u64) {
        let mut record = self.record;
        record.operations = self.looks.seen();
        record.operation_looks = self.looks.count();
        record.fsync_lock_looks = self.looks.fsync_lock_count();
        record.collections_left_out = self.collections.left_out;
        record.collections = self.collections.into_facts();
        match self.asker {
            Some(asker) => {
                record.untold = asker.untold;
                (record, asker.missing, asker.commands)
            }
            None => (record, Vec::new(), 0),
        }
    }
}

/// Records what a server says it is. The word for one that serves nobody is known from its set.
fn note_role(record: &mut MemberRecord, hello: &Hello) {
    if hello.state != MemberState::Other {
        record.state = hello.state;
    }
    record.delay_s = hello.delay_s.map(|s| s as f64);
    record.hidden = hello.is_hidden;
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn fellow(name: String, status: &SetStatus) -> Member {
        let server = Server::unasked("mongodb://me:QZ9Xsecret@127.0.0.1:1/?directConnection=true");
        let fellow = Fellow { name, shard: None };
        Member::fellow(
            &server.await.unwrap(),
            &fellow,
            status,
            Duration::from_secs(5),
        )
    }

    #[tokio::test]
    async fn one_that_hangs_and_one_that_is_not_there_say_why() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hangs = silent.local_addr().unwrap().to_string();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = closed.local_addr().unwrap().to_string();
        drop(closed);
        let options = ExaminationOptions::default();
        for name in [hangs, gone, "not a name".into()] {
            let mut member = fellow(name.clone(), &SetStatus::default()).await;
            assert!(!member.greet().await);
            member.gather(&ProcFs::host(), &options).await;
            member.look().await;
            member.finish(Duration::from_secs(5), None).await;
            assert!(member.sampler().is_none());
            let (record, _, commands) = member.into_parts();
            let why = record.not_asked.unwrap();
            assert_eq!(record.name, name);
            assert!(!why.contains("QZ9X"), "{why}");
            assert!(commands <= 1, "{name} was asked again");
        }
    }
}
