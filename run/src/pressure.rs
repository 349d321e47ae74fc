//! How long tasks of the host waited for I/O: the kernel's pressure stall information
//! (Documentation/accounting/psi.rst).

use std::path::Path;
use std::time::Duration;

use crate::kernel_files::read_trimmed;

/// A reading of `/proc/pressure/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPressure {
    /// Time since boot in which at least one task waited for I/O, µs.
    pub some_us: u64,
}

impl IoPressure {
    /// Reads the pressure below `root` ("/" outside of tests); `None` if the kernel does not count it.
    pub fn read(root: &Path) -> Option<Self> {
        let text = read_trimmed(root.join("proc/pressure/io"))?;
        let (_, some_us) = pressure_totals(&text).find(|(kind, _)| *kind == "some")?;
        Some(Self { some_us })
    }

    /// Returns the share (0..=1) of the time since `earlier` in which some task waited for I/O. The kernel
    /// updates the sum in steps of some ms, so spans well below a second are coarse.
    pub fn share_since(&self, earlier: &Self, elapsed: Duration) -> f64 {
        if elapsed.is_zero() {
            return 0.0;
        }
        let waited_us = self.some_us.saturating_sub(earlier.some_us);
        (waited_us as f64 / 1e6 / elapsed.as_secs_f64()).min(1.0)
    }
}

/// Parses the text of a file of `/proc/pressure`: for "some" and "full", the time since boot in which some or
/// all tasks waited, µs.
pub fn pressure_totals(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (kind, rest) = line.split_once(' ')?;
        let total = rest.split(' ').find_map(|f| f.strip_prefix("total="))?;
        Some((kind, total.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn share_of_a_span() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(IoPressure::read(root.path()), None);
        fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        let read = |text: &str| {
            fs::write(root.path().join("proc/pressure/io"), text).unwrap();
            IoPressure::read(root.path())
        };
        let earlier =
            read("some avg10=45.98 avg60=1.0 avg300=0.0 total=1000000\nfull avg10=0.00 total=7\n");
        let (earlier, later) = (
            earlier.unwrap(),
            read("some avg10=0.0 total=1500000\n").unwrap(),
        );
        assert_eq!(later.share_since(&earlier, Duration::from_secs(2)), 0.25);
        assert_eq!(later.share_since(&earlier, Duration::from_millis(1)), 1.0);
        assert_eq!(later.share_since(&earlier, Duration::ZERO), 0.0);
        assert_eq!(earlier.share_since(&later, Duration::from_secs(2)), 0.0);
        for odd in ["", "full total=7\n", "some total=x\n", "some avg10=1\n"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
