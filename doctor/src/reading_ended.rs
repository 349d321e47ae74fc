//! Qualifies what findings of reads save where nearly all reading was over in the first half of the watch: a cache that fills
//! after a start, or a single job. What was waited then is not waited again in every hour.

use seekscope_run::Finding;

use crate::Evidence;
use crate::answers::PAGES_READ;
use crate::claims::explains_reads_alone;
use crate::ranking::is_seen;
use crate::wording::{duration, percent};

/// Fewest pages from whose times anything is concluded.
const PAGES_MIN: f64 = 500.0;
/// Most of the pages that may have been read in the second half of the watch.
const LATER_MAX: f64 = 0.05;
/// Share of the pages after which reading is taken to be over.
const NEARLY_ALL: f64 = 0.95;

/// Adds to the findings of reads that the reading was over soon, and takes their confidence.
pub(crate) fn qualify(evidence: &Evidence<'_>, findings: &mut [Finding]) {
    let Some(over_after_s) = over_after_s(evidence) else {
        return;
    };
    let saving = |finding: &&mut Finding| {
        explains_reads_alone(&finding.id, evidence)
            && is_seen(finding)
            && finding.saves_s_per_hour.is_some_and(|s| s > 0.0)
    };
    for finding in findings.iter_mut().filter(saving) {
        finding.evidence.push(format!(
            "{} of the pages that the server read from files in the watch it had read after {}: if that was its cache that \
             filled after a start, or a single job, it is not saved again in every hour (serverStatus).",
            percent(NEARLY_ALL),
            duration(over_after_s)
        ));
        finding.confidence = "low".into();
    }
}

/// Returns after how long nearly all pages of the watch had been read, s; `None` where reading went on in its second half.
fn over_after_s(evidence: &Evidence<'_>) -> Option<f64> {
    let pages = evidence.status(&[PAGES_READ])?;
    let (begin_ns, end_ns) = (pages.points.first()?.0, pages.points.last()?.0);
    let all = pages.increase().filter(|all| *all >= PAGES_MIN)?;
    let middle_ns = begin_ns + (end_ns - begin_ns) / 2;
    let later_per_s = pages.rate_per_s_between(middle_ns, end_ns)?;
    let later = later_per_s * pages.span_s() / 2.0;
    if later > LATER_MAX * all {
        return None;
    }
    let mut read = 0.0;
    for pair in pages.points.windows(2) {
        read += (pair[1].1 - pair[0].1).max(0.0);
        if read >= NEARLY_ALL * all {
            return Some((pair[1].0 - begin_ns) as f64 / 1e9);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OBSERVED_S, Recording};

    fn qualified(pages: impl Fn(f64) -> f64) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.values("serverStatus", PAGES_READ, pages);
        let finding = |id: &str, saves| Finding {
            id: id.into(),
            saves_s_per_hour: saves,
            confidence: "medium".into(),
            ..Finding::default()
        };
        let mut findings = vec![
            finding("disk.slow", Some(100.0)),
            finding("disk.slow", None),
            finding("journal.slow-sync", Some(100.0)),
        ];
        recording.examine(|evidence, _| qualify(evidence, &mut findings));
        findings
    }

    #[test]
    fn reading_that_was_over_soon_is_said_of_what_it_would_save() {
        let found = qualified(|s| 1000.0 + 400.0 * s.min(6.0));
        assert_eq!(found[0].confidence, "low");
        let said = &found[0].evidence[0];
        assert!(said.starts_with("95 % of the pages"), "{said}");
        assert!(said.contains("had read after 6.00 s"), "{said}");
        for other in &found[1..] {
            assert_eq!(
                (other.confidence.as_str(), &other.evidence),
                ("medium", &Vec::new())
            );
        }
    }

    #[test]
    fn reading_that_goes_on_or_is_little_is_left_alone() {
        let half_s = f64::from(OBSERVED_S) / 2.0;
        let steady = qualified(|s| 1000.0 + 40.0 * s);
        let later = qualified(|s| 1000.0 + 400.0 * (s - half_s).max(0.0));
        let little = qualified(|s| 1000.0 + 40.0 * s.min(6.0));
        for found in [steady, later, little] {
            assert!(
                found.iter().all(|finding| finding.evidence.is_empty()),
                "{found:?}"
            );
        }
    }
}
