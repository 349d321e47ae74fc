//! Measures the cost of an examination.

use seekscope_run::{ExaminationCost, Limitation, RunDocument};
use seekscope_server::ProcFs;

/// Commands of ours that may have programs in the kernel.
const TRACERS: [&str; 4] = ["exporter", "top", "trace", "doctor"];

/// Returns the cost of this process so far, and of its programs in the kernel.
pub fn cost(document: &RunDocument, commands: u64, ended_early: Option<String>) -> ExaminationCost {
    let (proc_fs, pid) = (ProcFs::host(), std::process::id());
    let traces = document
        .phases
        .iter()
        .filter_map(|phase| phase.trace.as_ref());
    ExaminationCost {
        client_cpu_ns: proc_fs.cpu_ns(pid).unwrap_or(0),
        kernel_cpu_ns: traces.map(|trace| trace.cost.known_program_ns()).sum(),
        client_peak_rss_bytes: proc_fs.rss_bytes_max(pid).unwrap_or(0),
        commands,
        ended_early,
    }
}

/// Adds what was asked of members, and what tracing them took, to the cost of a deployment's run. The process is the
/// same one.
pub fn add_members<'a>(cost: &mut ExaminationCost, members: impl Iterator<Item = &'a RunDocument>) {
    let costs = members.filter_map(|member| member.examination.as_ref()?.cost.as_ref());
    for of_member in costs {
        cost.commands = cost.commands.saturating_add(of_member.commands);
        cost.kernel_cpu_ns = cost
            .kernel_cpu_ns
            .zip(of_member.kernel_cpu_ns)
            .map(|(all, own)| all.saturating_add(own));
    }
}

/// Returns what other seekscopes on this host do to this examination; `None` where there are none.
pub fn other_tracers(proc_fs: &ProcFs) -> Option<Limitation> {
    let own = std::process::id();
    let pids = proc_fs.pids().into_iter().filter(|pid| *pid != own);
    let others: Vec<String> = pids
        .filter(|pid| proc_fs.exe_name(*pid).is_ok_and(|name| name == "seekscope"))
        .filter_map(|pid| {
            let arguments = proc_fs.arguments(pid).ok()?;
            let command = arguments.get(1)?.clone();
            TRACERS
                .contains(&command.as_str())
                .then(|| format!("seekscope {command} (process {pid})"))
        })
        .collect();
    (!others.is_empty()).then(|| Limitation {
        what: "what the tracing of another seekscope on this host costs the server".into(),
        why: format!(
            "{} may trace here, too: each call then runs the programs of both, and what it reads of the data files \
             is among the requests of other processes",
            others.join(", ")
        ),
        remedy: "stop it for as long as the cost matters".into(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_cost_of_a_deployment_is_that_of_its_members() {
        let mut cost = ExaminationCost {
            commands: 3,
            kernel_cpu_ns: Some(0),
            ..ExaminationCost::default()
        };
        let member = |kernel_cpu_ns| {
            let mut document = RunDocument::begin("doctor", Vec::new());
            document.examination.get_or_insert_default().cost = Some(ExaminationCost {
                commands: 40,
                kernel_cpu_ns,
                ..ExaminationCost::default()
            });
            document
        };
        add_members(&mut cost, [member(Some(7)), member(Some(5))].iter());
        assert_eq!((cost.commands, cost.kernel_cpu_ns), (83, Some(12)));
        add_members(&mut cost, [member(None)].iter());
        assert_eq!(cost.kernel_cpu_ns, None, "one is not known");
    }

    #[test]
    fn another_seekscope_that_may_trace_is_named() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: &str, exe: &str, cmdline: &str| {
            let folder = root.path().join(pid);
            fs::create_dir(&folder).unwrap();
            symlink(exe, folder.join("exe")).unwrap();
            fs::write(folder.join("cmdline"), cmdline).unwrap();
        };
        process("10", "/usr/bin/seekscope", "seekscope\0report\0run\0");
        process("11", "/usr/bin/mongod", "mongod\0exporter\0");
        let proc_fs = ProcFs::at(root.path());
        assert_eq!(other_tracers(&proc_fs), None);
        process(
            "12",
            "/usr/bin/seekscope",
            "seekscope\0exporter\0mongodb://u:QZ9Xsecret@db1/\0",
        );
        let limitation = other_tracers(&proc_fs).unwrap();
        assert!(
            limitation
                .why
                .starts_with("seekscope exporter (process 12) may trace")
        );
        assert!(!limitation.why.contains("QZ9X"));
        assert!(!limitation.why.contains("  "), "{}", limitation.why);
    }
}
