//! Distortions that come from the disk, what it is made of and how its queue is configured.

use super::{Detector, Distortion, Facts};

pub(super) const DETECTORS: &[Detector] = &[
    loop_device,
    encryption,
    raid,
    read_ahead,
    scheduler,
    write_cache,
    rotational_claim,
];

/// The kernel's default. A higher value was set on purpose, often by a cloud image.
const READ_AHEAD_KIB_USUAL: u64 = 128;

impl Facts<'_> {
    /// Returns the names of the layers of these kinds, comma-separated; `None` if there are none.
    fn layers(&self, is_kind: impl Fn(&str) -> bool) -> Option<String> {
        let layers = self.device.layers.iter().filter(|l| is_kind(&l.kind));
        let names: Vec<String> = layers.map(|l| format!("{} ({})", l.name, l.kind)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn disk(&self) -> &str {
        self.device.disk.as_deref().unwrap_or_default()
    }

    /// Returns whether the disk is a virtio or Xen disk, by its name: what those say about themselves comes
    /// from the hypervisor.
    fn is_virtual(&self) -> bool {
        ["vd", "xvd"]
            .iter()
            .any(|prefix| self.disk().starts_with(prefix))
    }
}

fn loop_device(facts: &Facts<'_>) -> Option<Distortion> {
    let layers = facts.layers(|kind| kind == "loop")?;
    Some(Distortion::new(
        "loop-device",
        format!("the filesystem lies in a file, behind {layers}"),
        "Reads pass through two filesystems, and even direct reads may be served from the cache of \
         the outer one; the loop device has its own queue and read-ahead.",
        "Measure on the disk that holds the file, or attach the file with `losetup --direct-io=on`.",
    ))
}

fn encryption(facts: &Facts<'_>) -> Option<Distortion> {
    let layers = facts.layers(|kind| kind == "crypt")?;
    Some(Distortion::new(
        "encryption",
        format!("the disk is encrypted by the kernel: {layers}"),
        "Every block costs CPU time and, by default, a hand-over to a kernel thread, which matters \
         most at low queue depth on fast disks.",
        "On flash disks try `cryptsetup refresh --perf-no_read_workqueue \
         --perf-no_write_workqueue NAME` and measure again.",
    ))
}

fn raid(facts: &Facts<'_>) -> Option<Distortion> {
    let layers = facts.layers(|kind| kind.starts_with("raid"))?;
    Some(Distortion::new(
        "raid",
        format!("the disk is a software RAID: {layers}"),
        "Reads are spread over the members, so that throughput rises up to a larger queue depth; \
         small writes to levels 4, 5 and 6 require reads of data and parity; a rebuild or check \
         slows everything down.",
        "Check in /proc/mdstat that no rebuild or check is in progress; levels 1 and 10 suit \
         databases best.",
    ))
}

fn read_ahead(facts: &Facts<'_>) -> Option<Distortion> {
    let kib = facts
        .device
        .read_ahead_kib
        .filter(|kib| *kib > READ_AHEAD_KIB_USUAL)?;
    Some(Distortion::new(
        "read-ahead-large",
        format!(
            "read-ahead of {} is {kib} KiB (usual: {READ_AHEAD_KIB_USUAL} KiB; MongoDB recommends \
             `blockdev --setra` 8 to 32, which is 4 to 16 KiB, for WiredTiger)",
            facts.disk()
        ),
        "It helps buffered scans in disk order, most of all where the number of requests is \
         limited, because it makes requests larger. It hurts random reads: a page fault on a \
         mapped file reads up to that much, and a short run of blocks is read on beyond its end, \
         which costs disk time and cache.",
        &format!(
            "Measure scans and random reads at several values before choosing: \
             echo 32 > /sys/block/{}/queue/read_ahead_kb",
            facts.disk()
        ),
    ))
}

fn scheduler(facts: &Facts<'_>) -> Option<Distortion> {
    let scheduler = facts.device.scheduler.as_deref()?;
    if !["bfq", "cfq"].contains(&scheduler) {
        return None;
    }
    let queues_itself = facts.is_virtual() || facts.disk().starts_with("nvme");
    let better = if queues_itself { "none" } else { "mq-deadline" };
    Some(Distortion::new(
        "scheduler",
        format!("the I/O scheduler of {} is {scheduler}", facts.disk()),
        "It lets the disk idle in order to share it fairly between processes, and so costs \
         throughput and CPU time that a database could use.",
        &format!(
            "echo {better} > /sys/block/{}/queue/scheduler",
            facts.disk()
        ),
    ))
}

fn write_cache(facts: &Facts<'_>) -> Option<Distortion> {
    (facts.device.write_cache.as_deref() == Some("write back")).then(|| {
        Distortion::new(
            "write-cache",
            format!("{} has a write-back cache", facts.disk()),
            "What a sync costs, and whether it makes data durable, depends on how the disk or the \
             hypervisor handles flush requests.",
            "If syncs take well under a millisecond, make sure that the \
             disk has power-loss protection.",
        )
    })
}

fn rotational_claim(facts: &Facts<'_>) -> Option<Distortion> {
    (facts.is_virtual() && facts.device.rotational == Some(true)).then(|| {
        Distortion::new(
            "rotational-claim",
            format!(
                "{} is a virtual disk that reports itself as rotational",
                facts.disk()
            ),
            "The hypervisor sets this flag; the kernel's defaults, and programs that rely on it, \
             may treat a flash disk as a hard disk.",
            "Trust the measured service time: a disk whose random reads take well under a \
             millisecond is not rotational.",
        )
    })
}
