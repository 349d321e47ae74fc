//! What is advised, in sentences.

use seekscope_run::units::{format_bytes, format_count, whole};
use seekscope_run::{
    AdviceRecord, IndexUseCounted, LeftOutQueries, QueryShape, ShapeSource, StoringWay, WayKind,
};

use crate::layout::sentences::format_s;
use crate::numbers::{format_mean_ns, format_number, format_share};
use crate::wording::COMMANDS_LACK_LOGIN;

/// Share of the pages asked for that were read, below which reading fewer saves little.
const LITTLE: f64 = 0.05;
/// How many times the present time per hour is told to be longer.
const LONGER: f64 = 1.1;
/// Inserts and warm queries that take longer by a smaller share take about as long.
pub(super) const NOTICED: f64 = 0.25;
/// With fewer blocks of the `_id` index per insert than this, they may be those at the ends of many series.
const SCATTERED_MIN: f64 = 0.8;
/// The most kinds of queries that are named where they are left out.
const LEFT_OUT_MAX: usize = 3;
/// How long an index must have gone unused before it is called useless, s: a week, which covers weekly reports.
const LONG_ENOUGH_S: f64 = 7.0 * 86_400.0;

/// Returns the advice in one sentence; `None` if nothing was measured.
pub(super) fn headline(advice: &AdviceRecord) -> Option<String> {
    let (present, others) = advice.ways.split_first()?;
    let cost = |way: &StoringWay| {
        let (blocks, ns) = (way.blocks_per_query?, way.query_ns?);
        Some((format_number(blocks), format_mean_ns(ns)))
    };
    let namespace = &advice.namespace;
    let is_compared = others.iter().any(|way| way.query_ns.is_some());
    if let Some(why) = present.not_measured.as_ref().filter(|_| is_compared) {
        return Some(format!(
            "What {namespace} costs as it is was not measured: {why}"
        ));
    }
    let (now_blocks, now) = cost(present)?;
    let Some(verdict) = &advice.verdict else {
        let left = others.iter().filter(|way| way.not_measured.is_some());
        return Some(format!(
            "Whether {namespace} is best left as it is cannot be said: a query reads {now_blocks} blocks, and ways that \
             may save much of that were not measured ({} of {})",
            left.count(),
            others.len()
        ));
    };
    let way = advice.ways.get(verdict.way)?;
    if let Some(said) = good_enough(advice, present) {
        return Some(said);
    }
    if verdict.way == 0 {
        let rest = match others.is_empty() {
            true => "no other way fits the queries",
            false => "no way that was tried saves much of that",
        };
        return Some(format!(
            "{namespace} is best left as it is: a query reads {now_blocks} blocks, and {rest}"
        ));
    }
    let (blocks, time) = cost(way)?;
    Some(format!(
        "Store {namespace} with {}: a query then reads {blocks} blocks instead of {now_blocks}, in {time} instead of \
         {now} with cold caches{}",
        named(way),
        longer_while_cached(advice, present, way).unwrap_or_default()
    ))
}

/// Says that it makes too little difference to change anything, although there are ways that save much with cold caches, or
/// ways that were not measured.
fn good_enough(advice: &AdviceRecord, present: &StoringWay) -> Option<String> {
    let verdict = advice.verdict.as_ref().filter(|v| v.way == 0)?;
    let now = present.s_per_hour?;
    let others = verdict.also.iter().filter_map(|n| advice.ways.get(*n));
    let hourly = others.filter_map(|way| Some((way, way.s_per_hour?)));
    let is_left = advice.ways.iter().any(|way| way.not_measured.is_some());
    let little = match hourly.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((way, then)) if then < now => saves(way, &format!("{} of that", format_s(now - then))),
        Some((way, _)) => format!("they take no less with {}", named(way)),
        None if is_left => "no way could save more, not even those that were not measured".into(),
        None => return None,
    };
    Some(format!(
        "{} is good enough as it is: with what the server has in memory now, {} take {} per hour, and {little}",
        advice.namespace,
        match advice.left_out.is_empty() {
            true => "its queries",
            false => "those of its queries that could be tried",
        },
        format_s(now)
    ))
}

/// Says that a way that is faster with cold caches is slower with what the server has in memory now.
fn longer_while_cached(
    advice: &AdviceRecord,
    present: &StoringWay,
    way: &StoringWay,
) -> Option<String> {
    let missed = advice.collection.missed_share?;
    let (now, then) = (present.s_per_hour?, way.s_per_hour?);
    (then > now * LONGER).then(|| {
        format!(
            "; but while only {} of the blocks have to be read, queries take longer with it: {} per hour instead of {}",
            format_share(missed),
            format_s(then),
            format_s(now)
        )
    })
}

/// Says how many of the queries all figures leave out, and which.
pub(super) fn left_out(advice: &AdviceRecord) -> Option<String> {
    let left_out = &advice.left_out;
    if left_out.is_empty() {
        return None;
    }
    let is_told = |shape: &QueryShape| shape.source == ShapeSource::Told;
    let known = match advice.shapes.iter().all(is_told) {
        true => "told",
        false => "seen",
    };
    let sum = |share: fn(&LeftOutQueries) -> Option<f64>| left_out.iter().map(share).sum();
    let share: Option<f64> = sum(|one| one.share);
    let examined: Option<f64> = sum(|one| one.examined_share);
    let amount = match share {
        Some(share) => format!("{} of the queries", format_share(share)),
        None => format!(
            "{} of {} kinds of queries",
            left_out.len(),
            left_out.len() + advice.shapes.len()
        ),
    };
    let examined = examined.map(|share| {
        let share = format_share(share);
        format!(", and with them {share} of the documents that were examined")
    });
    let each = left_out.iter().take(LEFT_OUT_MAX).map(left_out_kind);
    let mut each: Vec<String> = each.collect();
    if left_out.len() > LEFT_OUT_MAX {
        each.push(format!("and {} more", left_out.len() - LEFT_OUT_MAX));
    }
    Some(format!(
        "These figures leave out {amount} that were {known}{}: {}.",
        examined.unwrap_or_default(),
        each.join("; ")
    ))
}

fn left_out_kind(one: &LeftOutQueries) -> String {
    let shape = match one.shape.as_str() {
        "" => "of one kind",
        shape => shape,
    };
    let rate = one
        .per_s
        .map(|rate| format!("{} per second", format_number(rate)));
    let share = one.share.map(format_share);
    let known: Vec<String> = rate.into_iter().chain(share).collect();
    let known = match known.is_empty() {
        true => String::new(),
        false => format!("{}; ", known.join(", ")),
    };
    format!("{shape} ({known}{})", one.why)
}

/// Returns the way's name as it stands in a sentence.
pub(super) fn named(way: &StoringWay) -> String {
    match way.kind {
        WayKind::Index | WayKind::Covering => format!("an {}", way.name),
        _ => way.name.clone(),
    }
}

/// Returns what the way does, with the verb that its name takes.
fn saves(way: &StoringWay, what: &str) -> String {
    let verb = match way.kind {
        WayKind::Indexes | WayKind::Order => "save",
        _ => "saves",
    };
    format!("{} {verb} {what}", named(way))
}

/// Returns a shape in words.
pub(super) fn shape(shape: &QueryShape) -> String {
    let mut parts = Vec::new();
    if !shape.equality.is_empty() {
        let compared = shape.equality.iter().map(|field| compared(shape, field));
        let compared: Vec<String> = compared.collect();
        parts.push(format!("{} compared", compared.join(", ")));
    }
    if !shape.range.is_empty() {
        parts.push(format!("a range of {}", shape.range.join(", ")));
    }
    if !shape.sort.is_empty() {
        let sorted = shape.sort.iter().map(|sort| match sort.descending {
            true => format!("{} (descending)", sort.field),
            false => sort.field.clone(),
        });
        parts.push(format!(
            "in the order of {}",
            sorted.collect::<Vec<_>>().join(", ")
        ));
    }
    parts.extend(
        shape
            .projection
            .as_ref()
            .map(|fields| match fields.as_slice() {
                [] => "only counted".into(),
                fields => format!("{} asked for", fields.join(", ")),
            }),
    );
    let mut known = vec![source(shape.source).to_owned()];
    known.extend(
        shape
            .per_s
            .map(|rate| format!("{} per second", format_number(rate))),
    );
    known.extend(answer(shape));
    known.extend(lists(shape));
    format!("{} ({})", parts.join("; "), known.join(", "))
}

/// Returns a field that is compared, with the number of values if it is compared with a list.
fn compared(shape: &QueryShape, field: &str) -> String {
    match shape.one_of_values.get(field) {
        Some(values) if *values > 1.0 => format!("{field} (one of {} values)", amount(*values)),
        _ => field.to_owned(),
    }
}

/// Says how many documents a query returns, and after how many it stops.
fn answer(shape: &QueryShape) -> Vec<String> {
    let returns = |documents| format!("returns {}", amount(documents));
    let mut said: Vec<String> = shape.returned.map(returns).into_iter().collect();
    said.extend(
        shape
            .limit
            .map(|limit| format!("stops after {}", amount(limit))),
    );
    if !shape.range.is_empty() && shape.range_matches().is_none() {
        let taken = amount(shape.range_taken_to_match());
        said.push(match shape.limit {
            Some(_) => format!("{taken} taken to match"),
            None => format!("taken to return {taken}"),
        });
    }
    said
}

/// Says of which lists a trial asks for fewer values than they hold.
fn lists(shape: &QueryShape) -> Option<String> {
    let is_unknown = |field: &&String| !shape.one_of_values.contains_key(*field);
    let unknown: Vec<&str> = shape
        .one_of
        .iter()
        .filter(is_unknown)
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() && shape.returned.is_none() && shape.range.is_empty() {
        return Some(format!(
            "tried with one value of {}, as if each query had no more; a list of as many values in --query, each \"?\", \
             says how many it has",
            unknown.join(", ")
        ));
    }
    let longest = shape.one_of_values.values().copied().reduce(f64::max)?;
    (longest > QueryShape::LISTED_MAX).then(|| {
        format!(
            "tried with at most {} values of a field",
            amount(QueryShape::LISTED_MAX)
        )
    })
}

/// Formats a number of values or documents that is a whole one, unless it is a mean.
fn amount(number: f64) -> String {
    match number.fract() == 0.0 {
        true => format_count(whole(number)),
        false => format_number(number),
    }
}

/// Returns where a shape is known from.
fn source(source: ShapeSource) -> &'static str {
    match source {
        ShapeSource::Told => "told",
        ShapeSource::Profile => "profiler",
        ShapeSource::Running => "seen running",
        ShapeSource::Log => "slow, from the log",
    }
}

/// Returns whether no way was tried to its end.
pub(super) fn is_nothing_tried(advice: &AdviceRecord) -> bool {
    let is_left = |way: &StoringWay| way.not_measured.is_some();
    !advice.ways.is_empty() && advice.ways.iter().all(is_left)
}

/// Names the ways that were to be tried, where nothing came of any.
pub(super) fn left_ways(advice: &AdviceRecord) -> Option<String> {
    let names: Vec<&str> = advice.ways.iter().map(|way| way.name.as_str()).collect();
    is_nothing_tried(advice).then(|| format!("Planned, but not completed: {}.", names.join("; ")))
}

/// Says what the trial was made with.
pub(super) fn trial(advice: &AdviceRecord) -> Option<String> {
    let (sample, trial) = (advice.sample.as_ref()?, advice.trial.as_ref()?);
    if is_nothing_tried(advice) {
        return Some(format!(
            "No trial was completed: the newest {} of {} documents were copied to a private {} {}, and the steps after that did not finish.",
            format_count(sample.documents),
            format_count(advice.collection.documents),
            trial.product,
            trial.version
        ));
    }
    let pages = match advice.collection.page_bytes {
        Some(bytes) => format!(
            ", and from the mean size of the collection's pages, {} without compression",
            format_bytes(whole(bytes))
        ),
        None => String::new(),
    };
    Some(format!(
        "Tried with the newest {} of {} documents on a private {} {} in {}; the blocks of the whole collection are \
         predicted from what queries read of the sample with cold caches{pages}.",
        format_count(sample.documents),
        format_count(advice.collection.documents),
        trial.product,
        trial.version,
        format_s(trial.elapsed_s)
    ))
}

/// Says what the seconds are based on.
pub(super) fn seconds(advice: &AdviceRecord) -> Option<String> {
    advice.ways.iter().find(|way| way.query_ns.is_some())?;
    let disk = advice.disk.as_deref()?;
    let a = if disk.starts_with("typical ") {
        "a "
    } else {
        ""
    };
    let unpacked = match advice.ways.iter().any(|way| way.unpack_ns.is_some()) {
        true => ", of unpacking them,",
        false => ",",
    };
    let mut said = format!(
        "Times are those of reading the blocks one by one from {a}{disk}{unpacked} and of the work with everything cached as \
         in the trial."
    );
    let when = match advice.collection.watched_s > 0.0 {
        true => "while they were watched",
        false => "since it started",
    };
    let is_hourly =
        advice.traced.is_none() && advice.ways.iter().any(|way| way.s_per_hour.is_some());
    let missed = advice.collection.missed_share.filter(|_| is_hourly);
    if let Some(missed) = missed {
        said.push_str(&format!(
            " Per hour, {} of the blocks have to be read: that share of the pages that were asked for the server had to \
             read {when}.",
            format_share(missed)
        ));
    }
    let little = advice
        .collection
        .missed_share
        .filter(|missed| *missed < LITTLE);
    if let Some(missed) = little {
        let read = match is_hourly {
            true => String::new(),
            false => format!(
                " The server had to read {} of the pages that it was asked for {when}.",
                format_share(missed)
            ),
        };
        said.push_str(&format!(
            "{read} While the collection is in memory, fewer blocks save little, and reorder leaves it as it is."
        ));
    }
    Some(said)
}

/// Says what a trace saw of the collection.
pub(super) fn traced(advice: &AdviceRecord) -> Option<String> {
    let traced = advice.traced.as_ref()?;
    let per_s = |blocks: u64| format_number(blocks as f64 / traced.elapsed_s.max(1e-3));
    let from_disk = match traced.disk_blocks {
        Some(blocks) => format!(", {} of them from the disk", per_s(blocks)),
        None => String::new(),
    };
    let use_ = match advice.ways.iter().any(|way| way.s_per_hour.is_some()) {
        true => " The time per hour is taken from it, and falls with the blocks of a query.",
        false => "",
    };
    Some(format!(
        "In the {} of the trace {} the server read {} blocks per second from the files of the collection and its \
         indexes{from_disk}, and waited {} for them.{use_}",
        format_s(traced.elapsed_s),
        traced.run,
        per_s(traced.blocks),
        format_s(traced.reads_s)
    ))
}

/// Returns what the advised way asks for, and what gets worse with it.
pub(super) fn consequences(advice: &AdviceRecord) -> Vec<String> {
    let Some(verdict) = &advice.verdict else {
        return Vec::new();
    };
    let (Some(way), Some(present)) = (advice.ways.get(verdict.way), advice.ways.first()) else {
        return Vec::new();
    };
    if verdict.way == 0 {
        return Vec::new();
    }
    let mut said = vec![way.reason.clone()];
    said.push(
        match way.kind {
            WayKind::Buckets => {
                "The application must write and read other documents: a sample is added to its bucket by an update \
                 with upsert and $push, and a range of time is asked from the beginning of its first bucket on. \
                 Documents then lose their own _id."
            }
            WayKind::Compressor => {
                "The application need not change. The command makes a compressed copy beside the collection, without \
                 what is written meanwhile: keep writers out, compare the two, and then rename both \
                 (renameCollection), so that the copy takes the collection's place. The server needs more CPU time to \
                 compress the blocks that it writes, which was not measured, and to unpack those that it reads, which \
                 the times have in them."
            }
            WayKind::Order => {
                "The application need not change. Other queries, which follow the order of insertion, then read more. \
                 Without --apply, reorder shows its plan first; --quiesced says that nobody writes to the collection, \
                 and seekscope reorder --help names other ways to keep writers out."
            }
            WayKind::Indexes => "The application need not change.",
            WayKind::Index => "The application need not change, unless it names the old index in a hint.",
            WayKind::Covering => {
                "The application need not change. Queries that ask for other fields too, or for whole documents, read \
                 as many as before, and each change of a field in the index changes the index. All sampled documents \
                 have the fields that are asked for, and no list in them. Where another lacks one, a query then \
                 returns null for it; where another holds a list in one, all are read as before."
            }
            WayKind::Present | WayKind::GrowingId => "",
        }
        .into(),
    );
    said.push(COMMANDS_LACK_LOGIN.into());
    let larger = way
        .stored_bytes_per_document
        .zip(present.stored_bytes_per_document);
    if let Some((bytes, now)) = larger.filter(|(bytes, now)| *now > 0.0 && *bytes > 0.0) {
        let change = bytes / now;
        let text = match change {
            c if c > 1.05 => format!("It takes {} more space", format_share(c - 1.0)),
            c if c < 0.95 => format!("It takes {} less space", format_share(1.0 - c)),
            _ => "It takes about as much space".into(),
        };
        said.push(format!(
            "{text}: {} instead of {} bytes per document.",
            whole(bytes),
            whole(now)
        ));
    }
    said.extend(insertion(way, present));
    said
}

/// Says that `--since` will not be able to tell whether the advice has come true.
pub(super) fn never_compared(advice: &AdviceRecord) -> Option<String> {
    advice.verdict.as_ref().filter(|verdict| verdict.way > 0)?;
    let why = advice.collection.used.as_ref()?.too_few_reads("so far")?;
    Some(format!(
        "Whether this comes true --since cannot tell later: {why}. Before the change, run advise once more without --query \
         and for longer (--for), while the collection is read."
    ))
}

/// Says how much longer it takes to add a document, or how much shorter, where that is noticed.
fn insertion(way: &StoringWay, present: &StoringWay) -> Option<String> {
    let (ns, now_ns) = way.insert_ns.zip(present.insert_ns)?;
    // One more index makes no insert quicker, whatever the host did meanwhile.
    let adds_index = matches!(
        way.kind,
        WayKind::Index | WayKind::Indexes | WayKind::Covering
    ) && way.replaces.is_none();
    let is_possible = !adds_index || ns > now_ns;
    let is_noticed = is_possible && (ns / now_ns.max(1.0) - 1.0).abs() > NOTICED;
    let added = match way.kind {
        WayKind::Buckets => "Adding a document to its bucket takes",
        _ => "An insert takes",
    };
    is_noticed.then(|| {
        format!(
            "{added} {} in the trial with everything cached; an insert takes {} as it is.",
            format_mean_ns(ns),
            format_mean_ns(now_ns)
        )
    })
}

/// Says what inserts read for an `_id` that does not follow age, if that is much.
pub(super) fn scattered_ids(advice: &AdviceRecord) -> Option<String> {
    let of = |kind| {
        advice
            .ways
            .iter()
            .find(|way| way.kind == kind)?
            .id_blocks_per_insert
    };
    let (now, growing) = (of(WayKind::Present)?, of(WayKind::GrowingId)?);
    (now >= SCATTERED_MIN && growing < now / 2.0).then(|| {
        format!(
            "Its _id does not grow with the age of documents: while the index on it does not fit into the cache, an \
             insert reads {} of its blocks, and {} with an _id that grows, such as the one that drivers make.",
            format_number(now),
            format_number(growing)
        )
    })
}

/// Names the indexes that nobody uses, and says since when nobody has.
pub(super) fn unused_indexes(advice: &AdviceRecord) -> Option<String> {
    if advice.unused_indexes.is_empty() {
        return None;
    }
    let named = advice.unused_indexes.join(" or the index ");
    let (by, who) = match advice.unused_counted_by {
        IndexUseCounted::Server => ("", "the server"),
        IndexUseCounted::AllMembers => (" on any member of the set", "all of them"),
        IndexUseCounted::PrimariesOfShards => (" on the primaries of the shards", "all of them"),
    };
    let since = match advice.unused_for_s {
        Some(seconds) => format!("in the {} since {who} began to count", roughly(seconds)),
        None => format!("since {who} began to count"),
    };
    let counted = advice.unused_for_s.is_some_and(|s| s >= LONG_ENOUGH_S);
    let cost = match counted {
        true => "Each insert pays for it.",
        false => {
            "Each insert pays for it; whether something that runs seldom needs it takes longer to tell."
        }
    };
    let unasked = match advice.unused_counted_by {
        IndexUseCounted::PrimariesOfShards => {
            " Their secondaries count by themselves and were not asked."
        }
        _ => "",
    };
    Some(format!(
        "No operation{by} has used the index {named} {since}. {cost}{unasked}"
    ))
}

/// Returns a long time in its largest unit of which there are several.
fn roughly(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    let unit = units
        .into_iter()
        .find(|(unit_s, _)| seconds >= 2.0 * unit_s);
    let (unit_s, name) = unit.unwrap_or((1.0, "seconds"));
    format!("{} {name}", format_count(whole(seconds / unit_s)))
}

/// Names the other ways that save much, if with cold caches alone where none is advised.
pub(super) fn others(advice: &AdviceRecord) -> Option<String> {
    let verdict = advice.verdict.as_ref()?;
    let also = &verdict.also;
    let named = also.iter().filter_map(|number| {
        let way = advice.ways.get(*number)?;
        Some(saves(way, &format_share(way.saved_share?)))
    });
    let named: Vec<String> = named.collect();
    let of_what = match verdict.way {
        0 => "Of a query with cold caches",
        _ => "Of the other ways",
    };
    (!named.is_empty()).then(|| format!("{of_what}, {}.", named.join(", and ")))
}

#[cfg(test)]
mod tests;
