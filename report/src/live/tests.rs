use ratatui::Terminal;
use ratatui::backend::TestBackend;
use seekscope_run::{
    BlockRequest, FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState,
};

use super::*;

const START_NS: u64 = 7_000_000_000;
const BLOCK: u64 = 32_768;

fn event(t_ns: u64, file_id: u32, op: IoOp, offset: u64) -> IoEvent {
    IoEvent {
        t_ns: START_NS + t_ns,
        pid: 1,
        tid: 1,
        file_id,
        op,
        flags: IoFlags::default(),
        offset: Some(offset),
        length: 32_768,
        latency_ns: 100_000,
        result: 32_768,
        device_read_bytes: 0,
        request: None,
    }
}

fn record(file_id: u32, path: &str) -> FileRecord {
    FileRecord {
        file_id,
        path: path.into(),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 1,
        inode: 9,
        size_bytes: 0,
        role: FileRole::Collection,
        namespace: None,
    }
}

/// Ten seconds: 100 scattered reads a second of file 1, 10 writes in order of file 2, and a disk
/// that has four requests under way all the time.
fn window() -> LiveWindow {
    let mut window = LiveWindow::new(START_NS);
    window.file(&record(1, "/data/collection-7.wt"));
    window.file(&record(2, "/data/\u{1b}[2Jevil.wt"));
    for i in 0..1000u64 {
        let t_ns = i * 10_000_000;
        let mut read = event(t_ns, 1, IoOp::Pread, (i * 7919 % 1000) * BLOCK);
        if i % 4 != 0 {
            read.flags = IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ);
        }
        window.event(&read);
        if i % 10 == 0 {
            window.event(&event(t_ns, 2, IoOp::Pwrite, i / 10 * BLOCK));
            window.event(&event(t_ns, 2, IoOp::Fdatasync, 0));
        }
        let mut request = event(t_ns, 1, IoOp::BlockRead, 0);
        request.latency_ns = 40_000_000;
        request.request = Some(BlockRequest { disk_major: 254, disk_minor: 0, sector: i });
        window.event(&request);
    }
    window
}

fn screen(shown: &LiveSnapshot, controls: &Controls, glyphs: Glyphs, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, shown, controls, glyphs)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_picture_says_what_happens() {
    let shown = window().snapshot(START_NS + 10_000_000_000, None);
    let text = screen(&shown, &Controls::default(), Glyphs::Unicode, (140, 40));
    let line = |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or("");
    assert!(text.contains("2,200 events") == false && text.contains("2,200") == false);
    assert!(text.contains("2,200 events") || text.contains("events, none lost"), "{text}");
    assert!(line("all files").contains("100 reads/s"), "{text}");
    assert!(line("all files").contains("10.0 writes/s"), "{text}");
    assert!(line("disk 254:0").contains("100 requests/s"), "{text}");
    assert!(line("disk 254:0").contains("queue depth 4.0"), "{text}");
    let file = line("collection-7.wt  ");
    for part in ["collection", "100", "100 µs", "25.0 %", "random"] {
        assert!(file.contains(part), "{part} in {file}");
    }
    assert!(line("evil").contains("sequential"), "{text}");
    assert!(text.contains("60 s ago"), "{text}");
}
