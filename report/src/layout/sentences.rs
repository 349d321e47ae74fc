//! Explains the figures of a file in words.

use seekscope_doctor::key_order::is_worth_ordering;
use seekscope_doctor::wording::shell_quoted;
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{
    DataState, LayoutFile, LayoutMeasurement, LayoutMember, NameSource, OrderDecay, PredictedScan,
    ScanOrder, labelled,
};

use super::{file_name, free_share, own_name};
use crate::escape::visible;
use crate::numbers::{counted, format_mean_ns, format_number, format_share, format_times};

/// Smallest free share that is mentioned.
const FREE_SHARE_MIN: f64 = 0.01;

/// The smallest score that is called nearly in order.
const NEARLY_IN_ORDER_SCORE: f64 = 0.8;

/// Words for a file's order, by the score from which they apply, downwards.
const WORDS: [(f64, &str); 5] = [
    (ScanOrder::IN_ORDER_SCORE, "in order"),
    (NEARLY_IN_ORDER_SCORE, "nearly in order"),
    (0.5, "partly out of order"),
    (0.1, "mostly out of order"),
    (0.0, "in random order"),
];

/// A scan that takes this many times as long as one of the leaves rewritten takes notably longer.
const SLOWER_TIMES: f64 = 1.25;
/// A scan after compact that takes less than this share of what one takes now gains by it.
const CLOSING_HELPS: f64 = 0.75;
/// One that takes less than this many times as long takes hardly longer.
const HARDLY_SLOWER_TIMES: f64 = 1.1;
/// Share of what a scan asks for from which on it matters that the disk reads as much beside it.
const READ_BESIDE_SHARE: f64 = 0.1;

/// Returns how well ordered a file is, by its score.
pub fn order_word(order: &ScanOrder) -> &'static str {
    let word = WORDS.iter().find(|(least, _)| order.score >= *least);
    word.map_or("in random order", |(_, word)| word)
}

/// Formats seconds for people.
pub fn format_s(seconds: f64) -> String {
    format_mean_ns(seconds * 1e9)
}

/// Returns the most important fact: which file costs what.
pub fn headline(measurement: &LayoutMeasurement) -> Option<String> {
    let measured = || {
        measurement
            .files
            .iter()
            .filter(|f| f.not_measured.is_none())
    };
    let worst = measured().max_by(|a, b| a.scan_saved_s().total_cmp(&b.scan_saved_s()))?;
    if is_worth_ordering(worst) || measured().count() == 1 {
        return file_headline(worst, measurement.is_for_typical_disk());
    }
    let count = measured().count();
    let most = worst.scan_saved_s();
    let gain = if most >= 0.001 {
        format!(
            "the most that a rewrite in order could save a cold scan{} is {} ({})",
            on_disk(measurement.is_for_typical_disk()),
            format_s(most),
            file_name(worst)
        )
    } else {
        "scans have nothing to gain from a better order".into()
    };
    Some(format!(
        "None of {} files is so far out of order that it matters: {gain}.",
        format_count(count as u64)
    ))
}

/// Returns a sentence like "shop.orders is stored in random order: a cold scan takes 31 s, in order it would
/// take 2 s." It says if the seconds are those of a typical disk, and what it is if not the order that costs a scan its
/// time.
pub fn file_headline(file: &LayoutFile, is_for_typical_disk: bool) -> Option<String> {
    let name = file_name(file);
    let Some(order) = &file.order else {
        return (file.leaf_pages > 0)
            .then(|| format!("{name} is a single leaf: there is no order to lose."));
    };
    let word = order_word(order);
    let Some(scan) = &file.predicted_scan else {
        return Some(format!("{name} is stored {word}."));
    };
    let on_disk = on_disk(is_for_typical_disk);
    let (now, ordered) = (format_s(scan.now_s), format_s(scan.ordered_s));
    let takes = format!("{name} is stored {word}: a cold scan takes about {now}{on_disk}");
    let is_in_order = order.score >= ScanOrder::IN_ORDER_SCORE
        || (order.score >= NEARLY_IN_ORDER_SCORE && reads_gaps(file, scan));
    Some(
        if is_in_order && scan.now_s > SLOWER_TIMES * scan.ordered_s {
            format!("{takes}. {}", slower_in_order(file, scan))
        } else if !is_in_order && scan.now_s < HARDLY_SLOWER_TIMES * scan.ordered_s {
            format!("{takes}; in order, it would take hardly less, {ordered}.")
        } else {
            format!("{takes}; in order, it would take {ordered}.")
        },
    )
}

/// Returns the bytes of the pages that a scan asks for.
fn asked_bytes(file: &LayoutFile) -> u64 {
    file.leaf_bytes.saturating_add(file.internal_bytes)
}

/// Returns whether a scan also reads much of what lies between the leaves.
fn reads_gaps(file: &LayoutFile, scan: &PredictedScan) -> bool {
    scan.device_bytes as f64 > (1.0 + READ_BESIDE_SHARE) * asked_bytes(file) as f64
}

/// Says what makes a scan of leaves in order slow, and what mends it.
fn slower_in_order(file: &LayoutFile, scan: &PredictedScan) -> String {
    let ordered = format_s(scan.ordered_s);
    if reads_gaps(file, scan) {
        let beside = scan.device_bytes.saturating_sub(asked_bytes(file));
        return format!(
            "Read-ahead also reads {} that lie between the leaf pages. Without these gaps, it \
             would take {ordered}: compact or a rewrite closes them, and a smaller read-ahead \
             (read_ahead_kb) reads less of them.",
            format_bytes(beside)
        );
    }
    if file.extents.as_ref().is_some_and(|e| e.used_for_prediction) {
        return format!(
            "The filesystem stores the file in several extents. In a single extent, as a rewrite \
             may leave it, it would take {ordered}."
        );
    }
    format!(
        "The scan jumps over gaps between the leaf pages. Without these gaps, it would take \
         {ordered}: compact or a rewrite closes them."
    )
}

pub(crate) fn on_disk(is_for_typical_disk: bool) -> &'static str {
    match is_for_typical_disk {
        true => " on a typical disk",
        false => "",
    }
}

/// Returns further facts about a file, a sentence each.
pub fn about_file(file: &LayoutFile) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(order) = &file.order {
        said.push(order_sentence(file, order));
    }
    said.extend(file.predicted_scan.as_ref().map(scan_sentence));
    if free_share(file) >= FREE_SHARE_MIN {
        said.push(format!(
            "{} of the file ({}) are free for reuse, in {}, the largest of which has {}: the leaf \
             pages that change next are written there.",
            format_bytes(file.free_bytes),
            format_share(free_share(file)),
            counted(file.holes, "hole"),
            format_bytes(file.largest_hole_bytes)
        ));
    }
    if let Some(overflow_bytes) = file.overflow_bytes.filter(|bytes| *bytes > 0) {
        said.push(format!(
            "{} of large keys and values lie outside the leaf pages; a scan reads them in \
             addition, with one seek each.",
            format_bytes(overflow_bytes)
        ));
    }
    if let Some(extents) = file.extents.as_ref().filter(|e| e.used_for_prediction) {
        said.push(format!(
            "The filesystem stores the file in {} extents; {} of the steps that look sequential in \
             the file are jumps on the device. The prediction includes them.",
            format_count(extents.extents),
            format_share(extents.broken_pairs_share)
        ));
    }
    said.extend(file.decay.as_ref().map(decay_sentence));
    said
}

fn order_sentence(file: &LayoutFile, order: &ScanOrder) -> String {
    format!(
        "{} of {} steps from leaf to leaf continue where the last one ended, or at most {} \
         further. Seeks of a scan: {} ({} at best), one every {}.",
        format_share(order.sequential_share),
        format_count(file.leaf_pages.saturating_sub(1)),
        format_bytes(order.window_bytes),
        format_count(order.seeks),
        format_count(order.seeks_best),
        format_mean_bytes(order.bytes_per_seek)
    )
}

fn scan_sentence(scan: &PredictedScan) -> String {
    let compact = match scan.after_compact_s < CLOSING_HELPS * scan.now_s {
        true => "which closes gaps",
        false => "which frees space but hardly changes the order",
    };
    format!(
        "Predicted for a cold scan by one reader: {} (between {} and {}), {} in order, {} after \
         compact, {compact}.",
        format_s(scan.now_s),
        format_s(scan.now_low_s),
        format_s(scan.now_high_s),
        format_s(scan.ordered_s),
        format_s(scan.after_compact_s)
    )
}

fn decay_sentence(decay: &OrderDecay) -> String {
    let moved = format_share(decay.moved_share_per_hour);
    let half = match decay.half_life_hours {
        None => "the order stays as it is".into(),
        Some(hours) => format!(
            "half of the remaining order will be lost in {}",
            hours_text(hours)
        ),
    };
    format!(
        "According to {}, {moved} of the leaves move per hour: {half}. {} of the steps have no gap \
         now, {} after an hour, {} after a day, {} after a week.",
        visible(&decay.basis),
        format_share(decay.contiguous_now),
        format_share(decay.contiguous_after_hour),
        format_share(decay.contiguous_after_day),
        format_share(decay.contiguous_after_week)
    )
}

/// Formats a time like `20 min`, `5.2 h`, `3.1 days`.
pub(crate) fn hours_text(hours: f64) -> String {
    match hours {
        h if !h.is_finite() => "unknown".into(),
        h if h < 1.0 / 60.0 => format_s(h * 3600.0),
        h if h < 1.0 => format!("{} min", format_number(h * 60.0)),
        h if h < 48.0 => format!("{} h", format_number(h)),
        h if h < 365.0 * 24.0 => format!("{} days", format_number(h / 24.0)),
        h => format!("{} years", format_times(h / 24.0 / 365.0)),
    }
}

/// Returns a mean of bytes, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates: a size for people, 0 where it is none"
)]
pub(super) fn format_mean_bytes(bytes: f64) -> String {
    format_bytes(bytes.round() as u64)
}

/// Says what the directory is, and how it was found.
pub fn about_directory(measurement: &LayoutMeasurement) -> String {
    if !measurement.members.is_empty() {
        return about_members(measurement);
    }
    let path = visible(&measurement.path);
    let version = measurement.wiredtiger_version.as_deref().map(visible);
    let version = version.map_or(String::new(), |v| format!(", WiredTiger {v}"));
    match measurement.state {
        DataState::Stopped => format!("{path}{version}: no server has this directory open."),
        DataState::Live => format!(
            "{path}{version}: a server has this directory open; each file is shown as of its \
             newest checkpoint."
        ),
        DataState::Backup => {
            format!(
                "{path}{version}: this is a hot backup, shown as of the checkpoint that \
                     it was made from."
            )
        }
        DataState::LoneFile => {
            format!("{path}: this is a single file, without the directory that it belongs to.")
        }
    }
}

fn about_members(measurement: &LayoutMeasurement) -> String {
    let members = measurement.members.iter();
    let members = members.map(|m| format!("{} in {}", visible(&m.member), visible(&m.path)));
    let version = measurement.wiredtiger_version.as_deref().map(visible);
    let version = version.map_or(String::new(), |v| format!(", WiredTiger {v}"));
    format!(
        "{}{version}, on this host {}; each file is shown as of its newest checkpoint.",
        visible(&measurement.path),
        members.collect::<Vec<_>>().join(", ")
    )
}

/// Says what cannot be told of shards: chunks that migrate leave no trace of their own in inner pages.
const MIGRATIONS: &str = "How much of the disorder is due to migrated chunks, and how much to \
    updates, cannot be determined: a document that migrates gets a new record ID at the end, like \
    one that is inserted, and the internal pages of a collection hold neither shard keys nor the \
    time at which a leaf page was written.";

/// Returns what must be known about the names and the disk, and what to do next; a sentence each.
pub fn hints(measurement: &LayoutMeasurement) -> Vec<String> {
    let mut hints = Vec::new();
    if measurement.files.iter().all(|file| file.leaf_pages == 0) {
        // A file that could not be read, or that is missing though it was named, may have held anything.
        let is_new = |file: &LayoutFile| file.was_walked() && file.checkpoint.is_empty();
        let none_is_missing = !measurement.files.is_empty() || measurement.named.is_empty();
        if none_is_missing && measurement.files.iter().all(is_new) {
            hints.push(
                "There is no data yet because no checkpoint has been written. A mongod takes \
                 one every 60 s."
                    .to_string(),
            );
        }
        return hints;
    }
    match measurement.names {
        _ if measurement.state == DataState::LoneFile => {}
        NameSource::Catalogue => {}
        NameSource::IndexMetadata => hints.push(
            "The catalogue could not be read, so only indexes are shown with their collections."
                .into(),
        ),
        NameSource::TableNames => hints.push(table_names_hint(measurement)),
    }
    hints.push(disk_hint(measurement));
    if measurement.members.iter().any(|m| m.shard.is_some()) {
        hints.push(MIGRATIONS.into());
    }
    if measurement.named.is_empty() && measurement.state != DataState::LoneFile {
        let file = measurement.files.iter().find(|f| f.leaf_pages > 0);
        let name = file.map(|f| match &f.namespace {
            Some(_) => labelled(f.member.as_deref(), &own_name(f)),
            None => f.file.clone(),
        });
        let name = name.unwrap_or_default();
        hints.push(format!(
            "To see one of them in detail: seekscope layout {} {}",
            shell_quoted(&measurement.path),
            shell_quoted(&name)
        ));
    }
    hints
}

/// Returns a hint that a running server may report names that the directory does not contain.
fn table_names_hint(measurement: &LayoutMeasurement) -> String {
    let told = |file: &LayoutFile| {
        let namespace = file.namespace.as_deref();
        namespace.is_some_and(|name| file.file.strip_suffix(".wt") != Some(name))
    };
    let names = match measurement.files.iter().any(told) {
        true => "the server reported which table holds which collections",
        false => "tables are shown by their own names",
    };
    format!(
        "This is not the data directory of a mongod: {names}, and one table \
         may hold several collections."
    )
}

pub(crate) fn disk_hint(measurement: &LayoutMeasurement) -> String {
    let disk = visible(&measurement.predicted_for);
    if let Some(disks) = own_disks(&measurement.members) {
        return format!(
            "Times are predicted for the disk of each member, according to what the kernel \
             reports: {disks}. None was measured: measure one with --measure-disk DIR, or name a \
             run of `seekscope disk` with --disk-run RUN, next to the data directory of its member."
        );
    }
    if measurement.disk_measured {
        format!("Times are predicted for the disk that was measured: {disk}.")
    } else {
        let assumed = match measurement.is_limited() {
            true => ". The limit was found on this host; the disk itself was assumed, not measured",
            false => ", which was assumed, not measured",
        };
        format!(
            "Times are predicted for a {disk}{assumed}: measure yours with --measure-disk DIR, name a run of \
             `seekscope disk` with --disk-run RUN, or choose another with --typical."
        )
    }
}

/// Returns the disk of each member, if they have different ones.
fn own_disks(members: &[LayoutMember]) -> Option<String> {
    let first = members.first()?;
    if members
        .iter()
        .all(|m| m.predicted_for == first.predicted_for)
    {
        return None;
    }
    let disk =
        |m: &LayoutMember| format!("of {} a {}", visible(&m.member), visible(&m.predicted_for));
    let disks: Vec<String> = members.iter().map(disk).collect();
    Some(disks.join(", "))
}

#[cfg(test)]
mod tests {
    use seekscope_run::DeviceExtents;

    use super::*;

    fn file(now_s: f64, ordered_s: f64, score: f64) -> LayoutFile {
        LayoutFile {
            file: "collection-1.wt".into(),
            namespace: Some("shop.orders".into()),
            leaf_pages: 1000,
            order: Some(ScanOrder {
                score,
                ..ScanOrder::default()
            }),
            predicted_scan: Some(PredictedScan {
                now_s,
                ordered_s,
                ..PredictedScan::default()
            }),
            ..LayoutFile::default()
        }
    }

    fn headline_of(files: Vec<LayoutFile>) -> String {
        headline(&LayoutMeasurement {
            files,
            disk_measured: true,
            ..LayoutMeasurement::default()
        })
        .unwrap()
    }

    #[test]
    fn the_headline_names_what_costs_most() {
        assert_eq!(
            headline_of(vec![file(2.0, 1.9, 0.9), file(31.0, 2.0, 0.001)]),
            "shop.orders is stored in random order: a cold scan takes about 31.0 s; in order, it \
             would take 2.00 s."
        );
        let fine = headline_of(vec![file(2.0, 1.9, 0.97), file(1.0, 1.0, 1.0)]);
        assert!(
            fine.starts_with("None of 2 files") && fine.contains("100 ms"),
            "{fine}"
        );
    }

    /// 20.68 MB of leaves, of which the disk reads 38.95 MB: ranges between them were deleted.
    #[test]
    fn what_makes_a_scan_in_order_slow_is_said() {
        let said = |file: &LayoutFile| file_headline(file, true).unwrap();
        let mut gaps = file(0.303, 0.166, 0.99);
        (gaps.leaf_bytes, gaps.internal_bytes) = (20_600_000, 80_000);
        let scan = gaps.predicted_scan.as_mut().unwrap();
        scan.device_bytes = 38_950_000;
        assert_eq!(
            said(&gaps),
            "shop.orders is stored in order: a cold scan takes about 303 ms on a typical disk. Read-ahead also reads \
             17.4 MiB that lie between the leaf pages. Without these gaps, it would take 166 ms: compact or a rewrite \
             closes them, and a smaller read-ahead (read_ahead_kb) reads less of them."
        );
        gaps.predicted_scan.as_mut().unwrap().device_bytes = 20_680_000;
        assert!(said(&gaps).contains("The scan jumps over gaps between"));
        gaps.extents = Some(DeviceExtents {
            used_for_prediction: true,
            ..DeviceExtents::default()
        });
        assert!(said(&gaps).contains("stores the file in several extents"));
        let fast = said(&file(0.17, 0.166, 0.99));
        assert!(fast.ends_with("in order, it would take 166 ms."), "{fast}");
    }

    #[test]
    fn where_order_saves_nothing_that_is_said() {
        let read_whole = file_headline(&file(0.31, 0.3, 0.02), false).unwrap();
        assert_eq!(
            read_whole,
            "shop.orders is stored in random order: a cold scan takes about 310 ms; in order, it would take hardly \
             less, 300 ms."
        );
        let worth = file_headline(&file(0.4, 0.3, 0.02), false).unwrap();
        let expected = "400 ms; in order, it would take 300 ms.";
        assert!(worth.ends_with(expected), "{worth}");
    }

    /// Times for a disk that was never seen are marked as such beside the figure.
    #[test]
    fn a_typical_disk_is_named_beside_its_seconds() {
        let on_typical = file_headline(&file(31.0, 2.0, 0.001), true).unwrap();
        assert_eq!(
            on_typical,
            "shop.orders is stored in random order: a cold scan takes about 31.0 s on a typical disk; in \
             order, it would take 2.00 s."
        );
        let none = headline(&LayoutMeasurement {
            files: vec![file(2.0, 1.9, 0.97), file(1.0, 1.0, 1.0)],
            predicted_for: "typical SSD".into(),
            ..LayoutMeasurement::default()
        });
        assert!(none.unwrap().contains("on a typical disk is 100 ms"));
    }

    #[test]
    fn words_follow_the_score() {
        let word = |score| {
            order_word(&ScanOrder {
                score,
                ..ScanOrder::default()
            })
        };
        assert_eq!(word(1.0), "in order");
        assert_eq!(word(0.609), "partly out of order");
        assert_eq!(word(0.015), "in random order");
        assert_eq!(word(f64::NAN), "in random order");
    }

    fn of_members(shard: Option<&str>) -> LayoutMeasurement {
        let member = |member: &str, path: &str| LayoutMember {
            member: member.into(),
            shard: shard.map(String::from),
            path: path.into(),
            predicted_for: "typical SSD".into(),
        };
        LayoutMeasurement {
            path: "mongodb://mongos/".into(),
            state: DataState::Live,
            names: NameSource::Catalogue,
            members: vec![member("s0", "/data/a"), member("s1", "/data/b\u{1b}")],
            files: vec![LayoutFile {
                member: Some("s0".into()),
                ..file(31.0, 2.0, 0.001)
            }],
            named: vec!["shop.orders".into()],
            ..LayoutMeasurement::default()
        }
    }

    #[test]
    fn members_are_named_and_their_files_told_apart() {
        let about = about_directory(&of_members(None));
        assert!(
            about.contains("s0 in /data/a, s1 in /data/b\\u{1b};"),
            "{about}"
        );
        let headline = headline(&of_members(None)).unwrap();
        assert!(
            headline.starts_with("s0/shop.orders is stored"),
            "{headline}"
        );
    }

    #[test]
    fn a_limit_on_the_server_is_not_called_assumed() {
        let limited = LayoutMeasurement {
            predicted_for: "typical SSD, limited to 150 read requests per second by the server's \
                            control group"
                .into(),
            ..LayoutMeasurement::default()
        };
        let hint = disk_hint(&limited);
        let expected = "by the server's control group. The limit was found on this host; the disk itself was assumed";
        assert!(hint.contains(expected), "{hint}");
        assert!(!limited.is_for_typical_disk());
    }

    #[test]
    fn members_on_several_disks_are_each_predicted_for_their_own() {
        let mut several = of_members(None);
        several.predicted_for = "typical SSD".into();
        assert!(disk_hint(&several).contains("predicted for a typical SSD, which"));
        several.members[1].predicted_for = "typical hard disk".into();
        let hint = disk_hint(&several);
        assert!(
            hint.contains("of s0 a typical SSD, of s1 a typical hard disk."),
            "{hint}"
        );
    }

    #[test]
    fn only_of_shards_something_is_said_of_migrations() {
        let said = |shard| {
            hints(&of_members(shard))
                .join(" ")
                .contains("migrated chunks")
        };
        assert!(said(Some("s0")));
        assert!(!said(None));
    }

    #[test]
    fn the_command_that_is_shown_names_what_the_data_name() {
        let hostile = LayoutMeasurement {
            path: "/data".into(),
            files: vec![LayoutFile {
                namespace: Some("shop.b\u{202e}evil".into()),
                leaf_pages: 1,
                ..file(31.0, 2.0, 0.0)
            }],
            ..LayoutMeasurement::default()
        };
        let hints = hints(&hostile);
        let expected = r"seekscope layout /data $'shop.b\342\200\256evil'";
        assert!(
            hints.iter().any(|hint| hint.ends_with(expected)),
            "{hints:?}"
        );
    }

    #[test]
    fn hostile_names_are_made_visible() {
        let mut bad = file(31.0, 2.0, 0.0);
        bad.namespace = Some("a.\u{1b}[2J\n".into());
        assert!(!headline_of(vec![bad]).contains(['\u{1b}', '\n']));
    }
}
