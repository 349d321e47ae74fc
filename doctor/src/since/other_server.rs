//! Says where two runs are of different servers, so that what differs need not have changed.

use std::collections::BTreeSet;

use seekscope_run::{ExaminationRecord, Finding, FindingChange, RunDocument};

use super::is_same;
use super::printed::{predicted, saves};

/// A server as a run names it.
struct Named<'a> {
    /// `host:port` of the examined server, or of each member of an examined deployment.
    members: Vec<&'a str>,
    /// The data directory of a single server; members of a deployment each have their own.
    data_directory: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Returns `None` where the names mean nothing: those of private servers, which are new for each run, and hashed
    /// ones.
    fn of(document: &'a RunDocument) -> Option<Self> {
        let examination = document.examination.as_ref()?;
        let is_nameless = document.target.as_ref().is_some_and(|target| target.local);
        if is_nameless || examination.redacted || examination.members.is_empty() {
            return None;
        }
        let is_whole = document.is_of_deployment();
        let examined = if is_whole { usize::MAX } else { 1 };
        let target = examination.examined().map(|member| &member.target);
        Some(Self {
            members: examination.member_names().take(examined).collect(),
            data_directory: target
                .filter(|_| !is_whole)
                .and_then(|target| target.dbpath.as_deref()),
        })
    }

    fn shares_a_member_with(&self, other: &Self) -> bool {
        let mut members = self.members.iter();
        members.any(|name| {
            other
                .members
                .iter()
                .any(|other| is_same_address(name, other))
        })
    }

    fn text(&self) -> String {
        let member = self.members.first().copied().unwrap_or_default();
        match self.data_directory {
            Some(directory) => format!("{member} ({directory})"),
            None => member.into(),
        }
    }
}

/// Returns which two servers the runs are of, in words; `None` if they are of the same one as far as is known.
pub fn other_server(earlier: &RunDocument, now: &RunDocument) -> Option<String> {
    let (then, now) = (Named::of(earlier)?, Named::of(now)?);
    let moved = match (then.data_directory, now.data_directory) {
        (Some(then), Some(now)) => then != now,
        _ => false,
    };
    (moved || !then.shares_a_member_with(&now))
        .then(|| format!("{} then, {} now", then.text(), now.text()))
}

/// Returns whether the runs are of servers at different addresses. A server that has moved to another data directory
/// keeps its address, and what the move changed can be told.
pub(super) fn are_two_servers(earlier: &RunDocument, now: &RunDocument) -> bool {
    let both = Named::of(earlier).zip(Named::of(now));
    both.is_some_and(|(then, now)| !then.shares_a_member_with(&now))
}

/// Returns the findings of two servers with their figures, and no conclusion: nothing was changed between the runs.
pub(super) fn side_by_side(before: &[Finding], after: &[Finding]) -> Vec<FindingChange> {
    let change =
        |finding: &Finding, figures: (Option<f64>, Option<f64>), whose: &str| FindingChange {
            id: finding.id.clone(),
            subject: finding.subject.clone(),
            operations: finding.operations.clone(),
            change: "unknown".into(),
            before: figures.0,
            after: figures.1,
            predicted: predicted(finding),
            verdict: format!("cannot be told: the runs are of two servers; {whose}"),
            ..FindingChange::default()
        };
    let known = before.iter().map(|finding| {
        let again = after.iter().find(|other| is_same(finding, other));
        let whose = match again {
            Some(_) => "both have this finding",
            None => "only the first has this finding",
        };
        change(finding, (saves(finding), again.and_then(saves)), whose)
    });
    let is_new = |finding: &&Finding| !before.iter().any(|other| is_same(finding, other));
    let new = after.iter().filter(is_new);
    let new = new.map(|finding| {
        let whose = "only the second has this finding";
        change(finding, (None, saves(finding)), whose)
    });
    known.chain(new).collect()
}

/// Returns whether names are hashed in only one of the runs, or in both and those of the server differ, because of
/// another salt or because it is another server. What is named in one run cannot be found in the other then.
pub(super) fn are_names_different(earlier: &RunDocument, now: &RunDocument) -> bool {
    let (Some(earlier), Some(now)) = (&earlier.examination, &now.examination) else {
        return false;
    };
    // Names of this host, such as 127.0.0.1, are not hashed; folders are.
    fn server(of: &ExaminationRecord) -> Option<(BTreeSet<&str>, Option<&str>)> {
        let folder = of.examined()?.target.dbpath.as_deref();
        Some((of.member_names().collect(), folder))
    }
    match (earlier.redacted, now.redacted) {
        (true, true) => {
            let both = server(earlier).zip(server(now));
            both.is_some_and(|((members, folder), (others, other_folder))| {
                let have_moved = folder.zip(other_folder).is_some_and(|(a, b)| a != b);
                have_moved || members.is_disjoint(&others)
            })
        }
        (false, false) => false,
        _ => true,
    }
}

/// Returns whether two addresses may be of one server. This host has many names.
fn is_same_address(a: &str, b: &str) -> bool {
    let split = |address: &str| match address.rsplit_once(':') {
        Some((host, port)) => (host.to_ascii_lowercase(), port.to_owned()),
        None => (address.to_ascii_lowercase(), String::new()),
    };
    let is_this_host = |host: &str| {
        host == "localhost"
            || host == "[::1]"
            || host.starts_with("127.")
            || host.ends_with(".sock")
    };
    let ((a, port_of_a), (b, port_of_b)) = (split(a), split(b));
    port_of_a == port_of_b && (a == b || is_this_host(&a) || is_this_host(&b))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{MemberRecord, MemberRun};

    use super::*;

    fn run(members: &[&str], data_directory: &str) -> RunDocument {
        let mut document = RunDocument::begin("doctor", Vec::new());
        let member = |name: &&str| MemberRecord {
            name: (*name).into(),
            ..MemberRecord::default()
        };
        let mut members: Vec<MemberRecord> = members.iter().map(member).collect();
        members[0].target.dbpath = Some(data_directory.into());
        document.examination = Some(ExaminationRecord {
            members,
            ..ExaminationRecord::default()
        });
        document
    }

    #[test]
    fn findings_of_two_servers_stand_side_by_side() {
        let finding = |id: &str, s_per_hour| Finding {
            id: id.into(),
            saves_s_per_hour: Some(s_per_hour),
            ..Finding::default()
        };
        let (then, now) = (
            [
                finding("disk.limited", 900.0),
                finding("cache.too-small", 50.0),
            ],
            [
                finding("disk.limited", 300.0),
                finding("memory.short", 20.0),
            ],
        );
        let changes = side_by_side(&then, &now);
        let told = changes.iter().map(|change| (change.before, change.after));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (Some(900.0), Some(300.0)),
                (Some(50.0), None),
                (None, Some(20.0))
            ]
        );
        assert!(changes.iter().all(|change| change.change == "unknown"));
        assert!(
            changes[1]
                .verdict
                .ends_with("only the first has this finding")
        );
    }

    #[test]
    fn another_server_is_named_and_the_same_one_is_not() {
        let first = run(&["localhost:27017"], "/data/a");
        for same in [
            run(&["127.0.0.1:27017"], "/data/a"),
            run(&["db1.example:27017"], "/data/a"),
        ] {
            assert_eq!(other_server(&first, &same), None);
        }
        for other in [
            run(&["localhost:27018"], "/data/a"),
            run(&["localhost:27017"], "/data/b"),
        ] {
            let told = other_server(&first, &other).unwrap();
            assert!(
                told.starts_with("localhost:27017 (/data/a) then, "),
                "{told}"
            );
        }
    }

    #[test]
    fn members_of_one_set_are_one_deployment_and_several_servers() {
        let whole = |members: &[&str]| {
            let mut document = run(members, "/data/a");
            let examination = document.examination.as_mut().unwrap();
            examination.member_runs.push(MemberRun::default());
            document
        };
        let first = whole(&["a:1", "b:1"]);
        assert_eq!(other_server(&first, &whole(&["b:1", "a:1"])), None);
        assert!(other_server(&first, &whole(&["c:1", "d:1"])).is_some());
        let (of_a, of_b) = (
            run(&["a:1", "b:1"], "/data/a"),
            run(&["b:1", "a:1"], "/data/b"),
        );
        assert!(other_server(&of_a, &of_b).is_some());
    }

    #[test]
    fn names_that_mean_nothing_are_not_compared() {
        let first = run(&["a:1"], "/data/a");
        let mut hashed = run(&["x:1"], "/data/x");
        hashed.examination.as_mut().unwrap().redacted = true;
        assert_eq!(other_server(&first, &hashed), None);
        assert_eq!(other_server(&hashed, &first), None);
    }
}
