//! Tells whether less is examined for a finding's operations than was.
//!
//! An index spares what is examined. CPUs that others have left spare waiting, and then operations are quicker, or in the
//! log no more, although each examines as much as it did.

use seekscope_run::{Finding, MemberRecord, OperationKind, OperationSeen};

use super::logged::InLog;
use super::work::{self, Load};
use super::{Examined, SAME_WITHIN};

/// Share of what an operation examined that must be spared at least.
const SPARED_EACH_MIN: f64 = 0.5;
/// The same of what all operations examined together that are in the log no more: of two kinds of them, one is not credited
/// with what the other no longer examines.
const SPARED_MIN: f64 = 0.8;

/// Returns whether what is examined explains that its operations take less time.
pub(super) fn is_less(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> bool {
    is_less_for_each(finding, earlier, now)
        || is_less_in_all(finding, earlier, now).unwrap_or(false)
}

/// By the log, where both have such operations.
fn is_less_for_each(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> bool {
    let each = |run| InLog::of(finding, run)?.examined_each();
    let both = each(earlier).zip(each(now));
    both.is_some_and(|(then, now)| now <= then * (1.0 - SPARED_EACH_MIN))
}

/// By the documents that the server examined for the same work. They have to be fewer by what the operations examined that
/// the log lacks now, and by more than noise; without a log, by what all of them did.
fn is_less_in_all(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<bool> {
    let documents_per_s = |run: Examined<'_>| run.diagnosis.answers.work?.documents_examined_per_s;
    let (then, left) = documents_per_s(earlier).zip(documents_per_s(now))?;
    let asked = work::compared(finding, earlier, now)?;
    let spared = then - left * Load::scale(&asked);
    let gone = left_the_log_per_s(finding, earlier, now).unwrap_or(then);
    Some(then > 0.0 && spared >= (gone * SPARED_MIN).max(then * SAME_WITHIN))
}

/// Returns the documents that those operations examined of which the log tells no more, those of the finding included, per
/// second.
fn left_the_log_per_s(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<f64> {
    fn member(run: Examined<'_>) -> Option<&MemberRecord> {
        run.document.examination.as_ref()?.examined()
    }
    let then = member(earlier)?;
    let covered_s = then.slow_log_s.filter(|covered_s| *covered_s > 0.0)?;
    let left = &member(now)?.operations;
    let is_gone = |operation: &&OperationSeen| {
        let kinds = OperationKind::of_all([*operation]);
        let is_in = |kinds: &[OperationKind], other| kinds.iter().any(|kind| kind.includes(other));
        let mut logged = left.iter().filter(|other| other.logged.is_some());
        is_in(&finding.operations, operation) || !logged.any(|other| is_in(&kinds, other))
    };
    let gone = then.operations.iter().filter(is_gone);
    let logged = gone.filter_map(|operation| operation.logged.as_ref());
    let documents: u64 = logged.map(|logged| logged.documents_examined).sum();
    Some(documents as f64 / covered_s)
}
