//! Loop devices and mounts that are gone after the test, however it ends.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs to success; its standard output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// A block device whose content is a file.
pub struct LoopDevice {
    pub path: PathBuf,
}

impl LoopDevice {
    /// `image` is made: sparse, of `bytes`.
    pub fn of_new_image(image: &Path, bytes: u64) -> Self {
        std::fs::File::create_new(image)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        Self::of_image(image, &[])
    }

    pub fn of_image(image: &Path, more: &[&str]) -> Self {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(more);
        arguments.push(image.to_str().unwrap());
        Self {
            path: run("losetup", &arguments).into(),
        }
    }

    /// A filesystem on it, with `more` arguments to mkfs.
    pub fn formatted(self, more: &[&str]) -> Self {
        let mut arguments = vec!["-q"];
        arguments.extend(more);
        arguments.push(self.path.to_str().unwrap());
        run("mkfs.ext4", &arguments);
        self
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).output();
    }
}

/// A mounted filesystem, with the device below it.
pub struct Mount {
    pub point: PathBuf,
    /// Detached after the mount is gone.
    _device: Option<LoopDevice>,
}

impl Mount {
    pub fn of_device(device: LoopDevice, point: &Path, options: &str) -> Self {
        let mut mount = Self::make(&["-o", options, device.path.to_str().unwrap()], point);
        mount._device = Some(device);
        mount
    }

    /// One without a device, such as tmpfs.
    pub fn of_kind(kind: &str, point: &Path, options: &str) -> Self {
        Self::make(&["-t", kind, "-o", options, "none"], point)
    }

    fn make(arguments: &[&str], point: &Path) -> Self {
        std::fs::create_dir(point).unwrap();
        let arguments = [arguments, &[point.to_str().unwrap()]].concat();
        run("mount", &arguments);
        Self {
            point: point.into(),
            _device: None,
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily, lest anything that still looks into it keeps it for ever.
        let _ = Command::new("umount").arg("-l").arg(&self.point).output();
    }
}
