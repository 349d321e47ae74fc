//! The tables behind the findings.

use seekscope_doctor::Answers;
use seekscope_doctor::answers::{
    CheckpointAnswer, DeviceLoad, DeviceUser, DirtyLimit, HostAnswer, JobDuration, MemberAnswer,
    MemberDifference, MemoryAnswer, MemoryPoint, SpaceAnswer, WorkAnswer,
};
use seekscope_pattern::{Checkpoint, PatternKind, ThreadRole};
use seekscope_run::FileRole;
use seekscope_run::examination::MemberState;

use super::{CHECKPOINTS, GIB, MIB, Naming, SECOND_NS};
use crate::trace_sample::START_NS;

pub(super) fn answers(name: &Naming<'_>) -> Answers {
    Answers {
        waited: seekscope_doctor::claims::Waited {
            reads: 3_180.0,
            syncs: 240.0,
            ..Default::default()
        },
        device_users: device_users(name),
        device_load: Some(DeviceLoad {
            reads_per_s: 2096.0,
            writes_per_s: 893.0,
            read_bytes_per_s: 68.7e6,
            write_bytes_per_s: 23.2e6,
            peak_requests_per_s: 4790.0,
            peak_bytes_per_s: 141e6,
            read_ns: Some(1.1e6),
            write_ns: Some(1.4e6),
            queue_depth: 3.6,
            able_requests_per_s: Some(3450.0),
            utilisation: Some(0.87),
            peak_utilisation: Some(1.0),
            ability_measured: true,
            ability_basis: "measured".into(),
            server_share: Some(0.97),
            ceiling: None,
        }),
        work: Some(WorkAnswer {
            operations_per_s: Some(2_310.0),
            writes_per_s: Some(410.0),
            pages_read_per_s: Some(620.0),
            read_calls_per_s: Some(640.0),
            documents_examined_per_s: Some(2_900.0),
            cpu_pressure_share: Some(0.08),
        }),
        checkpoints: Some(checkpoint_answer()),
        index_builds: Vec::new(),
        durations: durations(name),
        space: space(name),
        memory: Some(memory()),
        host: host(name),
        members: members(name),
        role_changes: Vec::new(),
        shards: Vec::new(),
        member_difference: Some(MemberDifference {
            member: name("db2.example:27017", 0),
            factor: "mean time of a disk read, µs".into(),
            value: "610".into(),
            others: "120".into(),
            source: "serverStatus".into(),
        }),
    }
}

fn device_users(name: &Naming<'_>) -> Vec<DeviceUser> {
    let user =
        |nth: usize, namespace: &str, role, thread_role, writes, waiting: f64, kind| DeviceUser {
            path: format!("collection-{nth}--781.wt"),
            role,
            namespace: (!namespace.is_empty()).then(|| name(namespace, nth)),
            thread_role,
            writes,
            calls_per_s: 640.0 * waiting,
            bytes_per_s: 21e6 * waiting,
            device_bytes_per_s: 28e6 * waiting,
            waiting_s_per_s: waiting,
            device_time_share: Some(waiting / 3.6),
            pattern: Some(kind),
            sequential_share: Some(if kind == PatternKind::Sequential {
                0.97
            } else {
                0.02
            }),
            p50_ns: 640_000,
            p99_ns: 9_400_000,
        };
    use FileRole::{Collection, Index, Journal};
    use ThreadRole::{Application, Checkpoint as Checkpoints, Eviction};
    vec![
        user(
            1,
            "shop.orders",
            Collection,
            Application,
            false,
            1.9,
            PatternKind::Random,
        ),
        user(
            2,
            "shop.log",
            Collection,
            Application,
            false,
            0.42,
            PatternKind::Sequential,
        ),
        user(
            3,
            "shop.orders/i_1",
            Index,
            Checkpoints,
            true,
            0.31,
            PatternKind::Mixed,
        ),
        user(
            4,
            "",
            Journal,
            ThreadRole::Journal,
            true,
            0.12,
            PatternKind::Sequential,
        ),
        user(
            5,
            "shop.orders",
            Collection,
            Eviction,
            true,
            0.06,
            PatternKind::Random,
        ),
    ]
}

fn checkpoint_answer() -> CheckpointAnswer {
    let checkpoint = |(at, seconds): (u64, u64)| Checkpoint {
        started_ns: START_NS + at * SECOND_NS,
        ended_ns: START_NS + (at + seconds) * SECOND_NS,
        written_bytes: seconds * 68 * MIB,
        files: 9,
        syncs: 11,
        sync_ns: seconds * 400_000_000,
        longest_sync_ns: seconds * 210_000_000,
        is_cut_off: false,
        longest_journal_sync_ns: 61_000_000,
        longest_read_ns: 94_000_000,
    };
    CheckpointAnswer {
        checkpoints: CHECKPOINTS.map(checkpoint).to_vec(),
        source: "serverStatus".into(),
        median_s: 6.0,
        longest_s: 7.0,
        journal_during_p99_ns: Some(41_000_000),
        journal_otherwise_p99_ns: Some(3_700_000),
        reads_during_p99_ns: Some(22_000_000),
        reads_otherwise_p99_ns: Some(8_100_000),
        throughput_ratio: Some(0.56),
        last_is_under_way: false,
        disagreement: Some(
            "The server's own counter says 7.00 s for the longest, the trace of its writes and syncs 4.29 s; the \
             counter is believed."
                .into(),
        ),
        own_share: Some(0.72),
        dirty_limit: Some(DirtyLimit {
            checkpoint_s: 2.0,
            bytes: 125 * MIB,
            percent_of_cache: 3.05,
            setting: "eviction_dirty_target=3,eviction_dirty_trigger=6".into(),
            basis: "This disk writes 68 MB/s in this pattern while it also reads.".into(),
        }),
    }
}

fn durations(name: &Naming<'_>) -> Vec<JobDuration> {
    let job =
        |nth: usize, namespace: &str, job: &str, now_s: f64, ordered_s, phases: &str, window| {
            JobDuration {
                namespace: name(namespace, nth),
                job: job.into(),
                now_s,
                low_s: now_s * 0.83,
                high_s: now_s * 1.2,
                ordered_s: Some(ordered_s),
                phases: phases.into(),
                basis: "layout walked, disk measured".into(),
                oplog_window_s: window,
            }
        };
    vec![
        job(1, "shop.orders", "collection scan", 252.0, 9.1, "", None),
        job(
            1,
            "shop.orders",
            "index build",
            331.0,
            88.0,
            "reading 76 %, sorting and loading 24 %",
            None,
        ),
        job(2, "shop.items", "collection scan", 9.4, 9.1, "", None),
        job(
            3,
            "*",
            "resync",
            5_640.0,
            3_980.0,
            "reading 41 %, writing 38 %, indexes 21 %",
            Some(86_400.0),
        ),
    ]
}

fn space(name: &Naming<'_>) -> Vec<SpaceAnswer> {
    let file =
        |nth: usize, of: &str, file_bytes, free_bytes, at_end, compact, advice: &str| SpaceAnswer {
            name: name(of, nth),
            file_bytes,
            free_bytes,
            free_at_end_bytes: at_end,
            compact_gives_bytes: compact,
            compact_begins: Some(compact.is_some()),
            rewrite_gives_bytes: free_bytes,
            advice: name(advice, nth + 1),
        };
    vec![
        file(
            1,
            "shop.orders",
            1100 * MIB,
            340 * MIB,
            Some(12 * MIB),
            Some(310 * MIB),
            "Reorder it: that gives the space back and the order too.",
        ),
        file(
            2,
            "shop.items",
            980 * MIB,
            9 * MIB,
            Some(MIB),
            None,
            "Leave it: it will be reused.",
        ),
        file(
            3,
            "shop.orders/i_1",
            212 * MIB,
            30 * MIB,
            None,
            None,
            "Leave it.",
        ),
    ]
}

fn memory() -> MemoryAnswer {
    let points = (0..9u32).map(|step| {
        let miss_ratio = 0.08 + 0.30 * 0.72f64.powf(f64::from(step));
        MemoryPoint {
            added_bytes: u64::from(step) * GIB,
            miss_ratio,
            reads_saved_per_s: (0.38 - miss_ratio) * 3260.0,
            waiting_saved_s_per_hour: (0.38 - miss_ratio) * 4100.0,
        }
    });
    MemoryAnswer {
        cache_bytes: Some(4 * GIB),
        points: points.collect(),
        method: "Re-use distances of the reads in the trace, one page in 8 followed (SHARDS, Waldspurger et al., \
                 FAST 2015), for a cache that keeps what was used last."
            .into(),
        error: 0.03,
    }
}

fn host(name: &Naming<'_>) -> Vec<HostAnswer> {
    let setting =
        |setting: &str, has: &str, wants: &str, fits, why: &str, loss, command: &str| HostAnswer {
            setting: setting.into(),
            has: name(has, 0),
            wants: wants.into(),
            fits,
            why: name(why, 1),
            loss_s_per_hour: loss,
            command: name(command, 2),
        };
    vec![
        setting(
            "filesystem",
            "xfs",
            "xfs",
            true,
            "recommended for WiredTiger",
            None,
            "",
        ),
        setting(
            "read-ahead",
            "128 KiB",
            "8 KiB to 32 KiB",
            false,
            "91 % of the reads are random; 24 % of what the disk read was never asked for",
            Some(84.0),
            "sudo blockdev --setra 32 /dev/nvme1n1",
        ),
        setting(
            "transparent huge pages",
            "always",
            "never",
            false,
            "before 8.0",
            None,
            "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        setting(
            "I/O scheduler",
            "mq-deadline",
            "none or mq-deadline",
            true,
            "an SSD orders requests itself",
            None,
            "",
        ),
        setting(
            "cache size",
            "4.00 GiB",
            "8.00 GiB",
            false,
            "see memory",
            Some(620.0),
            "",
        ),
    ]
}

fn members(name: &Naming<'_>) -> Vec<MemberAnswer> {
    let member = |nth: usize, host: &str, state, read_us: f64, lag: Option<f64>| MemberAnswer {
        name: name(host, nth),
        shard: None,
        state,
        not_asked: None,
        version: "7.0.14".into(),
        figures: vec![
            (
                "operations per second".into(),
                Some(1570.0 + 40.0 * nth as f64),
            ),
            ("mean time of a disk read, µs".into(), Some(read_us)),
            ("cache filled, %".into(), Some(80.0 + nth as f64)),
            ("behind the primary, s".into(), lag),
        ],
        differing_settings: vec![(
            "read-ahead".into(),
            if nth == 0 { "128 KiB" } else { "16 KiB" }.into(),
        )],
        ..MemberAnswer::default()
    };
    vec![
        member(
            0,
            "db2.example:27017",
            MemberState::Secondary,
            610.0,
            Some(2.0),
        ),
        member(1, "db1.example:27017", MemberState::Primary, 120.0, None),
        member(
            2,
            "db3.example:27017",
            MemberState::Secondary,
            118.0,
            Some(0.0),
        ),
    ]
}
