//! Explains the figures of a plan and of a reordering in words.

use seekscope_run::units::{format_bytes, format_count, format_list};
use seekscope_run::{
    LayoutFile, OrderLasts, ReorderBlocking, ReorderMeasurement, ReorderPlan, ReorderScan,
    ReorderTask, ReorderTime, ReorderVerdict, RunDocument, WriteRate, WritersStop,
};

use super::tables;
use crate::escape::visible;
use crate::layout::sentences::{format_s, hours_text};
use crate::numbers::{format_number, format_share};

/// Share of sequential steps that a reordering should reach.
pub(super) const SEQUENTIAL_AIM: f64 = 0.95;
/// An index that lost this share of its sequential steps is named.
const LOST_SHARE_MIN: f64 = 0.2;
/// Indexes in one sentence, so that it stays readable.
const INDEXES_TOLD: usize = 4;

/// Said where there is nothing to recover.
pub(super) const NOTHING_PENDING: &str =
    "No reordering is pending: there is nothing to resume or to roll back.";

/// Returns whether it is worth it.
pub fn verdict(plan: &ReorderPlan) -> String {
    match plan.verdict {
        ReorderVerdict::Worthwhile => match (&plan.clustering, &plan.scan) {
            (Some(clustering), _) => format!(
                "Worth it: a thousand documents in a row of the index lie in {} leaves and would lie in \
                 {}.",
                format_number(clustering.leaves_per_1000_now),
                format_number(clustering.leaves_per_1000_ordered)
            ),
            (None, scan) => {
                let gain_s = scan.as_ref().map_or(0.0, ReorderScan::gain_s);
                format!(
                    "Worth it: each cold scan, and each index build, which reads the same leaves in the \
                     same order, takes {} less.",
                    format_s(gain_s)
                )
            }
        },
        ReorderVerdict::LittleGain => match &plan.clustering {
            Some(clustering) => format!(
                "Not worth it: a thousand documents in a row of the index lie in {} leaves and would lie in {}.",
                format_number(clustering.leaves_per_1000_now),
                format_number(clustering.leaves_per_1000_ordered)
            ),
            None => "Not worth it: less than a tenth of a cold scan's time can be gained.".into(),
        },
        ReorderVerdict::InOrder => format!(
            "Not worth it: the collection is in order, as far as a copy would be: {} of the steps of a scan are \
             sequential.",
            plan.scan
                .as_ref()
                .map_or_else(String::new, |scan| format_share(scan.sequential_share))
        ),
        ReorderVerdict::Cached => format!(
            "Nothing to win as things are: {} of the file is in memory, where order matters little.",
            plan.cached_share.map_or_else(String::new, format_share)
        ),
        ReorderVerdict::Undone => {
            let share =
                |share: Option<f64>| share.map_or_else(|| "an unknown share".into(), format_share);
            format!(
                "Not worth it while others write so much: {} of the steps of a scan are sequential now, and in \
                 the copy it would be {} by the time it takes its place.",
                share(plan.scan.as_ref().map(|scan| scan.sequential_share)),
                share(plan.lasts.as_ref().and_then(|lasts| lasts.share_at_swap))
            )
        }
        ReorderVerdict::NothingToOrder => {
            "There is nothing to order: its documents have at most one leaf page.".into()
        }
        ReorderVerdict::NoRoom => format!(
            "The disk has not the room for a copy: {} are free, and {} are needed.",
            plan.space
                .free_bytes
                .map_or_else(|| "few bytes".into(), format_bytes),
            format_bytes(plan.space.needed_bytes)
        ),
        ReorderVerdict::Unknown => "What it would gain is not known, for the layout is not.".into(),
    }
}

/// Says how long the order lasts.
pub fn lasts(writes: Option<&WriteRate>, lasts: Option<&OrderLasts>) -> Option<String> {
    let (writes, lasts) = (writes?, lasts?);
    let of = match writes.of_collection {
        true => "of the collection",
        false => "of the whole server, which is the most that can be the collection's",
    };
    let seen = format!(
        "In {} the server counted {} updates, {} removes and {} inserts {of}.",
        format_s(writes.watched_s),
        format_count(writes.updates),
        format_count(writes.removes),
        format_count(writes.inserts)
    );
    let (Some(to_0_9), Some(to_0_5)) = (lasts.hours_to_0_9, lasts.hours_to_0_5) else {
        return Some(format!(
            "{seen} Without updates and removes the order lasts; watch a busier time, or longer, with \
             --watch."
        ));
    };
    let at_swap = lasts.share_at_swap.map(|share| {
        format!(
            " By the time the copy takes its place {} of its steps are sequential.",
            format_share(share)
        )
    });
    Some(format!(
        "{seen} If that goes on and is spread at random, the share of sequential steps falls below 0.9 \
         after {} and below 0.5 after {}.{}",
        hours_text(to_0_9),
        hours_text(to_0_5),
        at_swap.unwrap_or_default()
    ))
}

/// Says what `compact` would do instead.
pub fn compact(scan: &ReorderScan) -> String {
    let free = match scan.free_bytes {
        0 => "it frees nothing".into(),
        bytes => format!(
            "it gives back up to {} of {}",
            format_bytes(bytes),
            format_bytes(scan.file_bytes)
        ),
    };
    format!(
        "compact instead: {free}, and it moves leaves without ordering them, so a cold scan would still \
         take {}.",
        format_s(scan.after_compact_s)
    )
}

/// Says where the copy is made, what is blocked, and when; a sentence each.
pub fn blocking(blocking: &ReorderBlocking) -> Vec<String> {
    if blocking.read_only {
        return vec![
            "This server is not a primary and accepts no writes, so it refuses --apply: leave directConnection=true \
             out of the connection string, and the copy is made at the primary."
                .into(),
        ];
    }
    let mut said = Vec::new();
    said.extend(blocking.primary.as_ref().map(|primary| {
        format!(
            "The copy is made at the primary, {}, whichever member is named; the others replicate it.",
            visible(primary)
        )
    }));
    said.push(match blocking.replica_set {
        true => {
            "Reads and writes go on while the copy is made; a change stream tells what was written \
                 meanwhile, and it is brought over."
                .to_string()
        }
        false => "This is no replica set, so writes cannot be followed: nobody may write to the \
                  collection from beginning to end. A write that is seen stops the swap."
            .to_string(),
    });
    let last_moment = match blocking.writers {
        WritersStop::Quiesced => "Nothing is blocked: you said that nobody writes.",
        _ if !blocking.replica_set => {
            "Say that nobody does with --quiesced; nothing else is taken here."
        }
        WritersStop::Server => {
            "For the last moment the server refuses writes to all its databases \
             (setUserWriteBlockMode), usually for a second or less."
        }
        WritersStop::Commands => {
            "For the last moment the writers are stopped by your command and told to go on by the other."
        }
        WritersStop::Unsettled => {
            "Writers must be kept out for the last moment, which this server cannot do by itself: name \
             --quiesced, or --pause-writers and --continue-writers."
        }
    };
    said.push(last_moment.into());
    said.push(
        "The rename takes an exclusive lock for a moment; queries under way on the old collection end \
         with an error and must be sent again."
            .into(),
    );
    said
}

/// Says what changes besides the order of the documents; a sentence each.
pub fn consequences(document: &RunDocument, record: &ReorderMeasurement) -> Vec<String> {
    let mut said = vec![
        "Afterwards the collection has a new UUID: change streams on it end with an invalidate event, and are \
         opened anew with startAfter; those on its database or on all see a rename."
            .to_string(),
    ];
    if record.by != "natural" {
        said.push(
            "The order of _id falls: documents whose _id are neighbours lie apart afterwards, so reading \
             ranges of _id takes more reads. Its index is filled in the new order, and so may itself be less in order."
                .into(),
        );
    }
    let version = document.target.as_ref().map(|t| t.version.as_str());
    if version.is_some_and(|version| version.starts_with("4.4.")) {
        let collection = record.namespace.split_once('.').map_or("", |(_, c)| c);
        said.push(format!(
            "Until it is started again, a server of MongoDB 4.4 names the collection by the copy's name, \
             seekscope_reorder.{}, in errors about duplicate keys.",
            visible(collection)
        ));
    }
    said
}

/// Says how long the steps take.
pub fn time(time: &ReorderTime) -> String {
    let catch_up = match time.catch_up_s {
        _ if time.catch_up_never_ends => {
            ", and bringing over changes never ends while others write as fast".into()
        }
        None | Some(0.0) => String::new(),
        Some(seconds) => format!(", bringing over changes {}", format_s(seconds)),
    };
    format!(
        "roughly {}, by rates measured on other servers: copying {}, checking the copy {}, indexes {}{catch_up}",
        format_s(time.total_s()),
        format_s(time.copy_s),
        format_s(time.check_s),
        format_s(time.indexes_s)
    )
}

/// Says why a copy is abandoned in the end, from the shares of sequential steps before and in the copy, and
/// the number of documents changed by others that were copied again.
pub fn no_better(before: f64, after: f64, changes: u64) -> String {
    let because = match changes {
        0 => "To have it all the same, use --force".into(),
        changes => format!(
            "The {} documents that others changed meanwhile moved the copy's leaves: reorder it at a quieter \
             time, or use --force to have it all the same",
            format_count(changes)
        ),
    };
    format!(
        "its copy is no better: {} of the steps of a scan are sequential in it, and {} in the original, which \
         is left as it was. {because}",
        format_share(after),
        format_share(before)
    )
}

/// Says, before anything is changed, what will be done and blocked.
pub fn contract(record: &ReorderMeasurement) -> Vec<String> {
    let namespace = visible(&record.namespace);
    let mut said = vec![format!(
        "Reordering {namespace} by {}: it is copied into a collection beside it, checked, indexed alike, \
         and renamed into its place. Until then the original is not touched.",
        match record.by.as_str() {
            "natural" => "natural order".into(),
            keys => visible(keys),
        }
    )];
    if let Some(plan) = &record.plan {
        said.extend(blocking(&plan.blocking));
        if let Some(needed) = &plan.time {
            said.push(format!("It takes {}.", time(needed)));
        }
    }
    said.push("Ctrl-C undoes what was begun.".into());
    said
}

/// Returns the share of sequential steps that the plan predicted for the copy, if by what others write it was to be less
/// than a reordering aims at.
pub(super) fn share_under_writes(record: &ReorderMeasurement) -> Option<f64> {
    let lasts = record.plan.as_ref()?.lasts.as_ref()?;
    lasts.share_at_swap.filter(|share| *share < SEQUENTIAL_AIM)
}

/// Says what the result is, or what to type.
pub fn conclusion(record: &ReorderMeasurement) -> Vec<String> {
    let mut said: Vec<String> = record.recovered.iter().map(|text| visible(text)).collect();
    let recovers = matches!(record.task, ReorderTask::Resume | ReorderTask::Rollback);
    if recovers && said.is_empty() {
        said.push(NOTHING_PENDING.into());
    }
    let order = |layout: &Option<seekscope_run::LayoutMeasurement>| {
        layout.as_ref()?.files.first()?.order.clone()
    };
    if let (Some(done), Some(after)) = (&record.done, order(&record.after)) {
        let shared = record
            .after
            .as_ref()
            .and_then(|layout| layout.files.first()?.namespace.clone())
            .filter(|name| *name != record.namespace);
        let files = record.after.iter().flat_map(|layout| &layout.files);
        let has_large_leaves = files.take(1).any(LayoutFile::has_large_leaves);
        let is_ordered = after.sequential_share >= SEQUENTIAL_AIM;
        said.push(match (is_ordered, shared, share_under_writes(record)) {
            // An index order other than that of record ids was requested, but the file is in order anyway.
            (true, ..) => format!(
                "{} documents are in order now: {} of the steps of a scan are sequential.",
                format_count(done.documents),
                format_share(after.sequential_share)
            ),
            (false, Some(shared), _) => format!(
                "{} of the steps of a scan are sequential now. The table also holds other collections or \
                 what the server put there on the way ({}).",
                format_share(after.sequential_share),
                visible(&shared)
            ),
            (false, None, Some(predicted)) => format!(
                "{} of the steps of a scan are sequential now; with what others wrote meanwhile, {} were predicted.",
                format_share(after.sequential_share),
                format_share(predicted)
            ),
            (false, None, None) => format!(
                "{} of the steps of a scan are sequential now, less than the {} aimed at: {}.",
                format_share(after.sequential_share),
                format_share(SEQUENTIAL_AIM),
                match has_large_leaves {
                    true => {
                        "the server places leaves as large as these, each of a large document, where it finds room"
                    }
                    false => {
                        "writes of others, or several eviction threads of the server, came between"
                    }
                }
            ),
        });
        said.extend(indexes_less_in_order(record));
    }
    said
}

/// Names the indexes that lost order on the way, if any did.
fn indexes_less_in_order(record: &ReorderMeasurement) -> Option<String> {
    let (before, after) = (record.before.as_ref()?, record.after.as_ref()?);
    let share = |file: &LayoutFile| Some(file.order.as_ref()?.sequential_share);
    let lost = after
        .files
        .iter()
        .enumerate()
        .skip(1)
        .filter_map(|(number, now)| {
            let was = share(tables::former(before, now, number)?)?;
            let is = share(now)?;
            let name = visible(now.index.as_deref()?);
            (was - is >= LOST_SHARE_MIN).then(|| {
                format!(
                    "{name} ({} of its steps are sequential, before {})",
                    format_share(is),
                    format_share(was)
                )
            })
        });
    let lost: Vec<String> = lost.collect();
    let because = match record.done.as_ref()?.applied_changes {
        0 => "",
        _ => ", to which the changes of others were applied one by one",
    };
    (!lost.is_empty()).then(|| {
        format!(
            "Less in order than before: {}{because}. What scans these indexes reads longer; building them anew \
             puts them in order.",
            format_list(&lost, INDEXES_TOLD, ", ")
        )
    })
}

/// Says what must be known of tables that collections share.
pub fn shared_table(scan: &ReorderScan) -> Option<String> {
    scan.shared_table.then(|| {
        "The table holds other collections too; figures of its layout are of all of them.".into()
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{LayoutMeasurement, Reordered, ScanOrder};

    use super::*;

    #[test]
    fn the_verdict_says_why() {
        let mut plan = ReorderPlan {
            verdict: ReorderVerdict::Worthwhile,
            scan: Some(ReorderScan {
                now_s: 31.0,
                ordered_s: 2.0,
                ..ReorderScan::default()
            }),
            cached_share: Some(0.99),
            ..ReorderPlan::default()
        };
        assert!(verdict(&plan).contains("29.0 s less"), "{}", verdict(&plan));
        plan.verdict = ReorderVerdict::Cached;
        assert!(verdict(&plan).contains("99.0 %"));
    }

    #[test]
    fn what_nobody_writes_lasts() {
        let text =
            |lasting: OrderLasts| lasts(Some(&WriteRate::default()), Some(&lasting)).unwrap();
        assert!(text(OrderLasts::default()).contains("the order lasts"));
        let decaying = text(OrderLasts {
            hours_to_0_9: Some(2.0),
            hours_to_0_5: Some(72.0),
            ..OrderLasts::default()
        });
        assert!(
            decaying.contains("2.00 h") && decaying.contains("3.00 days"),
            "{decaying}"
        );
    }

    #[test]
    fn indexes_that_lost_order_are_named() {
        let file = |index: Option<&str>, sequential_share| LayoutFile {
            index: index.map(String::from),
            order: Some(ScanOrder {
                sequential_share,
                ..ScanOrder::default()
            }),
            ..LayoutFile::default()
        };
        let layout = |files| LayoutMeasurement {
            files,
            ..LayoutMeasurement::default()
        };
        let of = |index, share| {
            layout(vec![
                file(None, 0.99),
                file(Some("a_1"), share),
                file(Some("b_1"), index),
            ])
        };
        let mut record = ReorderMeasurement {
            before: Some(of(1.0, 0.9)),
            after: Some(of(0.14, 0.95)),
            done: Some(Reordered {
                applied_changes: 2_105,
                ..Reordered::default()
            }),
            ..ReorderMeasurement::default()
        };
        let said = conclusion(&record).join(" ");
        let expected = "than before: b_1 (14.0 % of its steps are sequential, before 100.0 %), to which the changes of others";
        assert!(said.contains(expected), "{said}");
        record.after = record.before.clone();
        let said = conclusion(&record).join(" ");
        assert!(!said.contains("Less in order"), "{said}");
    }

    #[test]
    fn a_standalone_server_is_told_apart() {
        let said = blocking(&ReorderBlocking::default()).join(" ");
        assert!(said.contains("no replica set") && said.contains("--quiesced"));
    }

    #[test]
    fn where_the_copy_is_made_is_said() {
        let mut of_set = ReorderBlocking {
            replica_set: true,
            primary: Some("a:1".into()),
            ..ReorderBlocking::default()
        };
        let said = blocking(&of_set).join(" ");
        assert!(said.contains("at the primary, a:1,"), "{said}");
        of_set.read_only = true;
        let said = blocking(&of_set).join(" ");
        assert!(
            said.contains("refuses --apply") && !said.contains("rename"),
            "{said}"
        );
    }

    #[test]
    fn what_changes_beside_the_order_is_said() {
        let mut document = RunDocument::begin("reorder", Vec::new());
        let mut record = ReorderMeasurement {
            namespace: "shop.orders.old".into(),
            by: "natural".into(),
            ..ReorderMeasurement::default()
        };
        let said = consequences(&document, &record).join(" ");
        assert!(
            said.contains("UUID") && said.contains("startAfter"),
            "{said}"
        );
        assert!(
            !said.contains("_id") && !said.contains("duplicate"),
            "{said}"
        );
        record.by = r#"{"customer": 1}"#.into();
        document.target = Some(seekscope_run::TargetFacts {
            version: "4.4.6-8".into(),
            ..seekscope_run::TargetFacts::default()
        });
        let said = consequences(&document, &record).join(" ");
        assert!(said.contains("order of _id falls"), "{said}");
        assert!(said.contains("seekscope_reorder.orders.old"), "{said}");
    }

    #[test]
    fn that_it_never_ends_is_said_only_where_that_is_known() {
        // As in an older run, and in one that saw only the whole server's writes.
        let unknown: ReorderTime = serde_json::from_str(r#"{"copy_s": 10.0}"#).unwrap();
        assert!(!time(&unknown).contains("changes"), "{}", time(&unknown));
        let endless = ReorderTime {
            catch_up_never_ends: true,
            ..unknown.clone()
        };
        assert!(time(&endless).contains("never ends"), "{}", time(&endless));
        let known = ReorderTime {
            catch_up_s: Some(3.0),
            ..unknown
        };
        assert!(time(&known).contains("changes 3.0"), "{}", time(&known));
    }

    #[test]
    fn others_are_blamed_only_for_what_they_changed() {
        let quiet = no_better(0.97, 0.9, 0);
        assert!(
            !quiet.contains("others") && quiet.contains("--force"),
            "{quiet}"
        );
        let busy = no_better(0.5, 0.1, 31_000);
        assert!(busy.contains("31,000 documents that others"), "{busy}");
    }

    #[test]
    fn nothing_pending_is_said() {
        let record = ReorderMeasurement {
            task: ReorderTask::Rollback,
            ..ReorderMeasurement::default()
        };
        assert!(conclusion(&record)[0].contains("No reordering is pending"));
        assert!(conclusion(&ReorderMeasurement::default()).is_empty());
    }
}
