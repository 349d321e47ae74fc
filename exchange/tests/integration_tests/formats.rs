//! Texts written by hand after the manuals, and round trips.

use std::collections::BTreeMap;

use seekscope_exchange::export::{ChromeWriter, CsvWriter, Names};
use seekscope_exchange::{Format, ImportError, detect};
use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoOp, ThreadRecord};

use crate::{call, file, read, try_read};

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        3     0.000002197   697  Q  WS 223490 + 8 [kjournald]
  8,0    3        5     0.000008289   697  D  WS 223490 + 8 [kjournald]
  8,0    1        6     0.000010000   812  D   R 5000 + 64 [my server]
  8,0    1        7     0.000108289     0  C  WS 223490 + 8 [0]
  8,0    1        8     0.000109000     0  C   R 5000 + 64 [65531]
  8,0    1        9     0.000110000   697  D  FN [kjournald]
  8,0    1       10     0.000210000     0  C  FN 0 [0]
  8,16   0       11     0.000220000   697  D WFS 8 + 8 [kjournald]
  8,0    0        0     0.000230000     0  m   N cfq697 insert_request
  8,16   0       12     0.000240000     0  C WFS 8 + 8 [0]
  8,16   0       13     0.000250000     0  C   R 99 + 8 [0]
  8,16   0       14     1.000250000   812  D  RA 128 + 8 [my server]

CPU0 (8,0):
 Reads Queued:           1,       32KiB\t Writes Queued:           1,        4KiB
";

#[test]
fn requests_of_blkparse_are_paired() {
    assert_eq!(detect(BLKPARSE.as_bytes()), Some(Format::Blkparse));
    let (memory, summary) = read(Format::Blkparse, BLKPARSE);
    let seen: Vec<_> = memory
        .events
        .iter()
        .map(|e| (e.op, e.t_ns, e.latency_ns, e.length, e.result, e.tid))
        .collect();
    assert_eq!(
        seen,
        [
            (IoOp::BlockWrite, 8289, 100_000, 4096, 4096, 697),
            (IoOp::BlockRead, 10_000, 99_000, 32_768, -65_531, 812),
            (IoOp::BlockFlush, 110_000, 100_000, 0, 0, 697),
            (IoOp::BlockWrite, 220_000, 20_000, 4096, 4096, 697),
        ]
    );
    let request = |i: usize| memory.events[i].request.unwrap();
    assert_eq!((request(0).sector, request(3).disk_minor), (223_490, 16));
    assert_eq!(memory.events[0].flags.0, IoFlags::SYNCHRONOUS);
    assert!(memory.events[3].flags.has(IoFlags::FORCE_UNIT_ACCESS));
    assert_eq!(memory.files.len(), 2, "one for each disk");
    assert!(
        memory
            .threads
            .iter()
            .any(|t| t.name == "my server" && t.tid == 812)
    );
    let count = |why| summary.skipped[why].lines;
    assert_eq!(count("a completion whose issue is not in the trace"), 1);
    assert_eq!(count("an issue without its completion"), 1);
    assert_eq!(summary.span_ns, Some((8289, 240_000)));
}

#[test]
fn iologs_of_both_versions() {
    let two = "fio version 2 iolog\n/d/a add\n/d/a open\n/d/a read 0 4096\n/d/a wait 500 0\n\
               /d/a write 8192 512\n/d/a sync 0 0\n/d/a datasync 0 0\n/d/a trim 0 512\n/d/a close\n";
    assert_eq!(detect(two.as_bytes()), Some(Format::Fio));
    let (memory, summary) = read(Format::Fio, two);
    let seen: Vec<_> = memory
        .events
        .iter()
        .map(|e| (e.op, e.t_ns, e.offset, e.length))
        .collect();
    assert_eq!(
        seen,
        [
            (IoOp::Pread, 0, Some(0), 4096),
            (IoOp::Pwrite, 500_001, Some(8192), 512),
            (IoOp::Fsync, 500_002, None, 0),
            (IoOp::Fdatasync, 500_003, None, 0),
        ]
    );
    assert!(summary.untimed && summary.without_latency);
    assert_eq!(memory.events[0].cache_outcome(), None, "nobody knows");
    let three = "fio version 3 iolog\n0 /d/a add\n5 /d/a read 0 4096\n5 /d/a read 4096 4096\n7 /d/b write 0 1\n";
    let (memory, summary) = read(Format::Fio, three);
    let times: Vec<_> = memory.events.iter().map(|e| e.t_ns).collect();
    assert_eq!(times, [5_000_000, 5_000_001, 7_000_000]);
    assert!(!summary.untimed);
    assert_eq!(memory.files.len(), 2);
}

#[test]
fn csv_of_bpftrace_with_columns_in_any_order() {
    let text = "Attaching 4 probes...\nop,time_ns,tid,comm,file,latency_ns,length,offset,other\n\
                pread,1000,7,conn 1,/d/a.wt,55,4096,8192,x\nvfs_write,2000,7,conn 1,\"/d/b,\"\"c\"\"\",60,10,,x\n\n";
    assert_eq!(detect(text.as_bytes()), Some(Format::Csv));
    let (memory, _) = read(Format::Csv, text);
    assert_eq!(memory.path(&memory.events[1]), "/d/b,\"c\"");
    let [first, second] = &memory.events[..] else {
        panic!("{memory:?}");
    };
    assert_eq!(
        (first.op, first.offset, first.result),
        (IoOp::Pread, Some(8192), 4096)
    );
    assert_eq!(
        (second.op, second.offset, second.latency_ns),
        (IoOp::Write, None, 60)
    );
    assert_eq!(memory.threads[0].name, "conn 1");
}

fn sample() -> (Vec<IoEvent>, Names, Vec<ThreadRecord>) {
    let events = vec![
        call(IoOp::Pread, 1_000_000_001, 0, 4096),
        IoEvent {
            offset: None,
            result: -28,
            file_id: 1,
            flags: IoFlags(IoFlags::WAITED | IoFlags::APPEND),
            ..call(IoOp::Write, 1_000_000_500, 0, 7)
        },
        IoEvent {
            request: Some(BlockRequest {
                disk_major: 254,
                disk_minor: 1,
                sector: 1 << 40,
            }),
            device_read_bytes: 1,
            tid: 12,
            ..call(IoOp::BlockRead, 2_000_000_999, 1 << 50, 512)
        },
    ];
    let threads = vec![ThreadRecord {
        tid: 11,
        pid: 10,
        name: "a \"b\",\u{7}".into(),
    }];
    let files = vec![file(0, "/d/a, \"b\"\nc"), file(1, "/d/ä")];
    (events, Names::of(files, threads.clone()), threads)
}

#[test]
fn our_csv_comes_back_as_it_was() {
    let (events, names, threads) = sample();
    let mut text = Vec::new();
    let mut writer = CsvWriter::begin(&mut text, &names).unwrap();
    events.iter().for_each(|e| writer.event(e).unwrap());
    writer.finish().unwrap();
    assert_eq!(detect(&text), Some(Format::Csv));
    let (memory, summary) = try_read(Format::Csv, &text);
    summary.unwrap();
    assert_eq!(memory.events, events);
    assert_eq!(memory.path(&events[0]), names.path(0));
    assert_eq!(memory.threads[0], threads[0]);
}

#[test]
fn chrome_json_is_json_and_keeps_nanoseconds() {
    let (events, names, _) = sample();
    let mut text = Vec::new();
    let mut writer = ChromeWriter::begin(&mut text, &names).unwrap();
    events.iter().for_each(|e| writer.event(e).unwrap());
    writer.finish().unwrap();
    assert!(
        std::str::from_utf8(&text)
            .unwrap()
            .contains("\"ts\":1000000.001,\"dur\":1.500")
    );
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let items = value["traceEvents"].as_array().unwrap();
    let kinds: Vec<_> = items.iter().map(|i| i["ph"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["M", "X", "X", "X"]);
    assert_eq!(items[0]["args"]["name"], "a \"b\",\u{7}");
    assert_eq!(items[1]["args"]["file"], "/d/a, \"b\"\nc");
    assert_eq!(items[1]["args"]["cache"], "hit");
    assert_eq!(items[2]["args"]["offset"], serde_json::Value::Null);
    let mut empty = Vec::new();
    ChromeWriter::begin(&mut empty, &names)
        .unwrap()
        .finish()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&empty).unwrap();
    assert_eq!(value["traceEvents"], serde_json::json!([]));
}

#[test]
fn a_damaged_line_is_named() {
    let damaged: BTreeMap<&str, (Format, &str, u64)> = BTreeMap::from([
        (
            "iolog",
            (
                Format::Fio,
                "fio version 3 iolog\n1 /a read 0 4096\n2 /a read x 4096\n3 /a read 0 1\n",
                3,
            ),
        ),
        ("header", (Format::Fio, "fio version 9 iolog\n", 1)),
        (
            "blkparse",
            (
                Format::Blkparse,
                "8,0 1 1 0.1 5 D R 5 + 8 [x]\n8,0 1 2 0.2 oops\n",
                2,
            ),
        ),
        (
            "strace",
            (
                Format::Strace,
                "1 1.5 read(3</a>, \"\", 5) = 5\n1 1.6 read(3</a>, \"\"\n",
                2,
            ),
        ),
        (
            "csv",
            (
                Format::Csv,
                "time_ns,op,file,offset,length\n1,read,/a,0,5\n1,walk,/a,0,5\n",
                3,
            ),
        ),
    ]);
    for (name, (format, text, wanted)) in damaged {
        match try_read(format, text.as_bytes()).1 {
            Err(ImportError::Malformed { line, .. }) => assert_eq!(line, wanted, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    // The same as a last line that a killed tool left is no damage.
    let (memory, summary) = read(
        Format::Fio,
        "fio version 3 iolog\n1 /a read 0 4096\n2 /a re",
    );
    assert_eq!((memory.events.len(), summary.skipped.len()), (1, 2));
}

#[test]
fn what_is_no_trace_is_not_taken_for_one() {
    for text in [
        "",
        "\n\n",
        "hello, world\n",
        "{\"a\": [1, 2]}\n",
        "\0\0\0\u{1}",
    ] {
        assert_eq!(detect(text.as_bytes()), None, "{text:?}");
    }
}
