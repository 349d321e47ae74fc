//! Removes from a document whose names are hashed the texts that can contain any name and that nobody who opens
//! the bundle needs.

use seekscope_run::{RunDocument, RunKind, TargetFacts};

use crate::exit::Usage;

const HIDDEN: &str = "...";
/// Settings whose values are filters written by the user.
const FILTERS: [&str; 1] = ["operationProfiling.filter"];
/// Texts of this length may have been cut when they were recorded.
const CUT_CHARS: usize = 300;

/// Refuses runs of commands whose records contain names that are not searched for.
pub fn check(document: &RunDocument) -> Result<(), Usage> {
    match document.kind() {
        Some(RunKind::Doctor | RunKind::Layout | RunKind::Trace) => Ok(()),
        _ => Err(Usage(format!(
            "the run holds records of `seekscope {}`, whose names --hash-names cannot replace: \
             collect a run of `seekscope doctor`, or leave out --hash-names and look through the run's \
             run.json first",
            document.command
        ))),
    }
}

/// Removes what may contain names and is not needed by whoever opens the bundle.
pub fn strip(document: &mut RunDocument) {
    hide_values(&document.command, &mut document.arguments);
    // Of a trace without a server it names what was typed: a program, a file, a group of processes.
    if document.kind() == Some(RunKind::Trace) && document.target.is_none() {
        let phases = document.phases.iter_mut();
        phases.for_each(|phase| phase.activity = "what was traced".into());
    }
    document.target.iter_mut().for_each(strip_target);
    for build in document
        .phases
        .iter_mut()
        .filter_map(|phase| phase.index_build.as_mut())
    {
        cut(&mut build.keys);
    }
    let Some(examination) = &mut document.examination else {
        return;
    };
    examination.redacted = true;
    // It names a folder, and things that no longer exist.
    examination.since = None;
    // It is concluded again wherever the run is opened.
    examination.disk_opinion = None;
    if let Some(disk) = &mut examination.disk {
        // In place of a run's folder.
        let words = if disk.measured {
            "an earlier survey"
        } else {
            "a typical disk"
        };
        disk.source = words.into();
    }
    let collections = examination
        .cluster
        .iter_mut()
        .flat_map(|c| &mut c.collections);
    collections.for_each(|collection| cut(&mut collection.key));
    for member in &mut examination.members {
        strip_target(&mut member.target);
        // It is concluded again from the member's run.
        member.on_host = None;
        for option in member.options.iter_mut().chain(&mut member.parameters) {
            if FILTERS.contains(&option.name.as_str()) {
                option.value = HIDDEN.into();
            }
        }
        let indexes = member.collections.iter_mut().flat_map(|c| &mut c.indexes);
        indexes.for_each(|index| cut(&mut index.keys));
        let plans = member.operations.iter_mut().filter_map(|o| o.plan.as_mut());
        plans.for_each(cut);
    }
}

fn strip_target(target: &mut TargetFacts) {
    target.uri = without_uri_options(&target.uri);
}

/// Hides the arguments, except the command and the names of options.
fn hide_values(command: &str, arguments: &mut [String]) {
    let is_command = |word: &String| word == command || word == "collect";
    let commands = usize::from(arguments.first().is_some_and(is_command));
    let mut only_values = false;
    for argument in arguments.iter_mut().skip(commands) {
        let (name, value) = match argument.split_once('=') {
            Some((name, _)) => (name, true),
            None => (argument.as_str(), false),
        };
        only_values |= name == "--";
        let is_option = name.strip_prefix("--").is_some_and(|name| {
            let of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            name.chars().all(of_a_name)
        });
        *argument = match (is_option && (!only_values || name == "--"), value) {
            (true, true) => format!("{name}={HIDDEN}"),
            (true, false) => name.to_string(),
            (false, _) => HIDDEN.into(),
        };
    }
}

/// Shortens a key pattern or plan that was cut when recorded to its last whole field: half a name would not be
/// recognized as a name.
fn cut(text: &mut String) {
    let count = |mark| text.matches(mark).count();
    let ended = text.ends_with('}') || text.chars().count() < CUT_CHARS;
    if count('{') == count('}') && ended {
        return;
    }
    // Not the last comma, which may be part of the name.
    let at = match text.rfind(':') {
        Some(colon) => text[colon..].find(',').map_or(text.len(), |at| colon + at),
        None => text.find('{').unwrap_or_default(),
    };
    text.truncate(at);
    text.push_str(HIDDEN);
}

/// Returns the text with the options removed from its connection strings.
pub fn without_uri_options(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let (before, uri) = rest.split_at(scheme);
        let ends = |c: char| c.is_whitespace() || "`\"'<>".contains(c);
        let (uri, after) = uri.split_at(uri.find(ends).unwrap_or(uri.len()));
        out.push_str(before);
        out.push_str(uri.split_once('?').map_or(uri, |(uri, _)| uri));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use seekscope_run::{
        ClusterRecord, DiskAbility, EarlierRun, ExaminationRecord, IndexFacts, MemberRecord,
        NamedValue, OperationSeen, SpreadCollection,
    };

    use super::*;

    #[test]
    fn of_arguments_only_options_stay() {
        let mut typed = [
            "doctor",
            "mongodb://acme/",
            "--index",
            r#"{"ssn":1}"#,
            "--collection",
            "a.b",
            "--collection=c.d",
            "--out",
            "acme",
            "--json",
            "--Acme=x",
            "-x/acme",
            "--",
            "--acme",
        ]
        .map(String::from);
        hide_values("doctor", &mut typed);
        assert_eq!(
            typed.join(" "),
            "doctor ... --index ... --collection ... --collection=... --out ... --json ... ... -- ..."
        );
    }

    #[test]
    fn options_of_connection_strings_go() {
        for (text, expected) in [
            (
                "mongodb://a,b:1/x?tlsCAFile=/etc/acme.pem&w=1",
                "mongodb://a,b:1/x",
            ),
            (
                "run `seekscope top mongodb://a/?appName=acme` of mongodb://b/?y=1 now?",
                "run `seekscope top mongodb://a/` of mongodb://b/ now?",
            ),
            ("is it so?", "is it so?"),
        ] {
            assert_eq!(without_uri_options(text), expected);
        }
    }

    #[test]
    fn half_a_name_goes() {
        for (text, expected) in [
            ("IXSCAN { a: 1, b: 1 }, COLLSCAN", None),
            ("COLLSCAN", None),
            (r#"{"a":1}"#, None),
            ("IXSCAN { a: 1, patientN", Some("IXSCAN { a: 1...")),
            ("IXSCAN { a: 1, last, first", Some("IXSCAN { a: 1...")),
            ("IXSCAN { patientN", Some("IXSCAN ...")),
            (r#"{"a":1,"patientN"#, Some(r#"{"a":1..."#)),
        ] {
            let mut shortened = text.to_string();
            cut(&mut shortened);
            assert_eq!(shortened, expected.unwrap_or(text));
        }
        let mut long = format!("IXSCAN {{ {}}}x: 1, patientN", "a".repeat(CUT_CHARS));
        cut(&mut long);
        assert!(!long.contains("patient"), "marks of ours in a name");
    }

    #[test]
    fn texts_that_may_hold_any_name_go() {
        let mut document = RunDocument::begin("doctor", Vec::new());
        let mut member = MemberRecord::default();
        member.target.uri = "mongodb://h/?authSource=acme".into();
        member.options.push(NamedValue {
            name: "operationProfiling.filter".into(),
            value: "{ ns: 'acme.x' }".into(),
        });
        member.operations.push(OperationSeen {
            plan: Some("IXSCAN { acme".into()),
            ..OperationSeen::default()
        });
        let mut collection = seekscope_run::CollectionFacts::default();
        collection.indexes.push(IndexFacts {
            keys: r#"{"acme"#.into(),
            ..IndexFacts::default()
        });
        member.collections.push(collection);
        let sharded = SpreadCollection {
            key: r#"{"acme"#.into(),
            ..SpreadCollection::default()
        };
        document.examination = Some(ExaminationRecord {
            members: vec![member],
            cluster: Some(ClusterRecord {
                collections: vec![sharded],
                ..ClusterRecord::default()
            }),
            disk: Some(DiskAbility {
                source: "acme/disk-1, of today".into(),
                ..DiskAbility::default()
            }),
            since: Some(EarlierRun {
                run: "acme".into(),
                ..EarlierRun::default()
            }),
            ..ExaminationRecord::default()
        });
        strip(&mut document);
        let text = serde_json::to_string(&document).unwrap();
        assert!(!text.contains("acme"), "{text}");
        assert!(document.examination.unwrap().redacted);
    }

    #[test]
    fn runs_of_other_commands_are_refused() {
        let checked = |command| check(&RunDocument::begin(command, Vec::new()));
        for command in ["doctor", "layout", "trace"] {
            assert!(checked(command).is_ok(), "{command}");
        }
        for command in ["prefetch", "replay", "merge", "of-a-later-version"] {
            let error = checked(command).unwrap_err().to_string();
            assert!(error.contains(&format!("seekscope {command}")), "{error}");
        }
    }
}
