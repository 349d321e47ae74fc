//! Draws conclusions about a whole deployment from the runs of its members.
//!
//! What is wrong with one member was concluded from its own run. Added here are what sets one member apart from
//! the others, and the order of all findings together; the same finding on several members is told once.

mod granted;

use std::collections::HashMap;

use seekscope_run::units::format_list;
use seekscope_run::{
    COUNTERS_OF_MEMBER, ClockOffset, Finding, MemberOnHost, MemberRecord, MemberRun, MemberState,
    RoleChange, RunDocument, shell_quoted, shifted,
};

use crate::answers::Answers;
use crate::detectors::unresponsive;
use crate::evidence::{COUNTERS, Counters, Evidence, Named};
use crate::namespaces::is_internal;
use crate::ranking::{acquit, is_boilerplate, ordered};
use crate::since::is_same;
use crate::thresholds::NOTHING_WRONG;
use crate::wording::{SOME_PRIMARY, SOME_ROUTER};
use crate::{Diagnosis, detectors};

/// Members named in one sentence, so that it stays readable.
const MEMBERS_NAMED: usize = 6;

/// A member that was examined, and what was concluded from its run.
#[derive(Debug)]
pub struct ExaminedMember {
    pub run: MemberRun,
    pub document: RunDocument,
    pub counters: Counters,
    pub diagnosis: Diagnosis,
    /// The overall result in one sentence.
    pub verdict: String,
}

/// Enters all members into the record of the deployment's run, and draws the conclusions. `counters` are those
/// of the deployment's run itself; those of the members are added.
pub fn conclude(
    document: &mut RunDocument,
    counters: &mut Counters,
    examined: Vec<ExaminedMember>,
) -> Diagnosis {
    let started = document.started;
    let examination = document.examination.get_or_insert_default();
    examination.members = all_members(&examination.members, &examined, started);
    let granted = granted::less(&examined);
    let mut diagnoses = Vec::new();
    let mut of_others = Vec::new();
    for member in examined {
        let name = member
            .record()
            .map_or(member.run.member.clone(), |r| r.name.clone());
        // Runs of several hosts have several clocks.
        let shift_ns = member.document.started.shift_to(started);
        let others = counters.add_member(&name, member.counters.shifted(shift_ns));
        of_others.extend(others);
        diagnoses.push((name, member.diagnosis));
    }
    // What a member told of others comes after what these counted themselves.
    for (source, series) in of_others {
        counters.add(source, series);
    }
    let evidence = Evidence {
        document,
        trace: None,
        device_use: None,
        counters,
    };
    let mut answers = Answers::of_members(&evidence);
    let granted = granted.filter(|less| less.explains(answers.member_difference.as_ref()));
    if let Some(less) = &granted {
        answers.member_difference = Some(less.difference.clone());
    }
    let of_members = detectors::of_members();
    let mut findings: Vec<Finding> = of_members
        .flat_map(|detector| (detector.detect)(&evidence, &answers))
        .collect();
    findings.extend(of_router(&evidence));
    findings.extend(told_once(&diagnoses));
    if let Some(less) = &granted {
        less.refer(&mut findings);
    }
    name_servers(&mut findings, document);
    Diagnosis {
        findings: all_is_well(ordered(findings), &diagnoses),
        answers,
    }
}

/// Says that the router of a cluster was lost while it was watched, or answered nobody for seconds.
fn of_router(evidence: &Evidence<'_>) -> Option<Finding> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let mut routers = members
        .iter()
        .filter(|one| one.state == MemberState::Router);
    let name = routers.next().map_or("", |router| router.name.as_str());
    unresponsive(evidence, "mongos").map(|finding| Finding {
        member: name.into(),
        risk: "Clients that connect through it fail in the meantime. The other findings concern the members \
               themselves."
            .into(),
        // It is of the first member's process.
        command: String::new(),
        ..finding
    })
}

/// Puts the servers of the deployment, which a member's run does not know, where its commands have placeholders.
fn name_servers(findings: &mut [Finding], document: &RunDocument) {
    let examination = document.examination.as_ref();
    let members = examination.map_or(&[][..], |examination| &examination.members);
    let is_of_cluster = members.iter().any(|member| member.shard.is_some());
    let router = document.target.as_ref().filter(|_| is_of_cluster);
    let router = router.map(|target| target.uri.clone());
    let is_primary = |member: &&MemberRecord| member.state == MemberState::Primary;
    let primary = members.iter().find(is_primary).filter(|_| !is_of_cluster);
    let primary = primary.map(|member| format!("mongodb://{}/", member.name));
    for (placeholder, uri) in [(SOME_ROUTER, router), (SOME_PRIMARY, primary)] {
        let Some(uri) = uri else {
            continue;
        };
        let [placeholder, uri] = [placeholder, &uri].map(shell_quoted);
        for finding in findings.iter_mut() {
            finding.command = finding.command.replace(&placeholder, &uri);
        }
    }
}

impl ExaminedMember {
    fn record(&self) -> Option<&MemberRecord> {
        self.document.examination.as_ref()?.examined()
    }

    /// Returns what the member says of itself, with what its run found out.
    fn full_record(&self, started: ClockOffset, shared: &Shared) -> Option<MemberRecord> {
        let examination = self.document.examination.as_ref()?;
        let disk = examination
            .disk_opinion
            .as_ref()
            .or(examination.disk.as_ref());
        let record = self.record()?;
        let shift_ns = self.document.started.shift_to(started);
        let role_change = record.role_change.map(|change| RoleChange {
            seen_ns: shifted(change.seen_ns, shift_ns),
            ..change
        });
        Some(MemberRecord {
            shard: self.run.shard.clone(),
            role_change,
            on_host: Some(MemberOnHost {
                run: self.run.folder.clone(),
                verdict: self.verdict.clone(),
                disk: disk.cloned(),
                leaf_order: shared.leaf_order(&self.document),
            }),
            ..record.clone()
        })
    }
}

/// Returns every member once: the examined ones as their own runs have them, then those that were only asked.
fn all_members(
    of_deployment: &[MemberRecord],
    examined: &[ExaminedMember],
    started: ClockOffset,
) -> Vec<MemberRecord> {
    let mut all: Vec<MemberRecord> = Vec::new();
    let shared = Shared::by(examined);
    let own = examined.iter();
    let own = own.filter_map(|member| member.full_record(started, &shared));
    let others = examined.iter().filter_map(|member| {
        let examination = member.document.examination.as_ref()?;
        examination.members.get(1..)
    });
    // After an earlier conclusion, those of the deployment include the examined ones.
    let known = of_deployment.iter().cloned();
    for member in own.chain(others.flatten().cloned()).chain(known) {
        if all.iter().all(|known| known.name != member.name) {
            all.push(member);
        }
    }
    all.sort_by(|a, b| a.shard.cmp(&b.shard));
    all
}

/// The collections that every member whose files were read has, with their bytes on all of them. Shards keep
/// different ones, and an order is compared for what all have.
struct Shared(HashMap<String, f64>);

impl Shared {
    fn by(examined: &[ExaminedMember]) -> Self {
        let mut all: HashMap<String, (usize, f64)> = HashMap::new();
        let mut members = 0;
        for member in examined {
            let mut of_member = ordered_collections(&member.document).peekable();
            members += usize::from(of_member.peek().is_some());
            for (namespace, bytes, _) in of_member {
                let (count, sum) = all.entry(namespace.into()).or_default();
                *count += 1;
                *sum += bytes;
            }
        }
        let of_every = all.into_iter().filter(|(_, (count, _))| *count == members);
        Self(of_every.map(|(name, (_, bytes))| (name, bytes)).collect())
    }

    /// Returns the score of the leaves of these collections, each weighted alike for every member; `None` if none was
    /// read.
    fn leaf_order(&self, document: &RunDocument) -> Option<f64> {
        let scores = ordered_collections(document)
            .filter_map(|(namespace, _, score)| Some((self.0.get(namespace)?, score)));
        let (bytes, weighted) = scores.fold((0.0, 0.0), |(bytes, sum), (of_file, score)| {
            (bytes + of_file, sum + of_file * score)
        });
        (bytes > 0.0).then(|| weighted / bytes)
    }
}

/// Returns users' collections whose leaves were read, with the leaves' bytes and their order's score.
fn ordered_collections(document: &RunDocument) -> impl Iterator<Item = (&str, f64, f64)> {
    let files = document.layout.iter().flat_map(|layout| &layout.files);
    files.filter_map(|file| {
        let namespace = file.namespace.as_deref()?;
        let score = file.order.as_ref()?.score;
        let is_compared = file.index.is_none() && !is_internal(namespace) && score.is_finite();
        is_compared.then_some((namespace, file.leaf_bytes as f64, score))
    })
}

/// Returns the members' findings, those of one kind and subject as one: of the member with most to gain, with
/// the others named.
fn told_once(diagnoses: &[(String, Diagnosis)]) -> Vec<Finding> {
    let mut groups: Vec<Vec<(&str, &Finding)>> = Vec::new();
    for (member, diagnosis) in diagnoses {
        let illnesses = diagnosis.findings.iter().filter(|f| f.id != NOTHING_WRONG);
        for finding in illnesses.filter(|finding| !finding.id.starts_with("member.")) {
            let mut known = groups.iter_mut();
            match known.find(|group| is_same(group[0].1, finding)) {
                Some(group) => group.push((member, finding)),
                None => groups.push(vec![(member, finding)]),
            }
        }
    }
    groups.iter().filter_map(|group| told(group)).collect()
}

fn told(group: &[(&str, &Finding)]) -> Option<Finding> {
    let saves = |finding: &Finding| finding.saves_s_per_hour.unwrap_or(0.0);
    let first = group
        .iter()
        .rev()
        .max_by(|a, b| saves(a.1).total_cmp(&saves(b.1)))?;
    let mut finding = Finding {
        member: first.0.into(),
        ..first.1.clone()
    };
    let others: Vec<&(&str, &Finding)> = group.iter().filter(|one| one.0 != first.0).collect();
    if !others.is_empty() {
        let named = others.iter().map(|(member, of_it)| {
            match of_it
                .saves_s_per_hour
                .filter(|s| s.is_finite() && *s >= 1.0)
            {
                Some(s) => format!("{member} (there it would save {s:.0} s per hour)"),
                None => (*member).to_string(),
            }
        });
        let named: Vec<String> = named.collect();
        let named = format_list(&named, MEMBERS_NAMED, ", ");
        match is_boilerplate(&finding) {
            true => finding
                .title
                .push_str(&format!(" (so are others on {named})")),
            // First, since not all of the evidence is shown everywhere.
            false => finding
                .evidence
                .insert(0, format!("The same was found on {named}.")),
        }
    }
    Some(finding)
}

/// Puts first that nothing is wrong with the disks, if every member's own run says so of its disk.
fn all_is_well(mut findings: Vec<Finding>, diagnoses: &[(String, Diagnosis)]) -> Vec<Finding> {
    let acquittals = diagnoses.iter().filter_map(|(_, diagnosis)| {
        let mut all = diagnosis.findings.iter();
        all.find(|finding| finding.id == NOTHING_WRONG)
    });
    let acquittals: Vec<&Finding> = acquittals.collect();
    if let [first, ..] = acquittals.as_slice()
        && acquittals.len() == diagnoses.len()
    {
        let title = match acquittals.len() {
            1 => first.title.clone(),
            count => {
                format!("Nothing is wrong with the disks of the {count} members that were examined")
            }
        };
        let of_each = diagnoses.iter().zip(&acquittals);
        let acquittal = Finding {
            id: NOTHING_WRONG.into(),
            title,
            evidence: of_each
                .take(MEMBERS_NAMED)
                .map(|((member, _), acquittal)| format!("{member}: {}", acquittal.title))
                .collect(),
            confidence: first.confidence.clone(),
            risk: first.risk.clone(),
            ..Finding::default()
        };
        acquit(&mut findings, acquittal);
    }
    findings
}

impl Counters {
    /// Adds the counters of a member from its own run, as those of a member; keeps those that are known already.
    /// Returns what it told of other members.
    fn add_member(&mut self, member: &str, counters: Counters) -> Vec<(String, Named)> {
        let mut of_others = Vec::new();
        for (source, series) in counters.into_sources() {
            match source.as_str() {
                COUNTERS => self.add(format!("{COUNTERS_OF_MEMBER}{member}"), series),
                other if other.starts_with(COUNTERS_OF_MEMBER) => of_others.push((source, series)),
                _ => {}
            }
        }
        of_others
    }
}

#[cfg(test)]
mod tests;
