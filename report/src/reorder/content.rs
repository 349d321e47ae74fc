//! Defines the contents of a report of `reorder`, in order; terminal and HTML show the same.

use seekscope_run::{
    Outcome, ReorderMeasurement, ReorderTask, ReorderVerdict, RunDocument, WritersStop,
};

use super::{sentences, tables};
use crate::facts::command_line_with;
use crate::layout::sentences::disk_hint;
use crate::page::Block;
use crate::wording::COMMANDS_LACK_LOGIN;

/// Returns everything after the headline: what was done, then what was planned.
pub(super) fn blocks(
    document: &RunDocument,
    record: &ReorderMeasurement,
    headline: Option<&str>,
) -> Vec<Block> {
    let concluded = sentences::conclusion(record).into_iter();
    let mut blocks = Block::sentences(concluded.filter(|text| Some(text.as_str()) != headline));
    blocks.extend(record.done.as_ref().map(tables::done).map(Block::Table));
    blocks.extend(tables::before_and_after(record).map(Block::Table));
    blocks.extend(tables::not_predicted(record).map(Block::Sentence));
    if let Some(plan) = &record.plan {
        let planned = record.done.is_none();
        if planned {
            blocks.push(Block::Sentence(sentences::verdict(plan)));
        }
        blocks.push(Block::Table(tables::plan(plan)));
        let mut said = Vec::new();
        said.extend(plan.scan.as_ref().and_then(sentences::shared_table));
        said.extend(sentences::lasts(plan.writes.as_ref(), plan.lasts.as_ref()));
        if planned {
            said.extend(plan.scan.as_ref().map(sentences::compact));
            said.extend(sentences::blocking(&plan.blocking));
            said.extend(sentences::consequences(document, record));
        }
        blocks.extend(said.into_iter().map(Block::Sentence));
    }
    let layout = record.before.as_ref().or(record.after.as_ref());
    blocks.extend(layout.map(disk_hint).map(Block::Sentence));
    if let Some((how, command)) = command(document, record) {
        blocks.push(Block::Copy(how, vec![command]));
        blocks.push(Block::Sentence(COMMANDS_LACK_LOGIN.into()));
    }
    blocks
}

/// Returns how to do what was planned: a sentence, and the command that was typed with what `--apply` requires besides.
fn command(document: &RunDocument, record: &ReorderMeasurement) -> Option<(String, String)> {
    let plan = record.plan.as_ref()?;
    let is_vain = matches!(
        plan.verdict,
        ReorderVerdict::NoRoom | ReorderVerdict::NothingToOrder
    );
    let is_refused = plan.blocking.read_only || is_vain;
    if record.task != ReorderTask::Plan || document.outcome != Outcome::Ok || is_refused {
        return None;
    }
    let mut wanted = vec!["--apply"];
    let all_the_same = match plan.verdict {
        ReorderVerdict::Worthwhile => "",
        _ => {
            wanted.push("--force");
            " all the same"
        }
    };
    // The run of the plan keeps its folder.
    let mut left_out = vec!["--out"];
    let condition = match (plan.blocking.replica_set, plan.blocking.writers) {
        (_, WritersStop::Quiesced) | (true, WritersStop::Server | WritersStop::Commands) => "",
        (true, WritersStop::Unsettled) => {
            wanted.push("--quiesced");
            ", if nobody writes to it at the end (else put --pause-writers CMD and --continue-writers CMD \
             in place of --quiesced)"
        }
        (false, _) => {
            wanted.push("--quiesced");
            left_out.extend(["--pause-writers", "--continue-writers"]);
            ", once nobody writes to it"
        }
    };
    let mut arguments = without(&document.arguments, &left_out);
    arguments.extend(wanted.into_iter().map(String::from));
    Some((
        format!("Nothing was changed. To do it{all_the_same}{condition}"),
        command_line_with(document, &arguments),
    ))
}

/// Returns the arguments without these options and their values.
fn without(arguments: &[String], options: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, value) = argument.split_once('=').unzip();
        match options.contains(&name.unwrap_or(argument)) {
            true if value.is_none() => drop(arguments.next()),
            true => {}
            false => kept.push(argument.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use seekscope_run::ReorderPlan;

    use super::*;

    fn told(
        typed: &str,
        replica_set: bool,
        writers: WritersStop,
        verdict: ReorderVerdict,
    ) -> String {
        let arguments = typed.split(' ').map(String::from).collect();
        let mut document = RunDocument::begin("reorder", arguments);
        document.outcome = Outcome::Ok;
        let mut plan = ReorderPlan {
            verdict,
            ..ReorderPlan::default()
        };
        (plan.blocking.replica_set, plan.blocking.writers) = (replica_set, writers);
        let record = ReorderMeasurement {
            plan: Some(plan),
            ..ReorderMeasurement::default()
        };
        let (how, command) = command(&document, &record).unwrap();
        let condition = how.strip_prefix("Nothing was changed. To do it").unwrap();
        format!("{condition}: {command}")
    }

    #[test]
    fn the_command_is_one_that_is_taken() {
        let typed = "reorder mongodb://h/ a.b --out plan --dbpath /data";
        let by_server = told(typed, true, WritersStop::Server, ReorderVerdict::Worthwhile);
        let expected = ": seekscope reorder mongodb://h/ a.b --dbpath /data --apply";
        assert_eq!(by_server, expected);
        let little = told(typed, true, WritersStop::Server, ReorderVerdict::LittleGain);
        assert!(little.starts_with(" all the same: ") && little.ends_with("--apply --force"));
        let open = told(
            typed,
            true,
            WritersStop::Unsettled,
            ReorderVerdict::Worthwhile,
        );
        assert!(
            open.contains("--pause-writers CMD") && open.ends_with("--apply --quiesced"),
            "{open}"
        );
        let said = told(
            "reorder u a.b --quiesced",
            false,
            WritersStop::Quiesced,
            ReorderVerdict::Cached,
        );
        assert!(
            said.ends_with("reorder u a.b --quiesced --apply --force"),
            "{said}"
        );
        let alone = told(
            "reorder u a.b --pause-writers ... --continue-writers=...",
            false,
            WritersStop::Commands,
            ReorderVerdict::Worthwhile,
        );
        assert!(
            alone.ends_with("reorder u a.b --apply --quiesced"),
            "{alone}"
        );
    }
}
