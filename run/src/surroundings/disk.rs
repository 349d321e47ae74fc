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
        "Reads go through two filesystems and may be served from the cache of the outer one even \
         when direct; the loop device has a queue and read-ahead of its own.",
        "Measure on the disk that holds the file, or attach the file with `losetup --direct-io=on`.",
    ))
}

fn encryption(facts: &Facts<'_>) -> Option<Distortion> {
    let layers = facts.layers(|kind| kind == "crypt")?;
    Some(Distortion::new(
        "encryption",
        format!("the disk is encrypted by the kernel: {layers}"),
        "Every block costs CPU time and, by default, a hand-over to a kernel thread, which shows \
         most at low depth on fast disks.",
        "On flash disks try `cryptsetup refresh --perf-no_read_workqueue \
         --perf-no_write_workqueue NAME` and measure again.",
    ))
}

fn raid(facts: &Facts<'_>) -> Option<Distortion> {
    let layers = facts.layers(|kind| kind.starts_with("raid"))?;
    Some(Distortion::new(
        "raid",
        format!("the disk is a RAID of the kernel: {layers}"),
        "Reads spread over the members, so more depth helps for longer; small writes to levels 4, \
         5 and 6 cost reads of data and parity; a rebuild or check slows everything.",
        "See in /proc/mdstat that none is under way; levels 1 and 10 suit databases best.",
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
        "It helps buffered scans in disk order, most where requests are limited, for it makes them \
         large. It hurts where reads jump: a page fault on a mapped file reads up to that much, \
         and a short run of blocks reads on beyond its end, which takes disk time and cache.",
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
        "It shares the disk fairly between processes and idles to do so, which costs throughput \
         and CPU time that a database would rather have.",
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
            "What a sync costs, and whether it keeps its promise, depends on how the disk or the \
             hypervisor treats flush requests.",
            "If syncs take well under a millisecond, see that the disk has power-loss protection.",
        )
    })
}

fn rotational_claim(facts: &Facts<'_>) -> Option<Distortion> {
    (facts.is_virtual() && facts.device.rotational == Some(true)).then(|| {
        Distortion::new(
            "rotational-claim",
            format!("{} is virtual and says it is rotating", facts.disk()),
            "The flag is whatever the hypervisor says; programs that go by it, and the kernel's own \
             defaults, may treat a flash disk as a slow one.",
            "Go by measured cost: random reads that take well under a millisecond do not rotate.",
        )
    })
}
