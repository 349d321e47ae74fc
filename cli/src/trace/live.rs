//! `seekscope trace --live`: the window that a recording feeds, and its picture on the terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use seekscope_report::live::{Controls, Glyphs, Key, LiveSnapshot, LiveWindow, draw};
use seekscope_run::{DeviceFacts, FileRecord, IoEvent, ThreadRecord, monotonic_ns};
use seekscope_trace::{EventSink, SinkError};

use crate::live_terminal::View;

/// Number of events passed to the window at a time.
const BATCH: usize = 4096;

/// The window that the recording fills and the terminal shows.
pub type SharedWindow = Arc<Mutex<LiveWindow>>;

/// Adds a file's role in the database, if known.
pub type NameFile = Box<dyn FnMut(&mut FileRecord) + Send>;

/// Returns a window for a trace that begins now, of files on this disk.
pub fn new_window(device: Option<DeviceFacts>) -> SharedWindow {
    let window = LiveWindow::new(monotonic_ns()).on(device);
    Arc::new(Mutex::new(window))
}

/// Locks the window. A panic while drawing must not end the recording.
pub fn lock(window: &SharedWindow) -> MutexGuard<'_, LiveWindow> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes everything on to `inner` and to a window, many events at a time so that the lock costs nothing
/// noticeable.
pub struct Tee<S> {
    inner: S,
    window: SharedWindow,
    name: NameFile,
    waiting: Vec<IoEvent>,
}

impl<S: EventSink> Tee<S> {
    /// Wraps `inner`. The window gets files with the names that `name` gives them.
    pub fn new(inner: S, window: SharedWindow, name: NameFile) -> Self {
        let waiting = Vec::with_capacity(BATCH);
        Self {
            inner,
            window,
            name,
            waiting,
        }
    }

    fn pass_on(&mut self) {
        let mut window = lock(&self.window);
        self.waiting
            .drain(..)
            .for_each(|event| window.event(&event));
    }
}

impl<S: EventSink> EventSink for Tee<S> {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.waiting.push(*event);
        if self.waiting.len() == BATCH {
            self.pass_on();
        }
        self.inner.event(event)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        let mut named = file.clone();
        (self.name)(&mut named);
        lock(&self.window).file(&named);
        self.inner.file(file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        self.inner.thread(thread)
    }

    fn lost(&mut self, events: u64) {
        lock(&self.window).set_lost(events);
        self.inner.lost(events);
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        self.pass_on();
        self.inner.drained()
    }
}

/// The picture of a recording.
pub struct TraceView {
    window: SharedWindow,
    shown: LiveSnapshot,
    controls: Controls,
}

impl TraceView {
    pub fn new(window: SharedWindow) -> Self {
        let controls = Controls::default();
        let shown = lock(&window).snapshot(monotonic_ns(), controls.selected);
        Self {
            window,
            shown,
            controls,
        }
    }
}

impl View for TraceView {
    fn look(&mut self) {
        self.shown = lock(&self.window).snapshot(monotonic_ns(), self.controls.selected);
    }

    fn key(&mut self, key: KeyCode) -> bool {
        let key = match key {
            KeyCode::Char('p' | ' ') => Key::Pause,
            KeyCode::Up | KeyCode::Char('k') => Key::Up,
            KeyCode::Down | KeyCode::Char('j') => Key::Down,
            KeyCode::Tab => Key::Tab,
            _ => return false,
        };
        let selected = self.controls.selected;
        self.controls.obey(key, &self.shown);
        if self.controls.selected != selected {
            // Another file's map must be fetched, paused or not.
            self.look();
        }
        true
    }

    fn is_paused(&self) -> bool {
        self.controls.paused
    }

    fn draw(&self, frame: &mut Frame<'_>, glyphs: Glyphs) {
        draw(frame, &self.shown, &self.controls, glyphs);
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{IoFlags, IoOp};

    use super::*;

    #[derive(Default)]
    struct Counter {
        events: usize,
        drains: usize,
    }

    impl EventSink for &mut Counter {
        fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
            self.events += 1;
            Ok(())
        }
        fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
            Ok(())
        }
        fn drained(&mut self) -> Result<(), SinkError> {
            self.drains += 1;
            Ok(())
        }
    }

    #[test]
    fn every_event_reaches_both_sides() {
        let event = IoEvent {
            t_ns: 5,
            pid: 1,
            tid: 1,
            file_id: 1,
            op: IoOp::Read,
            flags: IoFlags::default(),
            offset: None,
            length: 1,
            latency_ns: 1,
            result: 1,
            device_read_bytes: 0,
            request: None,
        };
        let window: SharedWindow = Arc::new(Mutex::new(LiveWindow::new(0)));
        let mut counter = Counter::default();
        let mut tee = Tee::new(&mut counter, Arc::clone(&window), Box::new(|_| {}));
        (0..BATCH + 3).for_each(|_| tee.event(&event).unwrap());
        assert_eq!(lock(&window).events(), BATCH as u64);
        tee.drained().unwrap();
        assert_eq!((counter.events, counter.drains), (BATCH + 3, 1));
        assert_eq!(lock(&window).events(), BATCH as u64 + 3);
    }

    #[test]
    fn keys() {
        let mut view = TraceView::new(Arc::new(Mutex::new(LiveWindow::new(0))));
        assert!(view.key(KeyCode::Tab) && view.key(KeyCode::Char('p')));
        assert!(view.is_paused());
        assert!(!view.key(KeyCode::Char('x')));
    }
}
