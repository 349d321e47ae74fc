//! `member.lagging`: a secondary is behind its primary.

use seekscope_run::{Finding, MemberRecord};

use super::Detector;
use crate::answers::MemberAnswer;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["member.lagging"],
    detect,
};

/// The primary's flow control begins to hold writes back at this lag (`flowControlTargetLagSeconds`, 10).
const LAG_S_MIN: f64 = 10.0;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let lagging = members.iter().filter(|member| {
        let lags_s = [member.lag_s, member.lag_at_begin_s].into_iter().flatten();
        let lags_s = lags_s.filter(|lag_s| lag_s.is_finite());
        // A delayed member is behind by intention.
        let late_s = lags_s.map(|lag_s| lag_s - member.delay_s.unwrap_or(0.0));
        late_s.reduce(f64::max).is_some_and(|s| s >= LAG_S_MIN)
    });
    lagging
        .filter_map(|member| Some(finding(evidence, answers, member, member.lag_s?)))
        .collect()
}

fn finding(
    evidence: &Evidence<'_>,
    answers: &Answers,
    member: &MemberRecord,
    lag_s: f64,
) -> Finding {
    let lag = duration(lag_s);
    let mut sentences = vec![match member.lag_at_begin_s {
        None => format!("It was {lag} behind the primary (replSetGetStatus)."),
        Some(before_s) => format!(
            "It was {} behind when the watch began and {lag} when it ended (replSetGetStatus).",
            duration(before_s)
        ),
    }];
    let answer = answers
        .members
        .iter()
        .find(|answer| answer.name == member.name);
    sentences.extend(answer.and_then(disk_figures));
    if let Some(window_s) = member
        .oplog
        .map(|oplog| oplog.window_s)
        .filter(|s| *s > 0.0)
    {
        sentences.push(format!("Its oplog reaches back {}.", duration(window_s)));
    }
    Finding {
        id: "member.lagging".into(),
        subject: member.name.clone(),
        title: match member.lag_at_begin_s.filter(|before_s| *before_s > lag_s) {
            Some(before_s) if lag_s < LAG_S_MIN => format!(
                "{} was {} behind the primary and caught up",
                member.name,
                duration(before_s)
            ),
            _ => format!("{} is {lag} behind the primary", member.name),
        },
        evidence: sentences,
        confidence: "medium".into(),
        risk: "The primary holds writes back (flow control) once a majority of the set is 10 s behind or away; beyond \
               the oplog's window the member has to be synced anew."
            .into(),
        command: mongosh(evidence.uri(), "rs.printSecondaryReplicationInfo()"),
        ..Finding::default()
    }
}

/// Returns what its disk did meanwhile.
fn disk_figures(answer: &MemberAnswer) -> Option<String> {
    const OF_DISKS: [&str; 3] = [
        "page read from disk",
        "page written to disk",
        "journal sync",
    ];
    let figures = answer.figures.iter().filter_map(|(name, value)| {
        let is_of_disk = OF_DISKS.iter().any(|begin| name.starts_with(begin));
        Some(format!("{name} {:.1}", (*value).filter(|_| is_of_disk)?))
    });
    let texts: Vec<String> = figures.collect();
    (!texts.is_empty()).then(|| format!("Meanwhile: {} (serverStatus).", texts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn with_lag(lag_s: Option<f64>) -> Recording {
        let mut recording = Recording::new();
        recording.examined().lag_s = lag_s;
        recording
    }

    #[test]
    fn ill() {
        let found = with_lag(Some(95.0)).findings(&DETECTOR);
        assert_eq!(found[0].title, "db1:27017 is 95.0 s behind the primary");
    }

    #[test]
    fn the_end_of_the_watch_counts() {
        let found = |before_s, after_s| {
            let mut recording = with_lag(Some(after_s));
            recording.examined().lag_at_begin_s = Some(before_s);
            let found = recording.findings(&DETECTOR);
            found.into_iter().next().map(|f| (f.title, f.evidence))
        };
        let (title, evidence) = found(1.0, 31.0).unwrap();
        assert_eq!(title, "db1:27017 is 31.0 s behind the primary");
        let both = "It was 1.00 s behind when the watch began and 31.0 s when it ended";
        assert!(evidence[0].starts_with(both), "{evidence:?}");
        let (title, _) = found(40.0, 0.0).unwrap();
        assert_eq!(
            title,
            "db1:27017 was 40.0 s behind the primary and caught up"
        );
        assert_eq!(found(2.0, 3.0), None);
    }

    #[test]
    fn healthy() {
        assert_eq!(with_lag(None).findings(&DETECTOR), []);
        assert_eq!(with_lag(Some(2.0)).findings(&DETECTOR), []);
        let mut delayed = with_lag(Some(3_601.0));
        delayed.examined().delay_s = Some(3_600.0);
        assert_eq!(delayed.findings(&DETECTOR), []);
        delayed.examined().lag_s = Some(3_700.0);
        assert_eq!(delayed.findings(&DETECTOR).len(), 1);
    }
}
