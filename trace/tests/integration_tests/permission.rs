//! Refusals, in words.

use std::path::Path;
use std::process::Stdio;

use seekscope_trace::{LiveSource, TraceError, TraceOptions};

use crate::support::{Worker, alone, job_command};

/// What a process says that a wrapper deprives of something, when it tries to trace.
fn attach_within(wrapper: &[&str], job: &str, folder: &Path) -> String {
    let output = job_command(wrapper, job, folder)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said.lines().count(),
        1,
        "the library must not write to the terminal: {said}"
    );
    said
}

/// What a process without the usual powers of root says when it tries to trace.
fn attach_with(setpriv: &[&str], folder: &Path) -> String {
    let mut wrapper = vec!["setpriv"];
    wrapper.extend(setpriv);
    attach_within(&wrapper, "attach", folder)
}

/// Where files are mounted otherwise, for this command and its children only.
fn attach_after(mounting: &str, job: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{mounting}; exec \"$0\" \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-e", "-c", &script];
    attach_within(&wrapper, job, folder.path())
}

#[test]
fn without_tracefs_classic_tracepoints_say_how_to_mount_it() {
    let _turn = alone();
    let hidden = "mount -t tmpfs none /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug";
    let said = attach_after(hidden, "attach_tracepoint");
    assert!(
        said.contains("tracefs, which is not mounted")
            && said.contains("mount -t tracefs tracefs /sys/kernel/tracing"),
        "{said}"
    );
    // The other backend does without.
    assert_eq!(attach_after(hidden, "attach"), "attached\n");
}

#[test]
fn without_type_information_the_message_says_what_the_kernel_lacks() {
    let _turn = alone();
    let said = attach_after("mount -t tmpfs none /sys/kernel/btf", "attach");
    assert!(
        said.contains("/sys/kernel/btf/vmlinux is missing")
            && said.contains("CONFIG_DEBUG_INFO_BTF=y"),
        "{said}"
    );
}

/// Reproduces a container whose profile forbids bpf(2), whatever its capabilities.
#[test]
fn a_seccomp_filter_is_suspected_where_the_capabilities_are_there() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let said = attach_within(&[], "attach_without_bpf", folder.path());
    assert!(
        said.starts_with("true cannot load the tracing programs"),
        "{said}"
    );
    for word in ["seccomp", "lockdown", "CAP_BPF"] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

#[test]
fn without_capabilities_the_message_says_which_and_how_to_get_them() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let said = attach_with(&["--bounding-set=-all", "--inh-caps=-all"], folder.path());
    let expected = "true cannot trace system calls with eBPF: this process lacks CAP_BPF and CAP_PERFMON. Run seekscope with sudo";
    assert!(said.starts_with(expected), "{said}");
    for word in [
        "setcap cap_bpf,cap_perfmon",
        "AmbientCapabilities=",
        "--cap-add BPF",
    ] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

/// The remedy that the message above gives.
const GRANTED: &str = "+bpf,+perfmon,+sys_ptrace,+dac_read_search";

#[test]
fn an_ordinary_user_with_the_capabilities_named_may_trace_another_users_process() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::start("fast_reads", folder.path());
    std::fs::write(folder.path().join("pid"), worker.pid().to_string()).unwrap();
    let as_nobody = |capabilities: &str| {
        let inherited = format!("--inh-caps=-all,{capabilities}");
        let ambient = format!("--ambient-caps=-all,{capabilities}");
        let user = [
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            &inherited,
            &ambient,
        ];
        attach_with(&user, folder.path())
    };
    assert_eq!(as_nobody(GRANTED), "attached\n");
    let said = as_nobody("+bpf,+perfmon,+dac_read_search");
    assert!(
        said.starts_with("true cannot read the list of open files of process"),
        "{said}"
    );
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let error = LiveSource::attach(&TraceOptions::new(u32::MAX))
        .err()
        .unwrap();
    assert!(
        matches!(error, TraceError::NoSuchProcess { pid: u32::MAX }),
        "{error}"
    );
}

#[test]
fn a_thread_is_not_a_process() {
    let process = std::process::id();
    // SAFETY: no arguments. Tests run on threads of their own.
    let thread = u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
    let error = LiveSource::attach(&TraceOptions::new(thread))
        .err()
        .unwrap();
    let named = matches!(error, TraceError::NotAProcess { pid, process: p } if pid == thread && p == process);
    assert!(named, "{error}");
}
