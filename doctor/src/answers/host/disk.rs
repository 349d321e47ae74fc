//! Checks I/O scheduler and filesystem.

use super::HostAnswer;
use crate::Evidence;
use crate::wording::shell_quoted;

/// "none" and "mq-deadline" (formerly "noop" and "deadline") leave the order of requests to the disk or bound
/// their wait; the production notes ask for one of them. "bfq" and "cfq" idle between processes.
const UNFIT_SCHEDULERS: [&str; 2] = ["bfq", "cfq"];

pub(super) fn scheduler(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let device = evidence.device()?;
    let (disk, has) = (device.disk.as_deref()?, device.scheduler.as_deref()?);
    // Virtual disks claim to rotate when their hypervisor does not say.
    let is_virtual = disk.starts_with("vd") || disk.starts_with("xvd");
    let rotates = device.rotational == Some(true) && !is_virtual;
    let better = if rotates || disk.starts_with("sd") {
        "mq-deadline"
    } else {
        "none"
    };
    Some(HostAnswer {
        setting: "I/O scheduler".into(),
        has: has.into(),
        wants: match rotates {
            true => "mq-deadline".into(),
            false => "none or mq-deadline".into(),
        },
        fits: !UNFIT_SCHEDULERS.contains(&has),
        why: "flash and virtual disks order their requests themselves; bfq and cfq idle to share a disk \
              fairly, which a server that has it to itself pays for (production notes)"
            .into(),
        loss_s_per_hour: None,
        command: format!("echo {better} > {}", queue_file(disk, "scheduler")),
    })
}

/// Returns the path of a setting of a disk's queue, quoted: names come from `/sys` of the examined host.
pub(super) fn queue_file(disk: &str, setting: &str) -> String {
    shell_quoted(&format!("/sys/block/{disk}/queue/{setting}"))
}

/// Checks the filesystem: XFS "is strongly recommended" for WiredTiger in the production notes, because of
/// performance problems met on ext4. Other unfit filesystems are reported from the run's surroundings.
pub(super) fn filesystem(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let device = evidence.device()?;
    (!device.filesystem.is_empty()).then_some(())?;
    let has = device.filesystem.as_str();
    let (fits, why) = match has {
        "xfs" => (true, "XFS is what WiredTiger does best on"),
        "ext4" => (
            true,
            "ext4 will do; its journal can hold up syncs while a checkpoint is written, so measure \
             checkpoints before blaming it",
        ),
        _ => (
            false,
            "MongoDB supports WiredTiger's data on XFS and ext4 alone",
        ),
    };
    Some(HostAnswer {
        setting: "filesystem".into(),
        has: has.into(),
        wants: "xfs, or ext4".into(),
        fits,
        why: format!("{why} (production notes)"),
        loss_s_per_hour: None,
        command: "mkfs.xfs /dev/NEW-VOLUME  # then resync this member onto it".into(),
    })
}
