//! What to type about a limit: to see it, and to lift it where it is the reader's own.

use seekscope_run::IoLimit;

use crate::Evidence;
use crate::answers::Ceiling;
use crate::wording::shell_quoted;

/// Where limits come from, and where they are changed.
pub(super) const RISK: &str = "Limits are often set for the sake of neighbours, or are what was paid for: lift one only \
                               where it is yours. One that systemd, Docker or Kubernetes sets comes back unless it is \
                               changed there as well, in the unit or in what describes the container.";
/// The same of a volume's limit.
pub(super) const RISK_OF_VOLUME: &str = "The limit is part of what was paid for: the provider can usually raise it \
                                         without moving the data.";

/// Returns a command that shows the limits of the control groups that the server is in, whichever these are: none of
/// them was seen to be reached.
pub(super) fn limits_of_process(evidence: &Evidence<'_>) -> String {
    let pid = evidence.examined().and_then(|member| member.target.pid);
    let process = pid.map_or("self".into(), |pid| pid.to_string());
    format!(
        "for group in $(cut -d: -f3 /proc/{process}/cgroup | sort -u); do grep -s . /sys/fs/cgroup$group/io.max \
         /sys/fs/cgroup/blkio$group/blkio.throttle.*_device; done; true"
    )
}

/// Returns what to type about a limit that was reached.
pub(super) fn command(evidence: &Evidence<'_>, ceiling: &Ceiling) -> String {
    match &ceiling.limit {
        Some(limit) => of_group(limit),
        None => super::super::measure_disk(evidence),
    }
}

/// Returns a command that shows the limits of a control group, and one for each version of control groups that lifts
/// this one: the other finds no such file.
pub(super) fn of_group(limit: &IoLimit) -> String {
    let IoLimit { cgroup, device, .. } = limit;
    let quoted = |path: &str| shell_quoted(&format!("/sys/fs/cgroup{path}"));
    let folder = quoted(cgroup);
    let of_blkio = quoted(&format!("/blkio{cgroup}"));
    let show = format!("grep -s . {folder}/io.max {of_blkio}/blkio.throttle.*_device || true");
    let Some((file, key)) = limit.file_and_key() else {
        return show;
    };
    let lift = shell_quoted(&format!("{device} {key}=max"));
    let lift_by_blkio = shell_quoted(&format!("{device} 0"));
    format!(
        "{show}\n\
         echo {lift} > {folder}/io.max  # lifts it, with control groups v2\n\
         echo {lift_by_blkio} > {of_blkio}/{file}  # lifts it, with v1"
    )
}
