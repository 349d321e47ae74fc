//! `member.differs`: one member or shard is unlike the others in one factor.

use seekscope_run::Finding;

use super::Detector;
use crate::wording::shell_quoted;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["member.differs"],
    detect,
};

fn detect(_evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(difference) = &answers.member_difference else {
        return Vec::new();
    };
    let compared: Vec<&str> = answers
        .members
        .iter()
        .filter(|member| member.is_comparable())
        .map(|member| member.name.as_str())
        .collect();
    let left_out = answers
        .members
        .iter()
        .filter(|member| member.not_asked.is_some() && member.holds_data());
    let mut sentences = vec![format!(
        "{}: {} on {}, {} on the others ({} members compared; {}).",
        difference.factor,
        difference.value,
        difference.member,
        difference.others,
        compared.len(),
        difference.source
    )];
    sentences.extend(left_out.map(|member| {
        let why = member.not_asked.as_deref().unwrap_or_default();
        format!("{} could not be asked: {why}.", member.name)
    }));
    vec![Finding {
        id: "member.differs".into(),
        subject: difference.member.clone(),
        title: format!(
            "{} is not like its fellows: {} is {}, elsewhere {}",
            difference.member, difference.factor, difference.value, difference.others
        ),
        evidence: sentences,
        // With two members, either could be the odd one.
        confidence: if compared.len() > 2 { "medium" } else { "low" }.into(),
        risk: "None: it is looked at alone.".into(),
        command: format!(
            "seekscope doctor {}",
            shell_quoted(&format!(
                "mongodb://{}/?directConnection=true",
                difference.member
            ))
        ),
        ..Finding::default()
    }]
}

#[cfg(test)]
mod tests {
    use seekscope_run::{MemberRecord, MemberState};

    use super::*;
    use crate::testing::{GIB, Recording};

    fn set(cache_bytes: [u64; 3]) -> Recording {
        let mut recording = Recording::new();
        let examined = recording.examined().clone();
        let members = cache_bytes.iter().enumerate().map(|(at, bytes)| {
            let mut member = MemberRecord {
                name: format!("db{}:27017", at + 1),
                state: MemberState::Secondary,
                ..examined.clone()
            };
            member.target.cache_bytes = Some(*bytes);
            member
        });
        recording.examination().members = members.collect();
        recording
    }

    #[test]
    fn ill() {
        let found = set([8 * GIB, 8 * GIB, 2 * GIB]).findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].title,
            "db3:27017 is not like its fellows: cache, GiB is 2.0, elsewhere 8.0"
        );
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(set([8 * GIB; 3]).findings(&DETECTOR), []);
    }
}
