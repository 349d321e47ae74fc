//! What was found to slow a server down, as series.

use std::collections::BTreeSet;

use crate::metrics as m;
use crate::page::Page;

/// Findings of one server that are exported, the first ones.
const FINDINGS_MAX: usize = 20;
/// Series of as many.
pub(crate) const SERIES_MAX: usize = 2 * FINDINGS_MAX;
/// Characters of a subject that are kept.
const SUBJECT_MAX: usize = 260;

/// Something that slows a server down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundProblem {
    /// Stable identifier, e.g. "checkpoint.long".
    pub id: String,
    /// The collection, index or member that it is about; empty where it is about the server.
    pub subject: String,
    /// "high", "medium" or "low".
    pub confidence: String,
    /// Waiting that acting on it would save at the present load, seconds per hour; `None` where that is not known.
    pub seconds_per_hour: Option<f64>,
}

/// Returns the findings that are exported of these, which are in order of importance. None occurs twice, since a page
/// must not have a series twice.
pub(crate) fn bounded(problems: Vec<FoundProblem>) -> Vec<FoundProblem> {
    let mut known = BTreeSet::new();
    let mut kept: Vec<FoundProblem> = problems
        .into_iter()
        .map(|problem| FoundProblem {
            subject: problem.subject.chars().take(SUBJECT_MAX).collect(),
            ..problem
        })
        .filter(|problem| known.insert((problem.id.clone(), problem.subject.clone())))
        .collect();
    kept.truncate(FINDINGS_MAX);
    kept
}

/// Returns the number of series that [`add_to`] adds.
pub(crate) fn series(problems: &[FoundProblem]) -> usize {
    let mut page = Page::default();
    add_to(&mut page, "", problems);
    page.series()
}

/// Adds the findings of a server to the page.
pub(crate) fn add_to(page: &mut Page, server: &str, problems: &[FoundProblem]) {
    let labels = |problem: &FoundProblem| {
        vec![
            ("server", server.to_string()),
            ("id", problem.id.clone()),
            ("subject", problem.subject.clone()),
        ]
    };
    for problem in problems {
        let mut labels = labels(problem);
        labels.push(("confidence", problem.confidence.clone()));
        page.add(&m::FINDING, labels, 1.0);
    }
    for problem in problems {
        if let Some(seconds) = problem.seconds_per_hour.filter(|s| s.is_finite()) {
            page.add(&m::FINDING_SECONDS, labels(problem), seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::TextFormat;

    fn problem(id: &str, subject: &str, seconds_per_hour: Option<f64>) -> FoundProblem {
        FoundProblem {
            id: id.into(),
            subject: subject.into(),
            confidence: "medium".into(),
            seconds_per_hour,
        }
    }

    #[test]
    fn unknown_seconds_are_no_series_and_nothing_occurs_twice() {
        let problems = vec![
            problem("checkpoint.long", "", Some(120.5)),
            problem("layout.key-order-lost", "shop.\"orders\"\n", None),
            problem("layout.key-order-lost", "shop.\"orders\"\n", Some(1.0)),
            problem("disk.limited", "", Some(f64::NAN)),
        ];
        let mut page = Page::default();
        add_to(&mut page, "db1:27017", &bounded(problems));
        assert_eq!(
            page.text(TextFormat::OpenMetrics)
                .lines()
                .filter(|line| !line.starts_with('#'))
                .collect::<Vec<_>>(),
            [
                r#"seekscope_finding{server="db1:27017",id="checkpoint.long",subject="",confidence="medium"} 1"#,
                r#"seekscope_finding{server="db1:27017",id="layout.key-order-lost",subject="shop.\"orders\"\n",confidence="medium"} 1"#,
                r#"seekscope_finding{server="db1:27017",id="disk.limited",subject="",confidence="medium"} 1"#,
                r#"seekscope_finding_seconds_per_hour{server="db1:27017",id="checkpoint.long",subject=""} 120.5"#,
            ]
        );
    }

    #[test]
    fn the_first_ones_are_kept() {
        let many = (0..100).map(|i| problem("index.unused", &i.to_string(), None));
        let kept = bounded(many.collect());
        assert_eq!(kept.len(), FINDINGS_MAX);
        assert_eq!(kept[0].subject, "0");
    }
}
