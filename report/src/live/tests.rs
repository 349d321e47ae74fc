use ratatui::Terminal;
use ratatui::backend::TestBackend;
use seekscope_run::{
    BlockRequest, DeviceFacts, FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState,
};

use seekscope_stats::SplitMix64;

use super::*;

pub(super) const START_NS: u64 = 7_000_000_000;
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
        member: None,
    }
}

/// Returns ten seconds: 100 scattered reads a second of file 1, 10 sequential writes a second of file 2, and
/// a disk that is busy four tenths of the time.
pub(super) fn window() -> LiveWindow {
    let mut window = LiveWindow::new(START_NS);
    window.file(&record(1, "/data/collection-7.wt"));
    window.file(&record(2, "/data/\u{1b}[2Jevil.wt"));
    let mut rng = SplitMix64::new(3);
    for i in 0..1000u64 {
        let t_ns = i * 10_000_000;
        let mut read = event(t_ns, 1, IoOp::Pread, rng.below(1000) * BLOCK);
        if i % 4 != 0 {
            read.flags = IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ);
        }
        window.event(&read);
        if i % 10 == 0 {
            window.event(&event(t_ns, 2, IoOp::Pwrite, i / 10 * BLOCK));
            window.event(&event(t_ns, 2, IoOp::Fdatasync, 0));
        }
        let mut request = event(t_ns, 1, IoOp::BlockRead, 0);
        request.latency_ns = 4_000_000;
        request.request = Some(BlockRequest {
            disk_major: 254,
            disk_minor: 0,
            sector: i,
        });
        window.event(&request);
    }
    window
}

fn screen(shown: &LiveSnapshot, controls: &Controls, glyphs: Glyphs, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| draw(frame, shown, controls, glyphs))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_picture_says_what_happens() {
    let shown = window().snapshot(START_NS + 10_000_000_000, None);
    let text = screen(&shown, &Controls::default(), Glyphs::Unicode, (140, 40));
    let line = |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or("");
    assert!(text.contains("10.0 s: 2,200 events, none lost"), "{text}");
    assert!(line("all files").contains("100 reads/s"), "{text}");
    assert!(line("all files").contains("10.0 writes/s"), "{text}");
    assert!(line("disk 254:0").contains("100 requests/s"), "{text}");
    assert!(line("disk 254:0").contains("queue depth 0.40"), "{text}");
    let file = line("collection-7.wt  ");
    for part in ["collection", "100", "100 µs", "24.9 %", "random"] {
        assert!(file.contains(part), "{part} in {file}");
    }
    assert!(line("evil").contains("sequential"), "{text}");
    assert!(text.contains("60 s ago"), "{text}");
    let device = DeviceFacts {
        device: "254:1".into(),
        disk: Some("vda".into()),
        disk_device: Some("254:0".into()),
        ..DeviceFacts::default()
    };
    let shown = window()
        .on(Some(device))
        .snapshot(START_NS + 10_000_000_000, None);
    let text = screen(&shown, &Controls::default(), Glyphs::Unicode, (140, 40));
    assert!(text.contains("disk vda (254:0): 100 requests/s"), "{text}");
}

#[test]
fn names_cannot_give_orders_and_the_map_needs_no_special_characters() {
    let mut window = window();
    window.set_lost(12);
    let shown = window.snapshot(START_NS + 10_000_000_000, Some(2));
    let controls = Controls {
        paused: true,
        ..Controls::default()
    };
    let text = screen(&shown, &controls, Glyphs::Ascii, (120, 40));
    assert!(
        !text.contains('\u{1b}') && text.contains("\\u{1b}[2Jevil.wt: offset over time"),
        "{text}"
    );
    assert!(
        text.contains("12 LOST") && text.contains("[paused"),
        "{text}"
    );
    assert!(
        text.is_ascii() || !text.contains(['·', '░', '▒', '▓', '█', '│', '↑']),
        "{text}"
    );
}

#[test]
fn a_rising_scan_is_a_rising_line() {
    let mut window = LiveWindow::new(START_NS);
    for i in 0..600u64 {
        window.event(&event(i * 100_000_000, 1, IoOp::Pread, i * BLOCK));
    }
    let mut controls = Controls::default();
    let shown = window.snapshot(START_NS + 59_999_999_999, None);
    controls.obey(Key::Tab, &shown);
    let text = screen(&shown, &controls, Glyphs::Ascii, (132, 37));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
    let starts: Vec<usize> = rows
        .iter()
        .filter_map(|row| row.split_once('|')?.1.find(|c| !" \"".contains(c)))
        .collect();
    assert!(starts.len() > 15, "{text}");
    assert!(starts.windows(2).all(|pair| pair[0] > pair[1]), "{text}");
}

#[test]
fn any_size_of_terminal_will_do() {
    let mut window = window();
    for size in [(1, 1), (3, 2), (10, 5), (40, 10), (300, 100)] {
        for tabs in 0..3 {
            let shown = window.snapshot(START_NS + 10_000_000_000, None);
            let mut controls = Controls::default();
            (0..tabs).for_each(|_| controls.obey(Key::Tab, &shown));
            screen(&shown, &controls, Glyphs::Unicode, size);
            screen(
                &LiveWindow::new(0).snapshot(0, None),
                &controls,
                Glyphs::Unicode,
                size,
            );
        }
    }
}

#[test]
fn the_selection_stays_with_its_file() {
    let mut window = window();
    let shown = window.snapshot(START_NS + 10_000_000_000, None);
    let mut controls = Controls::default();
    controls.obey(Key::Down, &shown);
    assert_eq!(controls.selected, Some(2));
    controls.obey(Key::Down, &shown);
    assert_eq!(controls.selected, Some(2), "there is no third");
    for i in 0..100_000u64 {
        window.event(&event(
            10_000_000_000 + i * 10_000,
            2,
            IoOp::Pwrite,
            i * BLOCK,
        ));
    }
    let shown = window.snapshot(START_NS + 11_000_000_000, controls.selected);
    assert_eq!(controls.selected_index(&shown), 0, "now the busiest");
    controls.obey(Key::Down, &shown);
    assert_eq!(controls.selected, Some(1));
}

#[test]
fn memory_is_bounded_and_idle_files_show_no_rates() {
    let mut window = LiveWindow::new(START_NS);
    for file_id in 0..10_000u32 {
        window.file(&record(file_id, "/data/a.wt"));
        window.event(&event(
            u64::from(file_id) * 1_000_000,
            file_id,
            IoOp::Pread,
            u64::MAX,
        ));
    }
    assert_eq!(window.files_watched(), 128);
    let shown = window.snapshot(START_NS + 60_000_000_000, None);
    assert_eq!(shown.files.len(), 128);
    assert!(shown.files.iter().all(|file| file.rates.calls() == 0.0));
    assert!(shown.map.is_some_and(|(id, _)| id >= 10_000 - 128));
}

#[test]
fn a_narrow_terminal_shows_fewer_columns_but_whole_ones() {
    let shown = window().snapshot(START_NS + 10_000_000_000, None);
    let text = screen(&shown, &Controls::default(), Glyphs::Unicode, (80, 24));
    assert!(
        text.contains("sequential") && text.contains("in cache"),
        "{text}"
    );
    assert!(
        text.contains("writes/s") && !text.contains("role"),
        "{text}"
    );
}
