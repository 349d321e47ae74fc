//! Converts roles as written to workloads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use seekscope_client::{FailureKind, Job, Operation, OperationId, Retries, ScheduleKind};

use super::records::Slice;
use super::step::{Ends, Made, Step, StepAction, Steps, TransactionPlan, collection_of, kind_of};
use crate::generators::Weighted;
use crate::own::error::Fault;
use crate::own::language::{self, Action, Arrivals, ErrorPolicy, Reaction, Role};
use crate::own::values::key_of;

/// Default time limit of a request; building an index may take a day.
const TIMEOUT: Duration = Duration::from_secs(60);
const BUILD_TIMEOUT: Duration = Duration::from_secs(86_400);
/// The most virtual users of a role: each has a connection.
const USERS_MAX: usize = 10_000;
/// Number of consecutive failures after which a role fails.
const FAILURES_IN_A_ROW_MAX: u64 = 10_000;

/// A role that can be run: a [`seekscope_client::Workload`], and settings for the engine.
#[derive(Debug, Clone)]
pub struct RolePlan {
    pub name: String,
    pub(crate) mix: Arc<Mix>,
    pub users: usize,
    arrivals: Arrivals,
    pub end: RoleEnd,
    timeout: Duration,
    seed: u64,
    slice: Slice,
}

/// The end of a role. One without either ends when its work is done or, in the background, when the others
/// have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleEnd {
    pub duration: Option<Duration>,
    pub transactions: Option<u64>,
    pub background: bool,
}

/// State shared by all users of a role.
#[derive(Debug)]
pub(crate) struct Mix {
    pub(crate) operations: Vec<Operation>,
    pub(crate) transactions: Vec<TransactionPlan>,
    pub(crate) choice: Weighted<usize>,
    pub(crate) reactions: Reactions,
    pub(crate) seed: u64,
    /// Set by a user that meets an error after which the role stops.
    pub(crate) stopped: AtomicBool,
}

/// A resolved error policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reactions(ErrorPolicy);

impl Reactions {
    pub(crate) fn to_failure(&self, kind: FailureKind) -> Reaction {
        let policy = &self.0;
        let named = match kind {
            FailureKind::Connection => policy.connection,
            FailureKind::Timeout => policy.timeout,
            FailureKind::Duplicate => policy.duplicate,
            FailureKind::NotPrimary | FailureKind::Transient => policy.transient,
            FailureKind::WriteConcern => policy.write_concern,
            FailureKind::Unauthorised => policy.unauthorised,
            FailureKind::NoSpace => policy.no_space,
            FailureKind::Server => policy.server,
            FailureKind::Client | FailureKind::Malformed | FailureKind::Unsupported => None,
        };
        named.unwrap_or(policy.default)
    }

    pub(crate) fn to_missing(&self) -> Reaction {
        self.0.not_found.unwrap_or(self.0.default)
    }
}

impl RolePlan {
    pub(super) fn new(
        role: &Role,
        path: &str,
        phase: &language::Phase,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Self, Fault> {
        if !(1..=USERS_MAX).contains(&role.users) {
            return Err(Fault::new(
                format!("{path}.users"),
                format!("1 to {USERS_MAX} users are possible"),
            ));
        }
        let mut names = Names::default();
        let mut transactions = Vec::new();
        for (index, operation) in role.operations.iter().enumerate() {
            let path = format!("{path}.operations[{index}]");
            transactions.push(transaction(operation, &path, steps, &mut names)?);
        }
        let weights: Vec<_> = role
            .operations
            .iter()
            .map(|operation| operation.weight)
            .enumerate()
            .collect();
        let choice = Weighted::new(&weights).ok_or_else(|| {
            Fault::new(
                format!("{path}.operations"),
                "give at least one a weight above 0",
            )
        })?;
        let place = format!("{}.{}.{}", phase.name, role.name, steps.slice.number);
        let seed = key_of(steps.fields.seed(), &place);
        let mix = Mix {
            operations: names.operations,
            transactions,
            choice,
            reactions: Reactions(role.errors.clone()),
            seed,
            stopped: AtomicBool::new(false),
        };
        let builds = actions(role).any(|action| matches!(action, Action::CreateIndex(_)));
        Ok(Self {
            name: role.name.clone(),
            mix: Arc::new(mix),
            users: role.users,
            arrivals: role.arrivals.clone(),
            end: end(role, phase, path)?,
            timeout: role
                .timeout
                .map_or(if builds { BUILD_TIMEOUT } else { TIMEOUT }, |time| time.0),
            seed,
            slice: steps.slice,
        })
    }

    /// Returns whether it only loads.
    pub fn is_load(&self) -> bool {
        let is_load =
            |plan: &TransactionPlan| matches!(plan.steps[0].action, StepAction::Load { .. });
        self.mix.transactions.iter().all(is_load)
    }

    /// Returns when transactions start, over all processes. `reached_per_s` is the rate reached by the role
    /// named in a share of a rate; needed only in that case.
    pub fn arrivals(&self, reached_per_s: Option<f64>) -> Arrivals {
        let Arrivals::Share(share) = &self.arrivals else {
            return self.arrivals.clone();
        };
        // A rate of zero would never end.
        let per_s = (reached_per_s.unwrap_or(0.0) * share.percent / 100.0).max(1e-3);
        match share.poisson {
            true => Arrivals::Poisson(per_s),
            false => Arrivals::Constant(per_s),
        }
    }

    /// Returns the job for the engine: this process's part. `reached_per_s` is as in [`Self::arrivals`].
    pub fn job(&self, threads: usize, reached_per_s: Option<f64>) -> Job {
        let Slice { number, count } = self.slice;
        let part = |per_s: f64| per_s / count as f64;
        let schedule = match self.arrivals(reached_per_s) {
            Arrivals::Constant(per_s) => ScheduleKind::Constant { per_s: part(per_s) },
            Arrivals::Poisson(per_s) => ScheduleKind::Poisson {
                per_s: part(per_s),
                seed: self.seed,
            },
            Arrivals::Ramp(ramp) => ScheduleKind::Ramp {
                from_per_s: part(ramp.from),
                to_per_s: part(ramp.to),
                over: ramp.over.0,
            },
            Arrivals::Closed | Arrivals::Share(_) => ScheduleKind::Closed,
        };
        let transactions = self
            .end
            .transactions
            .map(|all| all / count + u64::from(number < all % count));
        Job {
            schedule,
            in_flight: self.users,
            threads: threads.clamp(1, self.users),
            transactions,
            duration: self.end.duration,
            timeout: self.timeout,
            start_at_ns: None,
            retries: Retries::default(),
            failures_in_a_row_max: Some(FAILURES_IN_A_ROW_MAX),
        }
    }

    /// Returns the phase, and the role if it has several, that a share of a rate refers to.
    pub fn share_of(&self) -> Option<(&str, Option<&str>)> {
        match &self.arrivals {
            Arrivals::Share(share) => Some((&share.phase, share.role.as_deref())),
            _ => None,
        }
    }
}

/// Returns a role's actions, including the steps of transactions.
pub(super) fn actions(role: &Role) -> impl Iterator<Item = &Action> {
    let steps = role
        .operations
        .iter()
        .flat_map(|operation| match &operation.action {
            Action::Transaction(transaction) => &transaction.steps,
            _ => std::slice::from_ref(operation),
        });
    steps.map(|step| &step.action)
}

fn end(role: &Role, phase: &language::Phase, path: &str) -> Result<RoleEnd, Fault> {
    let all = |is_meant: fn(&Action) -> bool| {
        role.operations
            .iter()
            .all(|operation| is_meant(&operation.action))
    };
    let loads = all(|action| matches!(action, Action::Load(_)));
    let once = all(|action| matches!(action, Action::CreateIndex(_) | Action::DropIndex(_)));
    let duration = role.duration.or(phase
        .duration
        .filter(|_| !loads && !once && !role.background));
    let own_end = RoleEnd {
        duration: duration.map(|time| time.0),
        transactions: role.transactions.or(once.then_some(1)),
        background: role.background,
    };
    if own_end.duration.is_none() && own_end.transactions.is_none() && !loads && !role.background {
        let message =
            "never ends; give it (or its phase) a duration, or transactions, or background = true";
        return Err(Fault::new(path, message));
    }
    Ok(own_end)
}

/// Operations by name; those with the same name count as one.
#[derive(Default)]
struct Names {
    operations: Vec<Operation>,
}

impl Names {
    fn id(&mut self, name: String, is_transaction: bool, path: &str) -> Result<OperationId, Fault> {
        let known = self
            .operations
            .iter()
            .position(|operation| operation.name == name);
        let place = match known {
            Some(place) if self.operations[place].is_transaction != is_transaction => {
                let message = format!("{name:?} names both a transaction and a single request");
                return Err(Fault::new(path, message));
            }
            Some(place) => place,
            None => {
                self.operations.push(Operation {
                    name,
                    is_transaction,
                });
                self.operations.len() - 1
            }
        };
        OperationId::try_from(place).map_err(|_| Fault::new(path, "there are too many operations"))
    }
}

fn transaction(
    operation: &language::Operation,
    path: &str,
    steps: &mut Steps<'_, '_>,
    names: &mut Names,
) -> Result<TransactionPlan, Fault> {
    let Action::Transaction(written) = &operation.action else {
        let step = step(operation, path, true, steps, names)?;
        return Ok(TransactionPlan {
            operation: step.operation,
            steps: vec![step],
            atomic: None,
            go_on: false,
        });
    };
    let path = format!("{path}.transaction.steps");
    if written.steps.is_empty() || written.steps.len() > 1_000 {
        return Err(Fault::new(path, "a transaction must have 1 to 1000 steps"));
    }
    if written.atomic && written.go_on {
        return Err(Fault::new(
            path,
            "an atomic transaction cannot continue after a failure",
        ));
    }
    let name = operation
        .name
        .clone()
        .unwrap_or_else(|| "transaction".into());
    let id = names.id(name, true, &path)?;
    let mut made = Vec::new();
    for (index, inner) in written.steps.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if matches!(inner.action, Action::Load(_)) {
            return Err(Fault::new(path, "load cannot be part of a transaction"));
        }
        made.push(step(inner, &path, index == 0, steps, names)?);
    }
    let mut atomic = None;
    if written.atomic {
        // Commits and aborts are requests too, and are counted separately.
        let commit = names.id("commit".into(), false, &path)?;
        let abort = names.id("abort".into(), false, &path)?;
        atomic = Some(Ends { commit, abort });
    }
    Ok(TransactionPlan {
        operation: id,
        steps: made,
        atomic,
        go_on: written.go_on,
    })
}

fn step(
    operation: &language::Operation,
    path: &str,
    is_first: bool,
    steps: &mut Steps<'_, '_>,
    names: &mut Names,
) -> Result<Step, Fault> {
    let name = operation.name.clone().unwrap_or_else(|| {
        let (collection, _) = collection_of(&operation.action);
        [kind_of(&operation.action), collection.unwrap_or_default()]
            .join(" ")
            .trim()
            .to_string()
    });
    let Made {
        records,
        chooser,
        action,
        must_find,
    } = steps.make(path, operation, is_first)?;
    let operation_id = names.id(name, false, path)?;
    Ok(Step {
        operation: operation_id,
        records,
        chooser,
        repeat: operation.repeat,
        action,
        must_find,
    })
}
