//! Asks a server and the other members for what bears on the disk, without getting in their way.
//!
//! [`FoundDeployment`] is the servers that a connection string leads to, of which one or several are examined; [`Examination::begin`] asks every question once,
//! [`Examination::look`] sees what is running, [`Examination::finish`] asks again for what is worth comparing.
//! Only commands that read are sent, each with a time limit on both sides. Anything refused becomes a
//! [`Limitation`] that names the least right that would grant it ([`rights`]), never an error. No document's
//! value is kept.

mod asking;
mod collation;
mod collections;
mod deployment;
pub mod diagnostic_files;
mod discovery;
mod filters;
mod initial_sync;
mod listing;
mod member;
mod operations;
mod oplog;
pub mod rights;
mod routed;
mod settings;
mod spread;
mod statistics;
mod table_questions;

use seekscope_run::document::Limitation;
use seekscope_run::{ClusterRecord, Deployment, MemberRecord, OperationSeen};

use crate::namespace::Namespace;
use crate::process::ProcFs;
use crate::sampling::Sampler;
use crate::server::Server;

pub use deployment::{SetStatus, members_with_data, refuse_router, replication_lag_s, set_status};
pub use discovery::{FoundDeployment, FoundMember, choose_member};
pub use initial_sync::{CopyCursor, copy_cursors};
pub(crate) use listing::OWN_DATABASES;
pub use routed::{Routed, RoutedShard, ShardPrimary};
pub(crate) use table_questions::TableQuestions;

use std::time::Duration;

use deployment::shard_names;
use futures_util::future::join_all;
use member::Member;
use spread::Spread;

/// Total time for questions to the examined server, at the beginning and at the end.
const BEGIN_TIME: Duration = Duration::from_secs(8);
const END_TIME: Duration = Duration::from_secs(5);
/// The same for every other member, at the beginning and at the end each; all are asked at once.
const OTHERS_TIME: Duration = Duration::from_secs(5);
/// Other members are only compared with the examined one.
const COLLECTIONS_OF_OTHERS: usize = 10;

/// The options of an examination.
#[derive(Debug, Clone)]
pub struct ExaminationOptions {
    /// Collections to be asked about in any case.
    pub collections: Vec<Namespace>,
    /// The most collections that are asked for statistics, besides those above; where there are none of either, the
    /// server is not asked which collections it has.
    pub collections_max: usize,
    /// Which other servers to ask too.
    pub others: OthersAsked,
}

/// Which servers are asked besides the examined one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OthersAsked {
    Nobody,
    /// Every member of its set, or of the shards behind a router.
    All,
    /// The servers with these names: `host:port`.
    Only(Vec<String>),
}

impl Default for ExaminationOptions {
    fn default() -> Self {
        Self {
            collections: Vec::new(),
            collections_max: 20,
            others: OthersAsked::All,
        }
    }
}

/// An examination under way: the server, the other members, and their answers so far.
#[derive(Debug)]
pub struct Examination {
    deployment: Deployment,
    examined: Member,
    others: Vec<Member>,
    /// `None` unless the examined server is a router, and its shards were asked for.
    spread: Option<Spread>,
}

/// The results of an examination.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    pub deployment: Deployment,
    /// All members, the examined one first.
    pub members: Vec<MemberRecord>,
    /// How the data is spread over the shards; `None` unless a router was asked.
    pub cluster: Option<ClusterRecord>,
    pub limitations: Vec<Limitation>,
    /// Commands sent to all servers together.
    pub commands: u64,
}

impl Examination {
    /// Asks every question once: the examined server for at most eight seconds, then all others at once for at
    /// most five.
    pub async fn begin(server: &Server, proc_fs: &ProcFs, options: &ExaminationOptions) -> Self {
        let mut examined = Member::examined(server, BEGIN_TIME);
        let mut fellows = examined
            .introduce(options.others != OthersAsked::Nobody)
            .await;
        let shards = shard_names(&fellows);
        if let OthersAsked::Only(names) = &options.others {
            fellows.retain(|fellow| names.contains(&fellow.name));
        }
        examined.gather(proc_fs, options).await;
        let spread = examined.spread(shards).await;
        let of_others = ExaminationOptions {
            collections: examined.namespaces(COLLECTIONS_OF_OTHERS),
            collections_max: COLLECTIONS_OF_OTHERS,
            others: OthersAsked::Nobody,
        };
        let status = examined.set_status();
        let others = fellows.iter().map(|fellow| async {
            let mut member = Member::fellow(server, fellow, status, OTHERS_TIME);
            if member.greet().await {
                member.gather(proc_fs, &of_others).await;
            }
            member
        });
        Self {
            deployment: examined.deployment(),
            others: join_all(others).await,
            examined,
            spread,
        }
    }

    /// Returns the kind of deployment that the server belongs to.
    pub fn deployment(&self) -> Deployment {
        self.deployment
    }

    /// Returns what is known about the examined server so far.
    pub fn examined(&self) -> &MemberRecord {
        &self.examined.record
    }

    /// Returns what is known about the other members so far.
    pub fn others(&self) -> impl Iterator<Item = &MemberRecord> {
        self.others.iter().map(|member| &member.record)
    }

    /// Returns a sampler of `serverStatus` for each other member that answered.
    pub fn samplers_of_others(&self) -> Vec<Sampler> {
        let reached = self.others.iter().filter_map(Member::sampler);
        reached.collect()
    }

    /// Looks once at what the examined server is doing, and whether it has taken another role in its set; to be
    /// called every second or two. Takes as long as the server does, at most two and a half seconds.
    pub async fn look(&mut self) {
        self.examined.look().await;
    }

    /// Returns the operations that were seen since the last call, the longest first, and forgets them.
    pub fn take_operations(&mut self) -> Vec<OperationSeen> {
        self.examined.take_operations()
    }

    /// Asks again for what is worth comparing, all servers at once; takes at most five seconds.
    pub async fn finish(self) -> Examined {
        let Self {
            deployment,
            mut examined,
            mut others,
            mut spread,
        } = self;
        let of_others = others
            .iter_mut()
            .map(|member| member.finish(OTHERS_TIME, None));
        tokio::join!(
            examined.finish(END_TIME, spread.as_mut()),
            join_all(of_others)
        );
        for other in &mut others {
            other.note_state_of(examined.set_status());
        }
        let mut all = Examined {
            deployment,
            cluster: spread.map(Spread::into_record),
            ..Examined::default()
        };
        for member in std::iter::once(examined).chain(others) {
            let (record, limitations, commands) = member.into_parts();
            all.members.push(record);
            all.limitations.extend(limitations);
            all.commands += commands;
        }
        all
    }
}
