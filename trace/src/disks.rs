//! Which disks hold files, and the addresses of two kernel functions that reveal direct I/O.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use seekscope_run::DeviceFacts;

/// Disks that can be followed at once (`MAX_DISKS` in bpf/block.h).
pub(crate) const DISKS_MAX: usize = 16;

/// A whole disk in the kernel's form, `major << 20 | minor`.
pub(crate) type DiskNumber = u32;

/// Returns the disks below the filesystem of `path`: the whole disk of a partition, and the members
/// of a logical volume or an array. Empty if there are none or the path is gone.
pub(crate) fn below(path: &Path) -> Vec<DiskNumber> {
    let layers = DeviceFacts::of_path(Path::new("/"), path).map(|facts| facts.layers);
    let layers = layers.unwrap_or_default();
    layers
        .iter()
        .filter_map(|layer| number(&layer.device))
        .collect()
}

/// Parses `major:minor`.
fn number(text: &str) -> Option<DiskNumber> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// Returns the kernel's name of a disk, e.g. "vda".
pub(crate) fn name(major: u32, minor: u32) -> String {
    let link = format!("/sys/dev/block/{major}:{minor}");
    std::fs::canonicalize(link)
        .ok()
        .and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| format!("{major}:{minor}"))
}

/// Returns the addresses of kernel functions by name; 0 for those that are missing or hidden from
/// us.
pub(crate) fn function_addresses<const N: usize>(names: [&str; N]) -> [u64; N] {
    let mut addresses = [0; N];
    let Ok(symbols) = File::open("/proc/kallsyms") else {
        return addresses;
    };
    // There are some 200,000 lines, so none is copied into memory of its own. The kernel produces each as it is read,
    // which takes it some ten milliseconds for all of them.
    let (mut symbols, mut line) = (BufReader::with_capacity(1 << 16, symbols), Vec::new());
    while addresses.contains(&0) {
        line.clear();
        if !matches!(symbols.read_until(b'\n', &mut line), Ok(1..)) {
            break;
        }
        // `address type name [module]`
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        let (Some(address), _, Some(symbol)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if let Some(at) = names.iter().position(|name| name.as_bytes() == symbol) {
            let address = std::str::from_utf8(address).unwrap_or_default();
            addresses[at] = u64::from_str_radix(address, 16).unwrap_or(0);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        assert_eq!(number("254:1"), Some(254 << 20 | 1));
        assert_eq!(number("8"), None);
        assert_eq!(number("8:x"), None);
        assert_eq!(number("4096:0"), None);
    }

    #[test]
    fn a_function_has_an_address_and_what_is_none_has_none() {
        let [known, unknown] = function_addresses(["bio_chain_endio", "no_such_function"]);
        assert!(known != 0, "needs root");
        assert_eq!(unknown, 0);
    }

    #[test]
    fn a_path_that_is_gone_has_no_disk() {
        assert_eq!(below(Path::new("/no/such/path")), Vec::<DiskNumber>::new());
    }
}
