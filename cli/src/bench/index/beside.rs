//! Index builds beside other load: each build is a step of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use seekscope_client::{Job, Retries, ScheduleKind, Second};
use seekscope_run::Arrivals;
use seekscope_workload::index_lab::{Built, Concluded, IndexKind, IndexLab, p99_ns};

use super::{Bench, COLLECTION};
use crate::args::WarmUpName;
use crate::bench::client_choice::wanted;
use crate::bench::stage::{Stage, StepPlan};
use crate::bench::target::Target;

/// How often to check whether the other load has begun.
const LOOK: Duration = Duration::from_millis(20);
/// An operation that waits longer than this for a build counts as failed.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);
const FAILURES_MAX: u64 = 10_000;

impl Bench<'_> {
    /// Builds an index while another load runs, as a separate step.
    pub(super) async fn build_beside(
        &self,
        stage: &mut Stage,
        target: &Target,
        lab: &IndexLab,
        kind: &IndexKind,
        repetition: u32,
        per_s: f64,
    ) -> Result<Concluded> {
        let stop = Arc::new(AtomicBool::new(false));
        let seconds: Arc<Mutex<Vec<Second>>> = Arc::default();
        let plan = self.foreground(lab, kind, repetition, per_s, &stop, &seconds);
        let has_ended = AtomicBool::new(false);
        let building = async {
            // The server writes a checkpoint before a step, which takes a while.
            if !has_begun(&seconds, &has_ended).await {
                return Ok(None);
            }
            tokio::time::sleep(self.args.margin).await;
            // A build waits for the votes of all members, also of a primary that is gone.
            if target.change_of_primary().await.is_some() {
                stop.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            let built = lab.create(kind, &|_| ()).await;
            tokio::time::sleep(self.args.margin).await;
            stop.store(true, Ordering::Relaxed);
            Ok(Some(built?))
        };
        let interruption = stage.interruption.clone();
        let stepping = async {
            let stepped = stage.step(target, plan).await;
            has_ended.store(true, Ordering::Relaxed);
            stepped
        };
        let (stepped, built) = tokio::join!(stepping, interruption.or(building));
        let built: Option<Built> = built?;
        stepped?;
        let built = built.ok_or_else(|| anyhow!("the other load ended before the build began"))?;
        let cleaned = async { Ok(lab.remove_inserted().await?) };
        interruption.or(cleaned).await?;
        let p99 = p99_ns(
            &seconds.lock().unwrap_or_else(PoisonError::into_inner),
            &built,
        );
        let concluding = async { Ok(lab.conclude(kind, repetition, built).await?) };
        let mut concluded = interruption.or(concluding).await?;
        concluded.build.foreground_p99_ns = p99;
        Ok(concluded)
    }

    fn foreground(
        &self,
        lab: &IndexLab,
        kind: &IndexKind,
        repetition: u32,
        per_s: f64,
        stop: &Arc<AtomicBool>,
        seconds: &Arc<Mutex<Vec<Second>>>,
    ) -> StepPlan {
        let in_flight = self.args.in_flight as usize;
        StepPlan {
            name: format!("beside {} {repetition}", kind.name),
            kind: "run",
            workload_name: "point operations".into(),
            repetition,
            workload: Arc::new(lab.point_operations(self.args.seed)),
            database: self.args.target.database.clone(),
            collections: vec![COLLECTION.into()],
            client: wanted(self.args.client),
            job: Job {
                schedule: ScheduleKind::Constant { per_s },
                in_flight,
                threads: 1,
                transactions: None,
                duration: None,
                timeout: OPERATION_TIMEOUT,
                start_at_ns: None,
                retries: Retries::default(),
                failures_in_a_row_max: Some(FAILURES_MAX),
            },
            arrivals: Arrivals::Constant { per_s },
            // The effect of the build on the load must not be left out.
            warm_up: WarmUpName::None,
            expected: None,
            stop: Some(Arc::clone(stop)),
            keep_seconds: Some(Arc::clone(seconds)),
        }
    }
}

/// Waits for the first second of a load; returns `false` if the load ended before.
async fn has_begun(seconds: &Mutex<Vec<Second>>, has_ended: &AtomicBool) -> bool {
    let is_empty = || {
        let seconds = seconds.lock().unwrap_or_else(PoisonError::into_inner);
        seconds.is_empty()
    };
    while is_empty() {
        if has_ended.load(Ordering::Relaxed) {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_build_waits_for_its_other_load() {
        let seconds = Mutex::new(Vec::new());
        let has_ended = AtomicBool::new(false);
        let (begun, ()) = tokio::join!(has_begun(&seconds, &has_ended), async {
            tokio::task::yield_now().await;
            let first = Second {
                t_ns: 0,
                duration_ns: 1_000_000_000,
                operations: Vec::new(),
                transactions: 0,
                in_flight: 0.0,
                lag: seekscope_run::latency_histogram(),
                backlog: 0,
                client_cpu_ns: 0,
            };
            seconds.lock().unwrap().push(first);
        });
        assert!(begun);
        // A load that could not begin must not be waited for.
        seconds.lock().unwrap().clear();
        has_ended.store(true, Ordering::Relaxed);
        assert!(!has_begun(&seconds, &has_ended).await);
    }
}
