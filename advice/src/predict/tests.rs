use super::*;

const PAGE_BYTES: f64 = 64_000.0;

/// A collection whose pages are as full as those of the trial.
const fn whole(documents: f64) -> Whole {
    Whole {
        documents,
        page_bytes: PAGE_BYTES,
        index_page_bytes: None,
    }
}

const PLAIN: Measured = Measured {
    queries: 1.0,
    collection_blocks: 100.0,
    collection_bytes: 100.0 * PAGE_BYTES,
    index_blocks: 2.0,
    index_bytes: 2.0 * 16_000.0,
    leaf_keys: 100.0,
    index_leaves: 1_000_000.0,
    documents: 100.0,
    keys: 100.0,
    leaves: 1_000_000.0,
    page_bytes: PAGE_BYTES,
    whole: whole(1.0),
    more_returned: 1.0,
    local: false,
    collection_scan: false,
    scanned_share: 1.0,
    matching: None,
    found_share: 1.0,
    values: 1.0,
    more_values: 1.0,
    covered: false,
};

impl Measured {
    fn blocks(&self) -> f64 {
        self.collection_blocks_of_whole() + self.index_blocks_of_whole()
    }
}

#[test]
fn draws_and_what_they_hit_invert_each_other() {
    for leaves in [10.0, 1_000.0, 1e6] {
        for drawn in [0.5, 5.0, 20.0] {
            let hit = distinct(drawn, leaves);
            assert!((draws(hit, leaves, f64::INFINITY) - drawn).abs() < 1e-6);
        }
    }
    assert_eq!(draws(10.0, 10.0, 25.0), 25.0, "all leaves were hit");
    assert_eq!(distinct(5.0, 0.0), 0.0);
}

#[test]
fn scattered_documents_share_fewer_leaves_in_the_whole() {
    // 1,000 documents of a sample with 500 leaves: 432 leaves, but 951 of the whole with 10,000.
    let measured = Measured {
        collection_blocks: distinct(1_000.0, 500.0),
        documents: 1_000.0,
        leaves: 500.0,
        whole: whole(20.0),
        ..PLAIN
    };
    let expected = distinct(1_000.0, 10_000.0) + 2.0;
    assert!((measured.blocks() - expected).abs() < 1e-6);
}

#[test]
fn nearly_all_of_few_leaves_do_not_show_how_many_draws_hit_them() {
    let of = |collection_blocks| {
        let measured = Measured {
            collection_blocks,
            documents: 100.0,
            leaves: 50.0,
            whole: whole(20.0),
            ..PLAIN
        };
        measured.collection_blocks_of_whole()
    };
    let scattered = distinct(100.0, 1_000.0);
    // On average they hit 43.
    assert_eq!([of(44.0), of(40.0)], [scattered, scattered]);
    assert!(of(20.0) < 30.0, "they lie together");
}

#[test]
fn keys_beside_the_answer_are_more_in_the_whole() {
    let beside = Measured {
        keys: 200.0,
        whole: whole(20.0),
        ..PLAIN
    };
    // A hundred keys of the answer, and twenty times the hundred beside it.
    assert!((beside.index_blocks_of_whole() - 2.0 * 2_100.0 / 200.0).abs() < 1e-9);
    assert!((beside.more_work() - 10.5).abs() < 1e-9);
    let local = Measured {
        local: true,
        ..beside
    };
    assert_eq!(
        (local.index_blocks_of_whole(), local.more_work()),
        (2.0, 1.0)
    );
}

#[test]
fn leaps_go_to_leaves_further_apart_and_are_not_more() {
    let leaping = Measured {
        index_blocks: 13.0,
        leaf_keys: 800.0,
        documents: 50.0,
        keys: 150.0,
        whole: whole(5.0),
        ..PLAIN
    };
    assert_eq!(leaping.index_blocks_of_whole(), 61.0);
    assert_eq!(leaping.more_work(), 1.0);
    let many = Measured {
        whole: whole(50.0),
        ..leaping
    };
    assert_eq!(
        many.index_blocks_of_whole(),
        150.0,
        "each key is on one leaf"
    );
    let stretch = Measured {
        keys: 10_000.0,
        ..leaping
    };
    assert!(stretch.index_blocks_of_whole() > 60.0);
    assert!(stretch.more_work() > 4.0);
}

#[test]
fn an_index_with_fuller_leaves_has_fewer() {
    let fuller = Measured {
        index_blocks: 11.0,
        index_bytes: 11.0 * 8_000.0,
        whole: Whole {
            index_page_bytes: Some(16_000.0),
            ..whole(1.0)
        },
        ..PLAIN
    };
    assert_eq!(fuller.index_blocks_of_whole(), 6.0);
    let one = Measured {
        index_blocks: 1.0,
        ..fuller
    };
    assert_eq!(one.index_blocks_of_whole(), 1.0);
}

#[test]
fn where_the_index_has_all_that_is_asked_for_only_its_leaves_are_read() {
    let covered = Measured {
        collection_blocks: 0.0,
        collection_bytes: 0.0,
        documents: 0.0,
        covered: true,
        whole: whole(20.0),
        ..PLAIN
    };
    for local in [true, false] {
        let covered = Measured { local, ..covered };
        assert_eq!((covered.blocks(), covered.more_work()), (2.0, 1.0));
    }
}

#[test]
fn a_longer_answer_of_neighbours_begins_once() {
    // 27 documents in 1.3 blocks: 300 of them lie in 4.5, and the keys of both in one leaf.
    let neighbours = Measured {
        collection_blocks: 1.3,
        documents: 27.0,
        keys: 27.0,
        index_blocks: 1.0,
        more_returned: 300.0 / 27.0,
        whole: whole(12.0),
        ..PLAIN
    };
    let blocks = neighbours.collection_blocks_of_whole();
    assert!((blocks - 4.45).abs() < 0.05, "{blocks}");
    assert_eq!(neighbours.index_blocks_of_whole(), 1.0);
    // A query that finds its only leaf in the cache of the trial reads one of the whole.
    let tiny = Measured {
        collection_blocks: 0.0,
        index_blocks: 0.0,
        ..PLAIN
    };
    assert_eq!(tiny.blocks(), 2.0);
}

#[test]
fn a_stretch_of_time_reads_as_much_of_the_whole() {
    let measured = Measured {
        collection_blocks: 60.0,
        collection_bytes: 60.0 * PAGE_BYTES,
        index_blocks: 0.0,
        leaves: 100.0,
        whole: whole(20.0),
        local: true,
        ..PLAIN
    };
    assert_eq!(measured.blocks(), 61.0, "and a leaf of the index");
    // Where pages are small, more of them hold the same.
    let where_small = Measured {
        collection_blocks: 85.0,
        ..measured
    };
    assert_eq!(where_small.blocks(), 61.0);
}

#[test]
fn emptier_pages_hold_less_of_a_row_of_neighbours_and_as_much_of_what_lies_alone() {
    let emptier = Whole {
        page_bytes: PAGE_BYTES / 4.0,
        ..whole(1.0)
    };
    let blocks = |measured: Measured| measured.collection_blocks_of_whole();
    let row = Measured {
        queries: 2.0,
        collection_blocks: 12.0,
        collection_bytes: 12.0 * PAGE_BYTES,
        index_blocks: 0.0,
        documents: 2_000.0,
        whole: emptier,
        local: true,
        ..PLAIN
    };
    assert_eq!(blocks(row), 21.0);
    let sparse = Measured {
        documents: 30.0,
        ..row
    };
    assert_eq!(blocks(sparse), 15.0, "no document is on two leaves");
    let alone = Measured {
        documents: 12.0,
        ..row
    };
    assert_eq!(blocks(alone), 6.0);
    let neighbours = Measured {
        local: false,
        ..row
    };
    assert!((blocks(neighbours) - 21.0).abs() < 0.1);
    let anywhere = Measured {
        whole: emptier,
        ..PLAIN
    };
    assert!((blocks(anywhere) - 100.0).abs() < 0.1);
    let scan = Measured {
        collection_scan: true,
        leaves: 500.0,
        whole: emptier,
        ..PLAIN
    };
    assert_eq!(scan.blocks(), 2_000.0);
}

#[test]
fn index_blocks_are_those_of_one_query() {
    let row = Measured {
        queries: 20.0,
        ..PLAIN
    };
    assert_eq!(row.index_blocks_of_whole(), PLAIN.index_blocks);
}

#[test]
fn no_query_reads_more_leaves_than_there_are() {
    let measured = Measured {
        leaves: 100.0,
        more_returned: 50.0,
        ..PLAIN
    };
    for local in [true, false] {
        let blocks = Measured { local, ..measured }.blocks();
        assert!(blocks <= 100.0 + 100.0, "{blocks}");
    }
}

#[test]
fn no_query_reads_more_leaves_than_collection_and_index_have() {
    // One document of a sample of 14 leaves: 593 documents of 398 leaves, with an index of 60.
    let one = Measured {
        collection_blocks: 1.0,
        index_blocks: 1.0,
        leaf_keys: 950.0,
        index_leaves: 3.0,
        documents: 1.0,
        keys: 1.0,
        leaves: 19.9,
        more_returned: 593.0,
        more_values: 593.0,
        whole: whole(20.0),
        ..PLAIN
    };
    let collection = one.collection_blocks_of_whole();
    assert!((300.0..320.0).contains(&collection), "{collection}");
    let index = one.index_blocks_of_whole();
    assert!((50.0..=60.0).contains(&index), "{index}");
    // Some rounds hit several leaves by chance, which are no reason to take all for apart.
    let several = Measured {
        collection_blocks: 2.0,
        ..one
    };
    let collection = several.collection_blocks_of_whole();
    assert!(collection < 320.0, "{collection}");
    // The keys of one value follow one another, and are on the leaves of this many.
    let row = Measured {
        more_values: 1.0,
        ..one
    };
    let index = row.index_blocks_of_whole();
    assert!((index - 1.0 - 592.0 / 950.0).abs() < 1e-9, "{index}");
}

#[test]
fn values_of_a_list_lie_on_more_leaves_of_a_larger_index() {
    // 20 values of an index of 3 leaves: of 60 leaves of the whole they hit 17.
    let listed = Measured {
        index_blocks: 3.0,
        leaf_keys: 1_000.0,
        index_leaves: 3.0,
        documents: 20.0,
        keys: 40.0,
        values: 20.0,
        whole: whole(20.0),
        ..PLAIN
    };
    let index = |measured: Measured| measured.index_blocks_of_whole();
    assert!((16.5..17.5).contains(&index(listed)), "{}", index(listed));
    // The keys behind those of each value are not more in the whole.
    assert_eq!(listed.more_work(), 1.0);
    // 20 times the documents of each value follow one another.
    let longer = Measured {
        more_returned: 20.0,
        ..listed
    };
    let following = index(longer) - index(listed);
    assert!((following - 20.0 * 19.0 / 1_000.0).abs() < 1e-9);
    // Five times the values lie on nearly all leaves.
    let more = Measured {
        more_returned: 5.0,
        more_values: 5.0,
        ..listed
    };
    assert!((45.0..60.0).contains(&index(more)), "{}", index(more));
    // A list whose values lie side by side is read as one stretch.
    let aside = Measured {
        index_blocks: 1.0,
        index_leaves: 200.0,
        ..listed
    };
    assert!(index(aside) < 1.1, "{}", index(aside));
}

#[test]
fn a_scan_that_meets_all_matches_of_the_sample_may_end_early_in_the_whole() {
    // It stops after 10: the sample has 5, and the whole 1 + 4 * 20 = 81.
    let scan = Measured {
        collection_scan: true,
        matching: Some(5.0),
        more_returned: 2.0,
        leaves: 500.0,
        whole: whole(20.0),
        ..PLAIN
    };
    let expected = 10_000.0 * 2.0 * 6.0 / 82.0;
    assert!((scan.blocks() - expected).abs() < 1e-6, "{}", scan.blocks());
    let all = Measured {
        matching: None,
        ..scan
    };
    assert_eq!(all.blocks(), 10_000.0);
    assert_eq!(matching_of_whole(5.0, 2.0, 20.0), 62.0);
    assert_eq!(matching_of_whole(1.0, 2.0, 20.0), 1.0);
}

#[test]
fn what_finds_nothing_reads_all_and_a_single_match_is_met_in_the_middle() {
    let one_match = Measured {
        collection_scan: true,
        scanned_share: 0.5,
        matching: Some(1.0),
        leaves: 20.0,
        whole: whole(20.0),
        ..PLAIN
    };
    assert_eq!(one_match.blocks(), 200.0);
    assert_eq!(one_match.more_work(), 20.0);
    let half_finds_nothing = Measured {
        found_share: 0.5,
        ..one_match
    };
    assert_eq!(half_finds_nothing.blocks(), 300.0);
    assert_eq!(half_finds_nothing.more_work(), 30.0);
    // Of three matches the trial has two beside its own share, and the whole twenty times as many of them.
    let three = Measured {
        scanned_share: 0.25,
        matching: Some(3.0),
        ..one_match
    };
    assert!((three.blocks() - 400.0 / 42.0).abs() < 1e-9);
}

#[test]
fn what_a_query_takes_once_does_not_grow_with_its_answer() {
    let long = Measured {
        documents: 1.0,
        keys: 1.0,
        more_returned: 593.0,
        ..PLAIN
    };
    let work_ns = long.work_ns(386_000.0, 200_000.0, Some(1_500.0));
    assert_eq!(work_ns, 386_000.0 + 592.0 * 1_500.0);
    assert_eq!(
        long.work_ns(386_000.0, 200_000.0, None),
        200_000.0 + 186_000.0 * 593.0
    );
    assert_eq!(
        PLAIN.work_ns(386_000.0, 200_000.0, Some(1_500.0)),
        386_000.0
    );
    let scan = Measured {
        collection_scan: true,
        whole: whole(20.0),
        ..PLAIN
    };
    assert_eq!(scan.work_ns(3e5, 1e5, Some(1_500.0)), 1e5 + 2e5 * 20.0);
}

#[test]
fn neighbours_stay_neighbours_and_scans_grow() {
    let clustered = Measured {
        collection_blocks: 4.0,
        leaves: 500.0,
        whole: whole(20.0),
        ..PLAIN
    };
    assert!(
        (clustered.blocks() - 6.0).abs() < 0.1,
        "{}",
        clustered.blocks()
    );
    let scan = Measured {
        collection_scan: true,
        leaves: 500.0,
        whole: whole(20.0),
        ..PLAIN
    };
    assert_eq!((scan.blocks(), scan.more_work()), (10_000.0, 20.0));
    // Whoever stops at the tenth match reads as far in the whole as in the sample, and for twice as many twice as far.
    let ended = Measured {
        scanned_share: 0.04,
        ..scan
    };
    assert!((ended.blocks() - 20.0).abs() < 1e-9);
    assert!((ended.more_work() - 1.0).abs() < 1e-9);
    let longer = Measured {
        more_returned: 2.0,
        ..ended
    };
    assert!((longer.blocks() - 40.0).abs() < 1e-9);
    assert!((longer.more_work() - 2.0).abs() < 1e-9);
    let to_the_end = Measured {
        more_returned: 1e6,
        ..ended
    };
    assert_eq!(to_the_end.blocks(), 10_000.0);
    let more = Measured {
        more_returned: 3.0,
        ..PLAIN
    };
    // Three times the documents, which lie anywhere, and the leaves of three times the keys, which lie in a row.
    assert!((more.blocks() - 304.0).abs() < 0.2, "{}", more.blocks());
}

#[test]
fn inner_pages_of_deeper_trees_are_read_with_the_first_leaf_below_them() {
    // All fit below the root.
    assert_eq!(inner_pages(3.0, 190.0, 190.0, true), 0.0);
    // Of two pages below the root one was read when the file was opened.
    assert_eq!(inner_pages(1.0, 380.0, 190.0, true), 0.5);
    // Ten pages, and a hundred leaves in a row are below one or two of them, and scattered ones below all.
    let row = inner_pages(96.0, 1_900.0, 190.0, true);
    assert!((row - 1.5 * 0.9).abs() < 1e-9, "{row}");
    let scattered = inner_pages(96.0, 1_900.0, 190.0, false);
    assert!((8.9..9.0).contains(&scattered), "{scattered}");
    // A scan reads all, of both levels.
    let all = inner_pages(72_200.0, 72_200.0, 190.0, true);
    assert!((379.0..382.0).contains(&all), "{all}");
    let few = Measured {
        collection_blocks: 3.0,
        collection_bytes: 3.0 * PAGE_BYTES,
        documents: 3.0,
        keys: 3.0,
        leaves: 1_000.0,
        index_leaves: 100.0,
        whole: whole(20.0),
        ..PLAIN
    };
    let inner = few.inner_blocks_of_collection();
    assert!((2.9..3.0).contains(&inner), "{inner}");
    assert_eq!(few.inner_blocks_of_index(), (1.0 + 1.0 / 400.0) * 0.8);
    let covered = Measured {
        covered: true,
        documents: 0.0,
        collection_blocks: 0.0,
        collection_bytes: 0.0,
        ..few
    };
    assert_eq!(covered.inner_blocks_of_collection(), 0.0);
}
