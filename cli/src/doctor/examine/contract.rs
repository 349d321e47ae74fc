//! What is announced before anything is done: what is read, what never happens, the cost, the time, the rights
//! found, and how to stop.

use std::time::Duration;

use seekscope_run::Lacking;
use seekscope_server::Hello;

use super::builds::INDEX_NAME;
use super::disk_ability::{PROBE_TIME, scan_disk};
use super::guard::CPU_BUDGET;
use super::subject::Subject;
use super::{Asked, gathering};
use crate::layout::gentle;
use crate::session::Session;

/// Returns the whole announcement.
pub fn contract(session: &Session, asked: &Asked, subject: &Subject) -> String {
    let target = session.document.target.as_ref();
    let server = target.map_or("the server", |t| t.uri.as_str());
    let found = subject.role.in_words();
    let probe = match asked.args.probe_disk {
        true => {
            "\n           as permitted, up to 10 s of reads and writes in a file of its own on the data's disk."
        }
        false => "",
    };
    let (index, never_writes) = match &asked.build {
        Some(keys) => (
            format!(
                " Writes:  builds the index {} as {INDEX_NAME} on {}, as permitted, and drops it again.\n ",
                keys.to_json(),
                asked
                    .namespaces
                    .first()
                    .map_or(String::new(), ToString::to_string),
            ),
            "reads documents, writes anything else, locks, restarts or reconfigures",
        ),
        None => (
            String::new(),
            "writes to the server or its files, reads documents, locks, restarts or reconfigures",
        ),
    };
    let time = match &asked.build {
        Some(_) => "until the index is built".into(),
        None => seconds(asked.args.duration()),
    };
    let pages = scan_disk(session).map_or(0, |disk| gentle::reads_per_s(&disk.model));
    let probing = match asked.args.probe_disk {
        true => PROBE_TIME,
        false => Duration::ZERO,
    };
    let extra = gathering::EXTRA_MAX + probing;
    format!(
        "Examining {server}, {found}.\n\
         \x20 Reads:   {}.\n\
         \x20{index} Never:   {never_writes}\n\
         \x20          anything, drops a cache.{probe}\n\
         \x20 Cost:    at most {:.2} CPUs, {} page reads per second of the data files, some three cheap commands\n\
         \x20          per second and a hundred or two at the beginning and end; it stops what it traces by itself\n\
         \x20          when it takes more, or makes the server or the disk wait. About 200 MB of memory, some 150\n\
         \x20          bytes on disk per read or write seen.\n\
         \x20 Time:    {}; at most {} more to begin and to conclude.\n\
         \x20 Rights:  {}.\n\
         \x20 Stop:    Ctrl-C, at any moment; what was seen is kept, nothing stays behind.",
        reads(
            subject.lacking,
            subject.pid.is_some(),
            subject.data.is_some()
        ),
        CPU_BUDGET,
        pages,
        time,
        seconds(extra),
        rights_found(asked, subject),
    )
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64().round())
}

/// Promises no more than is read: a server that wants a login tells hardly anything without one, and a login need not
/// have all rights.
fn reads(lacking: Option<Lacking>, is_here: bool, has_data: bool) -> String {
    let mut reads = vec![match lacking {
        Some(Lacking::Login) => {
            "the server's role and version, as far as it tells them without a login"
        }
        Some(Lacking::Right) | None => {
            "as far as it tells them, server status, settings, statistics of the largest\n           collections; operations that run or that the log calls slow (no values)"
        }
    }];
    if is_here {
        reads.push("/proc of its process, its reads and writes by eBPF");
    }
    if has_data {
        reads.push("the internal pages of its largest files, its diagnostic files");
    }
    reads.join(";\n           ")
}

fn rights_found(asked: &Asked, subject: &Subject) -> String {
    let user = match rustix::process::geteuid().is_root() {
        true => "root",
        false => "not root",
    };
    let process = match subject.pid {
        Some(pid) => format!("process {pid} is on this host"),
        None => "the server's process cannot be seen from here".into(),
    };
    let data = match &subject.data {
        Some(path) => format!("data in {}", path.display()),
        None => "no data directory to be read".into(),
    };
    let trace = match may_trace(asked, subject) {
        Ok(()) => "tracing is tried".into(),
        Err((why, remedy)) => format!("no tracing, for {why}: {remedy}"),
    };
    format!(
        "{user}; {process}; {data}; {trace}; `seekscope doctor --print-role` lists what a login needs"
    )
}

/// Returns whether a primary may be traced that others depend on. Permission for an index build on the server
/// includes permission for a trace.
pub fn may_trace_primary(asked: &Asked) -> bool {
    asked.args.trace_primary || asked.build.is_some()
}

/// Returns whether tracing is permitted here; `Err` holds the reason and what would permit it.
pub fn may_trace(asked: &Asked, subject: &Subject) -> Result<(), (String, String)> {
    let role = &subject.role;
    if subject.pid.is_none() {
        return Err((
            "the server's process cannot be seen from here".into(),
            "run seekscope on the server's host".into(),
        ));
    }
    if role.0.as_ref().is_some_and(Hello::is_router) {
        return Err((
            "a mongos keeps no data".into(),
            "name a member of a shard".into(),
        ));
    }
    if role.others_may_depend_on_it() && !may_trace_primary(asked) {
        let why = match &role.0 {
            None => "it does not say whether others replicate from it".into(),
            Some(hello) => {
                let others = match hello.data_members.len().saturating_sub(1) {
                    1 => "another member replicates".to_string(),
                    count => format!("{count} others replicate"),
                };
                format!("it is {}, from which {others}", role.in_words())
            }
        };
        return Err((
            why,
            "examine a secondary, or permit it with --trace-primary".into(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: settings and statistics were promised of a server that tells nobody without a login.
    #[test]
    fn what_a_server_does_not_tell_is_not_promised() {
        let refused = reads(Some(Lacking::Login), true, true);
        assert!(!refused.contains("statistics"), "{refused}");
        assert!(refused.contains("/proc of its process"), "{refused}");
        for lacking in [None, Some(Lacking::Right)] {
            let told = reads(lacking, false, false);
            assert!(told.starts_with("as far as it tells them"), "{told}");
            assert!(!told.contains("/proc"), "{told}");
        }
    }
}
