//! The choice of hooks for kernels with known types.

use super::*;

/// Tracepoints by name: number of arguments and the target of the first.
struct Known(Vec<(&'static str, usize, &'static str)>);

/// The same kernel, but refusing programs at functions.
struct WithoutFunctions(Known);

impl Kernel for WithoutFunctions {
    fn tracepoint(&self, name: &str) -> Option<Prototype> {
        self.0.tracepoint(name)
    }

    fn lets_programs_at(&self, _: &str) -> Result<(), String> {
        Err("refused".into())
    }
}

impl Kernel for Known {
    fn tracepoint(&self, name: &str) -> Option<Prototype> {
        let (_, arguments, first) = self.0.iter().find(|(known, ..)| *known == name)?;
        Some(Prototype {
            arguments: *arguments,
            first: (*first).into(),
        })
    }

    fn lets_programs_at(&self, function: &str) -> Result<(), String> {
        assert_eq!(function, "filemap_fault");
        Ok(())
    }
}

fn linux_5_10() -> Known {
    Known(vec![
        ("block_rq_issue", 2, "request_queue"),
        ("block_bio_queue", 2, "request_queue"),
        ("io_uring_submit_sqe", 5, ""),
        ("io_uring_complete", 3, ""),
    ])
}

fn linux_6_1() -> Known {
    Known(vec![
        ("block_rq_issue", 1, "request"),
        ("block_bio_queue", 1, "bio"),
        ("io_uring_submit_sqe", 2, "io_kiocb"),
        ("io_uring_complete", 7, ""),
    ])
}

fn linux_6_18() -> Known {
    Known(vec![
        ("block_rq_issue", 1, "request"),
        ("block_bio_queue", 1, "bio"),
        ("io_uring_submit_req", 1, "io_kiocb"),
        ("io_uring_complete", 3, "io_ring_ctx"),
        ("mm_filemap_fault", 2, "address_space"),
    ])
}

#[test]
fn the_form_of_the_tracepoints_decides() {
    let chosen = |group, kernel: &Known| choose(group, kernel).unwrap().0;
    assert_eq!(chosen(Group::Block, &linux_5_10()), BLOCK_QUEUE_FIRST);
    assert_eq!(chosen(Group::Block, &linux_6_1()), BLOCK);
    let debian_5_10 = Known(vec![
        ("block_rq_issue", 1, "request"),
        ("block_bio_queue", 2, "request_queue"),
    ]);
    assert_eq!(chosen(Group::Block, &debian_5_10), BLOCK_MIXED);
    assert!(choose(Group::Uring, &linux_5_10()).is_err());
    assert_eq!(chosen(Group::Uring, &linux_6_1()), URING_SQE);
    assert_eq!(chosen(Group::Uring, &linux_6_18()), URING);
    assert_eq!(chosen(Group::Faults, &linux_6_1()), FAULTS);
    assert_eq!(chosen(Group::Faults, &linux_6_18()), FAULTS);
    assert!(choose(Group::Block, &Known(Vec::new())).is_err());
}

#[test]
fn where_programs_at_functions_are_refused_the_tracepoint_is_taken_and_both_are_named() {
    let (hooks, how) = choose(Group::Faults, &WithoutFunctions(linux_6_18())).unwrap();
    assert_eq!(hooks, FAULTS_BY_EVENT);
    assert!(
        how.contains("software event")
            && how.contains("fexit filemap_fault did not load (refused)")
    );
    let why = choose(Group::Faults, &WithoutFunctions(linux_6_1())).unwrap_err();
    assert!(
        why.contains("refused") && why.contains("no tracepoint"),
        "{why}"
    );
}

#[test]
fn a_group_that_fails_leaves_the_others() {
    let refuse_aio = |hooks: &Hooks| match hooks.group {
        Group::Aio => Err("no".to_string()),
        _ => Ok(()),
    };
    let mut plan = Plan::make(&Group::ALL);
    let covered = |plan: &Plan, group: Group| {
        let entry = plan.coverage.iter().find(|c| c.group == group.name());
        entry.unwrap().covered
    };
    assert!(
        covered(&plan, Group::Aio),
        "nothing is tried alone at first"
    );
    assert!(plan.drop_failing(refuse_aio));
    assert!(!plan.drop_failing(refuse_aio), "what is left loads");
    assert!(!covered(&plan, Group::Aio) && covered(&plan, Group::Block));
    assert!(plan.hooks.iter().all(|hooks| hooks.group != Group::Aio));
    plan.drop_group(Group::Block, "taken back".into());
    assert!(!covered(&plan, Group::Block) && covered(&plan, Group::Uring));
    assert!(plan.hooks.iter().all(|hooks| hooks.group != Group::Block));
}

#[test]
fn libaio_adds_no_second_pair_of_programs_to_every_system_call() {
    let mut plan = Plan::make(&[Group::Calls, Group::Aio]);
    assert_eq!(plan.hooks_of_calls(Backend::TpBtf), CALLS_AND_AIO);
    assert!(plan.has(Group::Aio) && plan.hooks[0].programs.is_empty());
    let mut plan = Plan::make(&[Group::Calls]);
    assert_eq!(plan.hooks_of_calls(Backend::TpBtf), CALLS);
    // Programs on classic tracepoints do not have the arguments at the end of a call.
    let mut plan = Plan::make(&[Group::Calls, Group::Aio]);
    let calls = plan.hooks_of_calls(Backend::Tracepoint);
    assert_eq!((calls, plan.hooks[0]), (CALLS_BY_TRACEPOINT, AIO));
}

#[test]
fn nothing_is_tried_that_nobody_asked_for() {
    let plan = Plan::make(&[Group::Calls]);
    assert_eq!((plan.hooks.len(), plan.coverage.len()), (0, 4));
    assert!(
        plan.coverage
            .iter()
            .all(|c| !c.covered && c.how == "not asked for")
    );
}
