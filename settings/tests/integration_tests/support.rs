//! What several tests need.

use std::path::Path;

use seekscope_run::tune::{KnobValue, KnobValues};
use seekscope_settings::{HostFiles, KnobEntry, KnobFile};
use seekscope_tune::space::Configuration;

pub(crate) fn values(pairs: &[(&str, i64)]) -> KnobValues {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), KnobValue::Integer(*value)))
        .collect()
}

pub(crate) fn configuration(pairs: &[(&str, i64)]) -> Configuration {
    Configuration(values(pairs))
}

/// A knob of whole numbers, 1 to 1000, of which 8 is what there is.
pub(crate) fn knob(name: &str, set: &str) -> KnobEntry {
    let text = format!(
        "[[knob]]\nname = \"{name}\"\ntype = \"integer\"\nlow = 1\nhigh = 1000\ndefault = 8\nset = {set}\n"
    );
    KnobFile::parse(&text).unwrap().knobs.remove(0)
}

/// A made-up `/sys` and `/proc` with a disk "sdz".
pub(crate) fn made_up_host(root: &Path) -> HostFiles {
    for (path, text) in [
        ("sys/block/sdz/queue/read_ahead_kb", "128\n"),
        (
            "sys/block/sdz/queue/scheduler",
            "none [mq-deadline] kyber\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        ),
        ("proc/sys/vm/dirty_ratio", "20\n"),
        ("proc/sys/vm/dirty_background_ratio", "10\n"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    HostFiles::at(root, Some("sdz".into()))
}
