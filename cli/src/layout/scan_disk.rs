//! Chooses the disk that scans are predicted for: one that was measured, or the typical one that the data's
//! disk resembles most.

use std::path::Path;

use anyhow::Result;
use seekscope_layout::typical_disks;
use seekscope_run::{DeviceFacts, DeviceModel};

use crate::args::ScanDiskArgs;
use crate::disk::load_model;
use crate::exit::Usage;

/// The disk that scans are predicted for.
pub struct ScanDisk {
    pub model: DeviceModel,
    /// The device under the data, if it could be determined.
    pub device: Option<DeviceFacts>,
    pub measured: bool,
}

impl ScanDisk {
    /// Chooses a disk for data below `path`.
    pub fn choose(args: &ScanDiskArgs, path: &Path) -> Result<Self> {
        let typical = args.typical.map(|name| name.name());
        Self::measured_or_typical(args.disk_run.as_deref(), typical, path)
    }

    /// Returns the disk that a run measured, else the typical one of this name, else the one that the disk below `path`
    /// looks most like.
    pub fn measured_or_typical(
        disk_run: Option<&Path>,
        typical: Option<&str>,
        path: &Path,
    ) -> Result<Self> {
        let device = DeviceFacts::of_path(Path::new("/"), path).ok();
        if let Some(run) = disk_run {
            let (model, ..) = load_model(run)?;
            return Ok(Self {
                model,
                device,
                measured: true,
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
        })
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
}
