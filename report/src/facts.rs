//! States what was measured on and with, as lines of words. HTML and terminal show the same.

use seekscope_doctor::wording::shell_quoted;
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{DeviceFacts, HostFacts, RunDocument, TargetFacts};

use crate::numbers::format_number;
use crate::table::{Cell, Table};

/// Shown for a fact that is `None`.
pub(crate) const UNKNOWN: &str = "unknown: not readable here";

/// A name and its value, where known.
pub type Fact = (&'static str, Option<String>);

/// Returns the text, unless it is empty, which means unknown in records.
pub fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

/// Returns the size, unless it is 0, which means unknown in records.
pub fn known_bytes(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format_bytes(bytes))
}

/// Returns facts of the machine.
pub(crate) fn host_facts(host: &HostFacts) -> Vec<Fact> {
    vec![
        ("Kernel", known(&host.kernel)),
        ("Processor", known(&host.cpu_model)),
        ("CPUs", (host.cpus > 0).then(|| host.cpus.to_string())),
        ("Memory", known_bytes(host.memory_bytes)),
        (
            "Load at start, one minute",
            Some(format_number(host.load_1m)),
        ),
        (
            "Transparent huge pages",
            host.transparent_huge_pages.clone(),
        ),
    ]
}

/// Returns facts of the disk and its filesystem.
pub fn device_facts(device: &DeviceFacts) -> Vec<Fact> {
    let rotational = device
        .rotational
        .map(|r| if r { "yes" } else { "no" }.to_string());
    vec![
        ("Path", known(&device.path)),
        ("Disk", device.disk.clone()),
        ("Filesystem", known(&device.filesystem)),
        ("Mount options", known(&all_options(device))),
        ("Size", known_bytes(device.size_bytes)),
        ("Free", known_bytes(device.free_bytes)),
        ("Rotational, as the kernel claims", rotational),
        ("I/O scheduler", device.scheduler.clone()),
        (
            "Read-ahead",
            device
                .read_ahead_kib
                .map(|kib| format!("{} KiB", format_count(kib))),
        ),
        ("Write cache", device.write_cache.clone()),
    ]
}

/// Returns the options of the mount and those of its filesystem that are not among them.
fn all_options(device: &DeviceFacts) -> String {
    let of_mount = device.mount_options.split(',');
    let of_filesystem = device.filesystem_options.split(',');
    let more = of_filesystem.filter(|option| of_mount.clone().all(|known| known != *option));
    let all: Vec<&str> = of_mount.clone().chain(more).collect();
    all.join(",")
}

/// Returns facts of the server under study.
pub fn target_facts(target: &TargetFacts) -> Vec<Fact> {
    let origin = if target.local {
        "started by seekscope"
    } else {
        "found running"
    };
    if !target.shards.is_empty() {
        return vec![
            ("Router", known(&target.product)),
            ("Version", known(&target.version)),
            ("Address", known(&target.uri)),
            ("Shards behind it", Some(target.shards.join(", "))),
        ];
    }
    vec![
        ("Product", known(&target.product)),
        ("Version", known(&target.version)),
        ("Address", known(&target.uri)),
        ("Origin", Some(origin.into())),
        ("Process", target.pid.map(|pid| pid.to_string())),
        ("Data directory", target.dbpath.clone()),
        ("Configured cache", target.cache_bytes.map(format_bytes)),
    ]
}

/// Returns facts as a table.
pub fn fact_table(heading: &'static str, facts: Vec<Fact>) -> Table {
    let mut table = Table::new(2, &[heading, "value"]);
    for (name, value) in facts {
        table.row([name.into(), Cell::or(value, UNKNOWN)]);
    }
    table
}

/// Formats a time as UTC text.
pub(crate) fn date(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_second(seconds) {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => "at an unknown date".into(),
    }
}

/// Returns the command in a form that can be typed again.
pub(crate) fn command_line(document: &RunDocument) -> String {
    command_line_with(document, &document.arguments)
}

/// Returns the same with other arguments.
pub(crate) fn command_line_with(document: &RunDocument, arguments: &[String]) -> String {
    let mut words: Vec<String> = arguments
        .iter()
        .map(|argument| shell_quoted(argument))
        .collect();
    let names_program = |word: &String| word.rsplit('/').next() == Some("seekscope");
    if words.first().is_some_and(names_program) {
        words.remove(0);
    }
    if !words.contains(&document.command) {
        words.insert(0, document.command.clone());
    }
    format!("seekscope {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let mut document = RunDocument::begin("doctor", vec!["doctor".into(), "a b".into()]);
        assert_eq!(command_line(&document), "seekscope doctor 'a b'");
        document.arguments = vec![
            "/bin/seekscope".into(),
            "--keys={\"i\":1}".into(),
            "it's".into(),
        ];
        assert_eq!(
            command_line(&document),
            r#"seekscope doctor '--keys={"i":1}' 'it'\''s'"#
        );
    }

    #[test]
    fn dates_are_in_utc() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(1_700_000_000_000_000_000), "2023-11-14 22:13:20 UTC");
    }
}
