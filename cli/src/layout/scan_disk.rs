//! Chooses the disk that scans are predicted for: one that was measured, or the typical one that the data's
//! disk resembles most; either within the limits on the I/O of the server that has the data open.

use std::path::Path;

use anyhow::Result;
use seekscope_doctor::{DIRECTLY, limit_by_control_groups};
use seekscope_layout::typical_disks;
use seekscope_run::{DeviceFacts, DeviceModel, HostFacts, Surroundings, has_open_directly};
use seekscope_server::ProcFs;

use super::data_location::{OPEN_WHILE_RUNNING, OpenedData};
use crate::args::ScanDiskArgs;
use crate::disk::load_model;
use crate::exit::Usage;

/// The disk that scans are predicted for.
pub struct ScanDisk {
    pub model: DeviceModel,
    /// The device under the data, if it could be determined.
    pub device: Option<DeviceFacts>,
    pub measured: bool,
    /// Whether the server reads past the page cache.
    pub read_directly: bool,
}

impl ScanDisk {
    /// Chooses a disk for data below `path`. Scans of the server that has it open meet the limits on its I/O, except
    /// on another disk, which the user has named.
    pub fn choose(args: &ScanDiskArgs, path: &Path) -> Result<Self> {
        let typical = args.typical.map(|name| name.name());
        let mut disk = Self::measured_or_typical(args.disk_run.as_deref(), typical, path)?;
        if typical.is_none() {
            disk.limit(Path::new("/"), &servers_of(path), path);
        }
        Ok(disk)
    }

    /// Applies the limits of the control groups of these processes.
    fn limit(&mut self, root: &Path, pids: &[u32], path: &Path) {
        let Some(device) = &self.device else {
            return;
        };
        let host = HostFacts::default();
        let of = |pid: &u32| Surroundings::of_process(root, Some(*pid), path, device, &host);
        let limits: Vec<_> = pids.iter().flat_map(|pid| of(pid).io_limits).collect();
        limit_by_control_groups(&mut self.model, self.measured, Some(device), &limits);
    }

    /// Returns the disk that a run measured, else the typical one of this name, else the one that the disk below `path`
    /// looks most like.
    pub fn measured_or_typical(
        disk_run: Option<&Path>,
        typical: Option<&str>,
        path: &Path,
    ) -> Result<Self> {
        let device = DeviceFacts::of_path(Path::new("/"), path).ok();
        let read_directly = is_read_directly(path);
        if let Some(run) = disk_run {
            let (model, ..) = load_model(run)?;
            return Ok(Self {
                model,
                device,
                measured: true,
                read_directly,
            });
        }
        let name = typical.unwrap_or_else(|| looks_like(device.as_ref()));
        let typical = typical_disks::by_name(name)
            .ok_or_else(|| Usage(format!("there is no typical disk {name}")))?;
        let mut model = typical.model;
        // The only thing known of the real disk, and an important one.
        let read_ahead_kib = device.as_ref().and_then(|device| device.read_ahead_kib);
        if let Some(bytes) = read_ahead_kib.and_then(|kib| kib.checked_mul(1024)) {
            model.read_ahead_bytes = bytes;
        }
        Ok(Self {
            model,
            device,
            measured: false,
            read_directly,
        })
    }
}

/// Returns the processes that have this data directory open, as far as that may be seen.
fn servers_of(directory: &Path) -> Vec<u32> {
    ProcFs::host().holders(&directory.join(OPEN_WHILE_RUNNING))
}

/// Returns whether the server that has this data directory open reads it past the page cache (`direct_io=[data]`).
/// False where that may not be seen.
fn is_read_directly(directory: &Path) -> bool {
    servers_of(directory)
        .into_iter()
        .any(|pid| has_open_directly(pid, directory))
}

/// The disks that scans of the files of one run are predicted for: that of the server, or each member's own.
pub struct ScanDisks {
    /// The disk of the server, or of the first member.
    first: ScanDisk,
    /// The disks of all members, by label.
    of_members: Vec<(String, ScanDisk)>,
}

impl ScanDisks {
    /// Takes one disk for all files.
    pub fn one(disk: ScanDisk) -> Self {
        Self {
            first: disk,
            of_members: Vec::new(),
        }
    }

    /// Chooses a disk for the data of each member.
    pub fn choose(args: &ScanDiskArgs, data: &OpenedData) -> Result<Self> {
        let mut disks = Self::one(ScanDisk::choose(args, data.path())?);
        for (member, data) in &data.parts {
            if let Some(member) = member {
                let disk = ScanDisk::choose(args, data.path())?;
                disks.of_members.push((member.member.clone(), disk));
            }
        }
        Ok(disks)
    }

    /// Returns the disk for the files of a member, or of the server.
    pub fn of(&self, member: Option<&str>) -> &ScanDisk {
        let mut disks = self.of_members.iter();
        let own = disks.find(|(label, _)| Some(label.as_str()) == member);
        own.map_or(&self.first, |(_, disk)| disk)
    }

    fn all(&self) -> impl Iterator<Item = &ScanDisk> {
        let of_members = self.of_members.iter().map(|(_, disk)| disk);
        std::iter::once(&self.first).chain(of_members)
    }

    /// Returns the names of the disks, each once.
    pub fn in_words(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for disk in self.all() {
            let how = match disk.read_directly {
                true => DIRECTLY,
                false => "",
            };
            let name = format!("{}{how}", disk.model.disk);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" and ")
    }

    /// Returns whether all were measured.
    pub fn measured(&self) -> bool {
        self.all().all(|disk| disk.measured)
    }

    /// Returns the device under the data, if it could be determined and is the same for all.
    pub fn device(&self) -> Option<DeviceFacts> {
        let number = |disk: &ScanDisk| disk.device.as_ref().map(|d| d.disk_device.clone());
        let is_same = self.all().all(|disk| number(disk) == number(&self.first));
        self.first.device.clone().filter(|_| is_same)
    }
}

/// Returns the most similar typical disk. Virtual disks mostly claim to be rotational, whatever is behind them.
fn looks_like(device: Option<&DeviceFacts>) -> &'static str {
    let Some(device) = device else { return "ssd" };
    let disk = device.disk.as_deref().unwrap_or_default();
    let model = device.model.as_deref().unwrap_or_default();
    let cloud_models = ["Amazon Elastic", "PersistentDisk", "Virtual Disk", "QEMU"];
    let is_virtual = disk.starts_with("vd")
        || disk.starts_with("xvd")
        || cloud_models.iter().any(|name| model.contains(name));
    if is_virtual {
        "cloud"
    } else if disk.starts_with("nvme") {
        "nvme"
    } else if device.rotational == Some(true) {
        "hdd"
    } else {
        "ssd"
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::BlockLayer;

    use super::*;

    #[test]
    fn disks_are_told_by_what_the_kernel_says() {
        let disk = |name: &str, model: &str, rotational| {
            looks_like(Some(&DeviceFacts {
                disk: Some(name.into()),
                model: Some(model.into()),
                rotational,
                ..DeviceFacts::default()
            }))
        };
        assert_eq!(disk("sda", "ST4000NM0033", Some(true)), "hdd");
        assert_eq!(disk("sda", "Samsung SSD 870", Some(false)), "ssd");
        assert_eq!(disk("nvme0n1", "Samsung 990", Some(false)), "nvme");
        assert_eq!(disk("nvme1n1", "Amazon Elastic Block Store", None), "cloud");
        assert_eq!(disk("vda", "", Some(true)), "cloud");
        assert_eq!(looks_like(None), "ssd");
    }

    #[test]
    fn a_server_meets_the_limits_of_its_control_group() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "0::/server\n");
        write("proc/8/cgroup", "0::/others\n");
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        write("proc/self/mountinfo", mounts);
        write("sys/fs/cgroup/server/io.max", "8:0 riops=150 rbps=max\n");
        let disk = |pids: &[u32]| {
            let mut disk = ScanDisk {
                model: typical_disks::by_name("cloud").unwrap().model,
                device: Some(DeviceFacts {
                    layers: vec![BlockLayer {
                        name: "sda".into(),
                        device: "8:0".into(),
                        kind: "disk".into(),
                    }],
                    ..DeviceFacts::default()
                }),
                measured: false,
                read_directly: false,
            };
            disk.limit(root.path(), pids, Path::new("/nowhere"));
            disk.model
        };
        let limited = disk(&[7]);
        assert_eq!(limited.iops_bucket.unwrap().per_s, 150.0);
        let words = ", limited to 150 read requests per second by the server's control group";
        assert!(limited.disk.ends_with(words), "{}", limited.disk);
        for others in [&[8][..], &[]] {
            let free = disk(others);
            assert_eq!(free.iops_bucket.unwrap().per_s, 3000.0);
            assert!(!free.disk.contains("limited"), "{}", free.disk);
        }
    }

    #[test]
    fn members_have_their_own_disks() {
        let disk = |name: &str, device: &str| ScanDisk {
            model: typical_disks::by_name(name).unwrap().model,
            device: Some(DeviceFacts {
                disk_device: Some(device.into()),
                ..DeviceFacts::default()
            }),
            measured: name == "hdd",
            read_directly: false,
        };
        let mut disks = ScanDisks::one(disk("ssd", "8:0"));
        disks.of_members = vec![("s0".into(), disk("ssd", "8:0"))];
        assert_eq!(disks.device().unwrap().disk_device.unwrap(), "8:0");
        let ssd = disks.in_words();
        assert!(ssd.starts_with("typical SATA SSD") && !ssd.contains(" and "));
        disks.of_members.push(("s1".into(), disk("hdd", "8:16")));
        assert!(disks.of(Some("s0")).model.disk.contains("SSD"));
        assert!(disks.of(Some("s1")).model.disk.contains("hard disk"));
        assert!(disks.of(None).model.disk.contains("SSD"));
        let both = disks.in_words();
        assert!(
            both.starts_with(&format!("{ssd} and typical hard disk")),
            "{both}"
        );
        assert!(!disks.measured());
        assert_eq!(disks.device(), None);
    }
}
