use seekscope_run::{AdviceSample, AdviceTrial, AdviceVerdict, SortField, TracedReads};

use super::*;

fn advice(way: usize) -> AdviceRecord {
    let stored = |name: &str, kind, blocks| StoringWay {
        name: name.into(),
        kind,
        blocks_per_query: Some(blocks),
        query_ns: Some(blocks * 1e6),
        saved_share: Some(1.0 - blocks / 100.0),
        stored_bytes_per_document: Some(blocks),
        ..StoringWay::default()
    };
    AdviceRecord {
        namespace: "iot.samples".into(),
        ways: vec![
            stored("as it is", WayKind::Present, 100.0),
            stored("index { \"a\": 1 }", WayKind::Index, 5.0),
        ],
        verdict: Some(AdviceVerdict {
            way,
            also: Vec::new(),
        }),
        ..AdviceRecord::default()
    }
}

#[test]
fn the_advice_is_one_sentence() {
    let told = headline(&advice(1)).unwrap();
    let expected = "Store iot.samples with an index { \"a\": 1 }: a query then reads 5.00 blocks instead of 100, \
                    in 5.00 ms instead of 100 ms with cold caches";
    assert_eq!(told, expected);
    assert!(headline(&advice(0)).unwrap().contains("best left as it is"));
    let mut cached = advice(1);
    cached.collection.missed_share = Some(0.0);
    cached.ways[0].s_per_hour = Some(184.0);
    cached.ways[1].s_per_hour = Some(190.0);
    assert!(!headline(&cached).unwrap().contains("longer"));
    cached.ways[1].s_per_hour = Some(918.0);
    let told = headline(&cached).unwrap();
    assert!(
        told.ends_with("queries take longer with it: 918 s per hour instead of 184 s"),
        "{told}"
    );
    assert_eq!(headline(&AdviceRecord::default()), None);
}

#[test]
fn what_makes_no_difference_is_not_the_advice() {
    let mut cached = advice(0);
    cached.verdict = Some(AdviceVerdict {
        way: 0,
        also: vec![1],
    });
    cached.ways[0].s_per_hour = Some(12.0);
    cached.ways[1].s_per_hour = Some(10.9);
    let said = headline(&cached).unwrap();
    let expected = "iot.samples is good enough as it is: with what the server has in memory now, its queries take 12.0 s \
                    per hour, and an index { \"a\": 1 } saves 1.10 s of that";
    assert_eq!(said, expected);
    assert_eq!(
        others(&cached).unwrap(),
        "Of a query with cold caches, an index { \"a\": 1 } saves 95.0 %."
    );
    assert_eq!(consequences(&cached), Vec::<String>::new());
    cached.ways[1].s_per_hour = Some(30.0);
    let said = headline(&cached).unwrap();
    assert!(
        said.ends_with("and they take no less with an index { \"a\": 1 }"),
        "{said}"
    );
    assert_eq!(others(&advice(0)), None);
    cached.verdict = Some(AdviceVerdict::default());
    assert!(headline(&cached).unwrap().contains("best left as it is"));
    cached.ways[1].not_measured = Some("no time".into());
    let said = headline(&cached).unwrap();
    assert!(
        said.contains("is good enough as it is")
            && said.ends_with("not even those that were not measured"),
        "{said}"
    );
}

#[test]
fn what_lost_documents_as_it_is_is_said() {
    let mut lost = advice(0);
    lost.verdict = None;
    lost.ways[0].not_measured = Some("its queries returned 2 documents".into());
    let said = headline(&lost).unwrap();
    assert_eq!(
        said,
        "What iot.samples costs as it is was not measured: its queries returned 2 documents"
    );
    lost.ways[1].query_ns = None;
    lost.ways[0].query_ns = None;
    assert_eq!(headline(&lost), None);
}

#[test]
fn what_was_not_measured_is_no_reason_to_leave_it() {
    let mut alone = advice(0);
    alone.ways.truncate(1);
    let said = headline(&alone).unwrap();
    assert!(said.ends_with("no other way fits the queries"), "{said}");
    let mut unmeasured = advice(0);
    unmeasured.verdict = None;
    unmeasured.ways[1].not_measured = Some("no time".into());
    let said = headline(&unmeasured).unwrap();
    assert!(said.ends_with("were not measured (1 of 1)"), "{said}");
}

#[test]
fn what_changes_is_said_of_a_change_only() {
    assert_eq!(consequences(&advice(0)), Vec::<String>::new());
    let said = consequences(&advice(1)).join(" ");
    assert!(
        said.contains("95.0 % less space: 5 instead of 100 bytes"),
        "{said}"
    );
    let mut slower = advice(1);
    slower.ways[0].insert_ns = Some(1e5);
    slower.ways[1].insert_ns = Some(1.2e5);
    assert!(!consequences(&slower).join(" ").contains("An insert takes"));
    slower.ways[1].insert_ns = Some(2e5);
    let said = consequences(&slower).join(" ");
    assert!(
        said.contains("An insert takes 200 µs in the trial"),
        "{said}"
    );
}

#[test]
fn what_the_prediction_is_made_of() {
    let mut advice = AdviceRecord {
        sample: Some(AdviceSample::default()),
        trial: Some(AdviceTrial::default()),
        ..AdviceRecord::default()
    };
    assert!(trial(&advice).unwrap().ends_with("with cold caches."));
    advice.collection.page_bytes = Some(65_536.0);
    let of_pages =
        ", and from the mean size of the collection's pages, 64.0 KiB without compression.";
    let said = trial(&advice).unwrap();
    assert!(said.ends_with(of_pages), "{said}");
}

#[test]
fn a_trace_tells_what_is_waited_for() {
    let mut traced = advice(1);
    assert_eq!(super::traced(&traced), None);
    traced.traced = Some(TracedReads {
        run: "trace-1".into(),
        elapsed_s: 10.0,
        blocks: 500,
        disk_blocks: Some(100),
        reads_s: 2.0,
    });
    traced.ways[0].s_per_hour = Some(720.0);
    let said = super::traced(&traced).unwrap();
    assert!(
        said.contains("read 50.0 blocks per second")
            && said.contains(", 10.0 of them from the disk"),
        "{said}"
    );
    assert!(
        said.contains("waited 2.00 s for them. The time per hour"),
        "{said}"
    );
}

#[test]
fn scattered_ids_are_said() {
    let with = |now, growing| {
        let mut advice = advice(0);
        advice.ways[0].id_blocks_per_insert = Some(now);
        advice.ways[1].kind = WayKind::GrowingId;
        advice.ways[1].id_blocks_per_insert = Some(growing);
        scattered_ids(&advice)
    };
    let said = with(0.98, 0.01).unwrap();
    assert!(
        said.contains("an insert reads 0.98 of its blocks, and 0.0100 with"),
        "{said}"
    );
    assert_eq!(with(0.6, 0.01), None);
    assert_eq!(with(0.9, 0.8), None);
    assert_eq!(scattered_ids(&advice(0)), None);
}

#[test]
fn an_index_is_not_called_useless_after_minutes() {
    let mut advice = AdviceRecord {
        unused_indexes: vec!["{ \"a\": 1 }".into()],
        unused_for_s: Some(120.0),
        ..AdviceRecord::default()
    };
    let said = unused_indexes(&advice).unwrap();
    assert!(
        said.contains("in the 2 minutes since") && said.ends_with("longer to tell."),
        "{said}"
    );
    advice.unused_for_s = Some(30.0 * 86_400.0);
    let said = unused_indexes(&advice).unwrap();
    assert!(said.contains("in the 30 days since"), "{said}");
    assert!(said.ends_with("Each insert pays for it."), "{said}");
    advice.unused_counted_by = IndexUseCounted::AllMembers;
    let said = unused_indexes(&advice).unwrap();
    assert!(
        said.starts_with("No operation on any member of the set has used"),
        "{said}"
    );
    assert_eq!(unused_indexes(&AdviceRecord::default()), None);
}

#[test]
fn shapes_in_words() {
    let asked = QueryShape {
        equality: vec!["a".into(), "b".into()],
        range: vec!["c".into()],
        sort: vec![SortField {
            field: "d".into(),
            descending: true,
        }],
        per_s: Some(2.0),
        ..QueryShape::default()
    };
    assert_eq!(
        shape(&asked),
        "a, b compared; a range of c; in the order of d (descending) (told, 2.00 per second, taken to return 100)"
    );
    let listed = QueryShape {
        equality: vec!["a".into()],
        one_of: vec!["a".into()],
        ..QueryShape::default()
    };
    let words = shape(&listed);
    assert!(
        words.starts_with("a compared (told, tried with one value of a, as if"),
        "{words}"
    );
    let known = QueryShape {
        returned: Some(900.0),
        ..listed.clone()
    };
    assert_eq!(shape(&known), "a compared (told, returns 900)");
    let of_many = |values| QueryShape {
        one_of_values: [("a".into(), values)].into(),
        ..listed.clone()
    };
    assert_eq!(
        shape(&of_many(20.0)),
        "a (one of 20 values) compared (told)"
    );
    assert_eq!(shape(&of_many(1.0)), "a compared (told)");
    assert_eq!(
        shape(&of_many(1_500.0)),
        "a (one of 1,500 values) compared (told, tried with at most 100 values of a field)"
    );
    let of = |fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned());
        shape(&QueryShape {
            equality: vec!["a".into()],
            projection: Some(fields.collect()),
            ..QueryShape::default()
        })
    };
    assert_eq!(of(&["b"]), "a compared; b asked for (told)");
    assert_eq!(of(&[]), "a compared; only counted (told)");
}

#[test]
fn limits_in_words() {
    let of = |range: &[&str], returned, limit| {
        shape(&QueryShape {
            equality: vec!["a".into()],
            range: range.iter().map(|field| (*field).to_owned()).collect(),
            returned,
            limit: Some(limit),
            ..QueryShape::default()
        })
    };
    assert_eq!(of(&[], None, 10.0), "a compared (told, stops after 10)");
    assert_eq!(
        of(&["b"], Some(4.0), 10.0),
        "a compared; a range of b (told, returns 4, stops after 10)"
    );
    assert_eq!(
        of(&["b"], Some(10.0), 10.0),
        "a compared; a range of b (told, returns 10, stops after 10, 100 taken to match)"
    );
    assert_eq!(
        of(&["b"], None, 500.0),
        "a compared; a range of b (told, stops after 500, 500 taken to match)"
    );
}

#[test]
fn what_was_not_tried_is_not_told_as_tried() {
    let mut nothing = advice(1);
    for way in &mut nothing.ways {
        way.not_measured = Some("the trial ended before".into());
        way.costs.clear();
    }
    nothing.sample = Some(AdviceSample {
        documents: 10_000,
        bytes: 4_000_000,
    });
    nothing.trial = Some(AdviceTrial::default());
    let told = trial(&nothing).unwrap();
    assert!(told.starts_with("No trial was completed"), "{told}");
    assert!(
        left_ways(&nothing)
            .unwrap()
            .starts_with("Planned, but not completed: ")
    );
    assert_eq!(super::super::tables::ways(&nothing), None);
    assert_eq!(super::super::tables::queries(&nothing), None);
    assert_eq!(left_ways(&advice(1)), None);
}

#[test]
fn what_the_figures_leave_out_is_said_with_its_share() {
    let mut record = advice(0);
    assert_eq!(left_out(&record), None);
    record.shapes = vec![QueryShape {
        equality: vec!["a".into()],
        source: ShapeSource::Profile,
        ..QueryShape::default()
    }];
    let one = |shape: &str, share, examined_share| LeftOutQueries {
        shape: shape.into(),
        why: "$regex cannot be made up for a trial".into(),
        per_s: share,
        share,
        examined_share,
    };
    let regex = r#"{"name":{"$regex":"?"}}"#;
    record.left_out = vec![one(regex, Some(0.5), Some(0.97))];
    assert_eq!(
        left_out(&record).unwrap(),
        format!(
            "These figures leave out 50.0 % of the queries that were seen, and with them 97.0 % of the documents that were \
             examined: {regex} (0.50 per second, 50.0 %; $regex cannot be made up for a trial)."
        )
    );
    record.left_out = vec![one(regex, None, None); 5];
    record.shapes[0].source = ShapeSource::Told;
    let said = left_out(&record).unwrap();
    assert!(
        said.starts_with("These figures leave out 5 of 6 kinds of queries that were told: "),
        "{said}"
    );
    assert!(said.ends_with("; and 2 more."), "{said}");
    record.ways[0].s_per_hour = Some(12.0);
    record.ways[1].s_per_hour = Some(10.9);
    record.verdict = Some(AdviceVerdict {
        way: 0,
        also: vec![1],
    });
    let said = headline(&record).unwrap();
    assert!(
        said.contains("those of its queries that could be tried take 12.0 s"),
        "{said}"
    );
}

#[test]
fn advice_that_cannot_be_verified_later_says_so() {
    let with = |way, reads| {
        let mut record = advice(way);
        record.collection.used = Some(seekscope_run::CollectionUse {
            reads,
            elapsed_s: 43.0,
            ..Default::default()
        });
        never_compared(&record)
    };
    let said = with(1, 3).unwrap();
    assert!(
        said.contains("3 reads in 43 s so far are too few to compare: 50 are needed"),
        "{said}"
    );
    assert_eq!((with(1, 50), with(0, 3)), (None, None));
}
