//! Checks limits that a user set, for CI and cron: which findings end the command with exit code 6.
//!
//! | form | breached by |
//! |---|---|
//! | `any` | any finding that something is wrong |
//! | `disk.saturated` | that finding |
//! | `layout.*` | any finding of that family |
//! | `saves>30s` | a finding that would save more than this much waiting per hour (`>=` too), of what was seen |
//! | `confidence>=medium` | a finding that is at least so sure (`high`, `medium`, `low`) |
//!
//! Terms joined by `&` must all hold for the same finding: `layout.*&saves>30s`.

use std::str::FromStr;

use seekscope_run::Finding;
use seekscope_run::units::{UnitError, parse_duration};

use crate::ranking::is_seen;
use crate::wording::duration;
use crate::{Diagnosis, detectors};

/// The finding that says that nothing is wrong; it breaches nothing.
pub const NOTHING_WRONG: &str = "disk.not-the-problem";
/// The finding that is made instead where writes wait most of their time for a disk that is well.
pub const SYNC_BOUND: &str = "journal.sync-bound";

/// The finding of a server that ended or answered nobody; it comes before all others.
pub const UNRESPONSIVE: &str = "server.unresponsive";

/// Why a threshold could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    #[error("a threshold is empty; write e.g. `any`, `disk.saturated`, `layout.*` or `saves>30s`")]
    Empty,
    #[error("there is no finding `{id}`; there are {known}")]
    UnknownFinding { id: String, known: String },
    #[error("the time in `{text}` cannot be read: {reason}; write e.g. `saves>30s`")]
    Time { text: String, reason: String },
    #[error("`{text}` names no confidence; write `confidence>=high`, `>=medium` or `>=low`")]
    Confidence { text: String },
    #[error("`{text}` compares nothing that is known; `saves` and `confidence` can be compared")]
    UnknownQuantity { text: String },
}

/// One limit; see the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Any,
    Id(String),
    /// The family, with its dot.
    Family(String),
    /// Saving in s of waiting per hour; inclusive or not.
    Saves {
        s_per_hour: f64,
        inclusive: bool,
    },
    Confidence(u8),
}

impl Threshold {
    /// Reads one of the forms of the module's table.
    ///
    /// # Errors
    ///
    /// Returns an error for anything else, also for a finding that no detector reports: a mistyped limit
    /// would never be breached.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let conditions: Result<Vec<Condition>, ThresholdError> =
            text.split('&').map(|part| part.trim().parse()).collect();
        Ok(Self {
            text: text.trim().into(),
            conditions: conditions?,
        })
    }

    fn holds_of(&self, finding: &Finding) -> bool {
        let holds = |condition: &Condition| condition.holds_of(finding);
        finding.id != NOTHING_WRONG && self.conditions.iter().all(holds)
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl FromStr for Condition {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ThresholdError::Empty);
        }
        if text == "any" {
            return Ok(Self::Any);
        }
        match text.split_once('>') {
            Some((quantity, limit)) => compared(text, quantity.trim(), limit),
            None => named(text),
        }
    }
}

fn compared(text: &str, quantity: &str, limit: &str) -> Result<Condition, ThresholdError> {
    let (limit, inclusive) = match limit.strip_prefix('=') {
        Some(rest) => (rest.trim(), true),
        None => (limit.trim(), false),
    };
    match quantity {
        "saves" => {
            let time = parse_duration(limit.trim_end_matches("/h"));
            let time = time.map_err(|error: UnitError| ThresholdError::Time {
                text: text.into(),
                reason: error.to_string(),
            })?;
            Ok(Condition::Saves {
                s_per_hour: time.as_secs_f64(),
                inclusive,
            })
        }
        "confidence" => confidence(limit)
            .and_then(|level| {
                if inclusive {
                    Some(level)
                } else {
                    level.checked_add(1)
                }
            })
            .map(Condition::Confidence)
            .ok_or_else(|| ThresholdError::Confidence { text: text.into() }),
        _ => Err(ThresholdError::UnknownQuantity { text: text.into() }),
    }
}

fn named(text: &str) -> Result<Condition, ThresholdError> {
    let mut known = known_ids();
    if let Some(family) = text
        .strip_suffix('*')
        .filter(|family| family.ends_with('.'))
    {
        if known.iter().any(|id| id.starts_with(family)) {
            return Ok(Condition::Family(family.into()));
        }
    } else if known.contains(&text) {
        return Ok(Condition::Id(text.into()));
    }
    known.sort_unstable();
    Err(ThresholdError::UnknownFinding {
        id: text.into(),
        known: known.join(", "),
    })
}

/// Returns the ids of all detectors.
fn known_ids() -> Vec<&'static str> {
    detectors::all()
        .flat_map(|detector| detector.ids.iter().copied())
        .collect()
}

fn confidence(word: &str) -> Option<u8> {
    ["low", "medium", "high"]
        .iter()
        .position(|known| *known == word)?
        .try_into()
        .ok()
}

impl Condition {
    fn holds_of(&self, finding: &Finding) -> bool {
        match self {
            Self::Any => true,
            Self::Id(id) => finding.id == *id,
            Self::Family(family) => finding.id.starts_with(family.as_str()),
            Self::Saves {
                s_per_hour,
                inclusive,
            } => saved_per_hour(finding)
                .is_some_and(|s| s > *s_per_hour || (*inclusive && s == *s_per_hour)),
            Self::Confidence(least) => {
                confidence(&finding.confidence).is_some_and(|level| level >= *least)
            }
        }
    }
}

/// Returns the observed waiting that would be saved; the saving for a job that nobody ran is not per hour.
fn saved_per_hour(finding: &Finding) -> Option<f64> {
    finding.saves_s_per_hour.filter(|_| is_seen(finding))
}

/// Returns a sentence for each threshold that was breached; empty when all were kept.
pub fn breached(thresholds: &[Threshold], diagnosis: &Diagnosis) -> Vec<String> {
    let sentence = |threshold: &Threshold| {
        let found = diagnosis
            .findings
            .iter()
            .filter(|finding| threshold.holds_of(finding));
        let found: Vec<&Finding> = found.collect();
        let first = found.first()?;
        let saves = saved_per_hour(first).map_or(String::new(), |s| {
            format!(", would save {} per hour", duration(s))
        });
        let more = match found.len() {
            1 => String::new(),
            count => format!("; and {} more", count - 1),
        };
        Some(format!(
            "{} is breached: {} ({}{saves}){more}",
            threshold.text, first.title, first.id
        ))
    };
    thresholds.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis() -> Diagnosis {
        let finding = |id: &str, saves: Option<f64>, confidence: &str| Finding {
            id: id.into(),
            title: format!("about {id}"),
            saves_s_per_hour: saves,
            confidence: confidence.into(),
            ..Finding::default()
        };
        Diagnosis {
            findings: vec![
                finding("tickets.exhausted", Some(120.0), "medium"),
                finding("space.reusable", None, "low"),
                finding("space.nearly-full", Some(5.0), "high"),
                finding(NOTHING_WRONG, None, "high"),
            ],
            ..Diagnosis::default()
        }
    }

    fn is_breached(text: &str) -> bool {
        let threshold = Threshold::parse(text).unwrap();
        !breached(&[threshold], &diagnosis()).is_empty()
    }

    #[test]
    fn forms() {
        for text in [
            "any",
            "tickets.exhausted",
            "space.*",
            "saves>30s",
            "saves >= 120s/h",
            "saves>1m",
            "confidence>=high",
            "space.* & confidence>medium",
        ] {
            assert!(is_breached(text), "{text}");
        }
        for text in [
            "member.lagging",
            "member.*",
            "saves>120s",
            "saves>1h",
            "space.*&saves>30s",
            "space.reusable&confidence>=medium",
        ] {
            assert!(!is_breached(text), "{text}");
        }
    }

    #[test]
    fn sentences() {
        let thresholds = ["space.*", "saves>30s", "oplog.too-short"];
        let thresholds = thresholds.map(|text| text.parse().unwrap());
        assert_eq!(
            breached(&thresholds, &diagnosis()),
            [
                "space.* is breached: about space.reusable (space.reusable); and 1 more",
                "saves>30s is breached: about tickets.exhausted (tickets.exhausted, would save 2 min \
                 per hour)",
            ]
        );
        assert_eq!(
            breached(&thresholds, &Diagnosis::default()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn scans_that_nobody_ran_save_nothing_per_hour() {
        let mut diagnosis = diagnosis();
        for finding in &mut diagnosis.findings {
            finding.gain = Some(seekscope_run::Gain {
                value: 1.0,
                low: 1.0,
                high: 1.0,
                unit: "s per cold scan".into(),
            });
        }
        let thresholds = ["saves>30s", "tickets.*"].map(|text| text.parse().unwrap());
        assert_eq!(
            breached(&thresholds, &diagnosis),
            ["tickets.* is breached: about tickets.exhausted (tickets.exhausted)"]
        );
    }

    #[test]
    fn nothing_wrong_breaches_nothing() {
        let mut diagnosis = diagnosis();
        diagnosis
            .findings
            .retain(|finding| finding.id == NOTHING_WRONG);
        let any = Threshold::parse("any").unwrap();
        assert_eq!(breached(&[any], &diagnosis), Vec::<String>::new());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Threshold::parse(" "), Err(ThresholdError::Empty));
        assert_eq!(Threshold::parse("any&"), Err(ThresholdError::Empty));
        for (text, part) in [
            (
                "disk.saturatd",
                "there is no finding `disk.saturatd`; there are ",
            ),
            ("nothing.*", "there is no finding"),
            ("*", "there is no finding"),
            ("saves>soon", "write e.g. `saves>30s`"),
            ("confidence>=sure", "names no confidence"),
            ("latency>3ms", "`saves` and `confidence` can be compared"),
        ] {
            let error = Threshold::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
