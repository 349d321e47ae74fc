//! Says in one sentence what became of a collection.

use seekscope_run::{
    LayoutFile, LayoutMeasurement, Outcome, ReorderMeasurement, ReorderPlan, ReorderTask,
    ReorderVerdict, RunDocument,
};

use super::sentences::{NOTHING_PENDING, SEQUENTIAL_AIM, share_under_writes};
use crate::escape::visible;
use crate::layout::sentences::{file_headline, format_s, on_disk};
use crate::numbers::format_share;

/// Says what became of the collection; of a plan, how the collection is laid out and what that costs.
pub(super) fn headline(document: &RunDocument, record: &ReorderMeasurement) -> Option<String> {
    let name = visible(&record.namespace);
    let is_ok = document.outcome == Outcome::Ok;
    match (&record.done, record.task) {
        (Some(_), _) => Some(result(record)),
        (None, ReorderTask::Plan) => {
            let before = record.before.as_ref()?;
            file_headline(before.files.first()?, before.is_for_typical_disk())
        }
        // Nothing is begun without a plan, nor against its advice.
        (None, ReorderTask::Apply) => Some(match record.plan.as_ref() {
            None => format!("{name} was not reordered."),
            Some(plan) if is_refused(document, plan) => format!("{name} was left as it is."),
            Some(_) => format!("The reordering of {name} did not end as it should."),
        }),
        (None, ReorderTask::Resume | ReorderTask::Rollback) => match record.recovered.last() {
            None => Some(NOTHING_PENDING.into()),
            Some(text) if is_ok => Some(visible(text)),
            Some(_) => Some(format!(
                "The reordering of {name}, which was interrupted, is not recovered."
            )),
        },
    }
}

/// Returns whether the plan was not carried out, although that was asked for, because it gains too little.
fn is_refused(document: &RunDocument, plan: &ReorderPlan) -> bool {
    let is_forced = document.arguments.iter().any(|given| given == "--force");
    plan.verdict != ReorderVerdict::Worthwhile && !is_forced
}

/// Says what a finished reordering gained.
fn result(record: &ReorderMeasurement) -> String {
    let name = visible(&record.namespace);
    let Some((layout, now)) = first_file(record.after.as_ref()) else {
        return format!(
            "{name} was replaced by its reordered copy; how it lies now was not measured."
        );
    };
    let share = now.order.as_ref().map(|order| order.sequential_share);
    let state = match share {
        Some(share) if share >= SEQUENTIAL_AIM => match record.by.as_str() {
            "natural" => format!("{name} is in order now"),
            keys => format!("{name} is in the order of {} now", visible(keys)),
        },
        Some(share) => format!(
            "{name} was reordered, and {} of the steps of a scan are sequential now",
            format_share(share)
        ),
        None => format!("{name} was reordered"),
    };
    let Some(scan) = &now.predicted_scan else {
        return format!("{state}.");
    };
    let before =
        first_file(record.before.as_ref()).and_then(|(_, before)| before.predicted_scan.as_ref());
    // What order along an index gains is not a scan's time.
    let gained_nothing =
        record.by == "natural" && before.is_some_and(|before| scan.now_s >= before.now_s);
    let predicted = match share_under_writes(record) {
        // What a scan takes then is not predicted.
        Some(_) => "in perfect order",
        None => "predicted",
    };
    let instead = before.map(|before| {
        format!(
            " instead of {} ({} {predicted})",
            format_s(before.now_s),
            format_s(before.ordered_s)
        )
    });
    format!(
        "{state}{}: a cold scan takes about {}{}{}.",
        if gained_nothing {
            ", which gained nothing"
        } else {
            ""
        },
        format_s(scan.now_s),
        on_disk(layout.is_for_typical_disk()),
        instead.unwrap_or_default()
    )
}

/// Returns the collection's own file, and the layout that it is of.
fn first_file(layout: Option<&LayoutMeasurement>) -> Option<(&LayoutMeasurement, &LayoutFile)> {
    layout.and_then(|layout| Some((layout, layout.files.first()?)))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{OrderLasts, PredictedScan, Reordered, ScanOrder};

    use super::*;

    fn layout(sequential_share: f64, now_s: f64) -> LayoutMeasurement {
        LayoutMeasurement {
            files: vec![LayoutFile {
                namespace: Some("shop.orders".into()),
                leaf_pages: 800,
                order: Some(ScanOrder {
                    sequential_share,
                    ..ScanOrder::default()
                }),
                predicted_scan: Some(PredictedScan {
                    now_s,
                    ordered_s: 0.201,
                    ..PredictedScan::default()
                }),
                ..LayoutFile::default()
            }],
            ..LayoutMeasurement::default()
        }
    }

    fn applied() -> (RunDocument, ReorderMeasurement) {
        let mut document = RunDocument::begin("reorder", Vec::new());
        document.outcome = Outcome::Ok;
        let record = ReorderMeasurement {
            namespace: "shop.orders".into(),
            by: "natural".into(),
            task: ReorderTask::Apply,
            plan: Some(ReorderPlan {
                verdict: ReorderVerdict::Worthwhile,
                ..ReorderPlan::default()
            }),
            before: Some(layout(0.2, 0.549)),
            after: Some(layout(0.98, 0.221)),
            done: Some(Reordered::default()),
            ..ReorderMeasurement::default()
        };
        (document, record)
    }

    #[test]
    fn what_was_done_begins_with_its_result() {
        let (document, mut record) = applied();
        let said = |record: &ReorderMeasurement| headline(&document, record).unwrap();
        let told = said(&record);
        assert!(
            told.starts_with("shop.orders is in order now: a cold scan takes about 221 ms")
                && told.ends_with(" instead of 549 ms (201 ms predicted)."),
            "{told}"
        );
        record.after = Some(layout(0.98, 0.56));
        assert!(
            said(&record).starts_with(
                "shop.orders is in order now, which gained nothing: a cold scan takes about 560 ms"
            ),
            "{}",
            said(&record)
        );
        record.after = Some(layout(0.98, 0.221));
        record.by = r#"{ "customer": 1 }"#.into();
        let told = said(&record);
        assert!(
            told.starts_with(r#"shop.orders is in the order of { "customer": 1 } now: "#),
            "{told}"
        );
        record.after = Some(layout(0.916, 0.202));
        assert!(said(&record).contains("and 91.6 % of the steps of a scan are sequential now: "));
        // What others would write meanwhile was foreseen.
        record.plan.as_mut().unwrap().lasts = Some(OrderLasts {
            share_at_swap: Some(0.06),
            ..OrderLasts::default()
        });
        let told = said(&record);
        assert!(
            told.ends_with(" instead of 549 ms (201 ms in perfect order)."),
            "{told}"
        );
        record.after = None;
        assert!(said(&record).contains("was not measured"));
    }

    #[test]
    fn what_was_not_done_is_not_told_as_a_plan() {
        let (mut document, mut record) = applied();
        record.done = None;
        document.outcome = Outcome::Failed;
        let said = |document: &RunDocument, record: &ReorderMeasurement| {
            headline(document, record).unwrap()
        };
        assert!(said(&document, &record).contains("did not end as it should"));
        record.plan = Some(ReorderPlan::default());
        assert_eq!(said(&document, &record), "shop.orders was left as it is.");
        record.plan = None;
        assert_eq!(said(&document, &record), "shop.orders was not reordered.");
        record.task = ReorderTask::Rollback;
        record.recovered = vec!["It was left.".into(), "shop.orders is as it was.".into()];
        assert!(said(&document, &record).contains("is not recovered"));
        document.outcome = Outcome::Ok;
        assert_eq!(said(&document, &record), "shop.orders is as it was.");
        record.recovered.clear();
        assert_eq!(said(&document, &record), NOTHING_PENDING);
    }
}
