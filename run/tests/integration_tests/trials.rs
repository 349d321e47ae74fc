use std::fs::File;
use std::io::Write;

use seekscope_run::tune::{Expected, TrialPurpose, TrialStatus};
use seekscope_run::{KnobValue, RunDirectory, RunDocument, RunError, TuneTrial};
use strum::VariantArray;

fn trial(n: u64) -> TuneTrial {
    let odd = n % 2 == 1;
    let values = [
        (
            "journal_compressor".to_owned(),
            KnobValue::Text("zstd".into()),
        ),
        ("trigger".to_owned(), KnobValue::Integer(-7)),
        ("share".to_owned(), KnobValue::Float(2.0)),
        ("prefix".to_owned(), KnobValue::Bool(true)),
    ];
    let nth = usize::try_from(n).unwrap();
    TuneTrial {
        number: n + 1,
        purpose: TrialPurpose::VARIANTS[nth % 4],
        arm: "best, \"quoted\"".into(),
        origin: "model".into(),
        block: odd.then_some(u32::MAX),
        seed: u64::MAX - n,
        values: values.into_iter().take(nth % 5).collect(),
        status: TrialStatus::VARIANTS[nth / 4 % 4],
        value: odd.then_some(1.0 / (n + 3) as f64),
        partial: [Some(0.1), odd.then_some(f64::MIN_POSITIVE)],
        noise: 2.0,
        reason: "line\nbreak".into(),
        figures: [("p99_ms".to_owned(), 0.3)].into(),
        started_unix_ms: 1_700_000_000_000 + n,
        prepare_s: 0.7,
        measure_s: 60.0,
        best_so_far: odd.then_some(Expected {
            value: 2.0,
            low: 1.0,
            high: 3.0,
        }),
    }
}

#[test]
fn a_session_goes_on_where_it_ended_or_was_killed() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path();
    let all: Vec<TuneTrial> = (0..30).map(trial).collect();
    let run = RunDirectory::create(path, &RunDocument::begin("tune", vec![])).unwrap();
    assert!(run.read_trials().unwrap().is_empty());
    let mut run = Some(run);
    for (end, torn) in [(10, false), (20, true), (30, false)] {
        let open = run.take().unwrap();
        let mut journal = open.trial_journal().unwrap();
        let known = open.read_trials().unwrap().len();
        all[known..end]
            .iter()
            .for_each(|t| journal.append(t).unwrap());
        assert_eq!(open.read_trials().unwrap(), all[..end]);
        drop(journal);
        if torn {
            let mut file = File::options()
                .append(true)
                .open(path.join("trials.jsonl"))
                .unwrap();
            file.write_all(br#"{"number": 21, "purp"#).unwrap();
            // Killed while the journal was made, too.
            std::fs::write(path.join("trials.jsonl.new"), "{}\n").unwrap();
        } else {
            open.finish_records().unwrap();
            assert!(!path.join("trials.jsonl").exists());
        }
        assert_eq!(open.read_trials().unwrap(), all[..end], "{end}");
        drop(open);
        let (again, _) = RunDirectory::open(path).unwrap();
        assert_eq!(again.read_trials().unwrap(), all[..end], "{end}");
        run = Some(again);
    }
}

#[test]
fn a_damaged_table_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("tune", vec![])).unwrap();
    std::fs::write(parent.path().join("trials.parquet"), b"PAR1 is not all").unwrap();
    assert!(matches!(run.read_trials(), Err(RunError::Damaged { .. })));
    assert!(matches!(run.trial_journal(), Err(RunError::Damaged { .. })));
    assert!(!parent.path().join("trials.jsonl").exists());
}
