//! `seekscope trace --live`: the window that a recording feeds, and the terminal that shows it.

use std::io::{self, Stderr, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, getpid, kill_process};
use seekscope_report::live::{Controls, Glyphs, Key, LiveSnapshot, LiveWindow, draw};
use seekscope_run::{FileRecord, IoEvent, ThreadRecord, monotonic_ns};
use seekscope_trace::{EventSink, SinkError};

/// The picture changes twice a second, like its columns.
const REDRAW: Duration = Duration::from_millis(500);
/// How soon a key or the end of the trace is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Events passed on to the window at a time.
const BATCH: usize = 4096;

/// What the recording fills and the terminal shows.
pub type SharedWindow = Arc<Mutex<LiveWindow>>;

/// A window of a trace that begins now.
pub fn new_window() -> SharedWindow {
    Arc::new(Mutex::new(LiveWindow::new(monotonic_ns())))
}

/// A panic while drawing must not end the recording.
fn lock(window: &SharedWindow) -> MutexGuard<'_, LiveWindow> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes everything on to `inner`, and shows it to a window, many events at a time so that the
/// lock costs nothing noticeable.
pub struct Tee<S> {
    inner: S,
    window: SharedWindow,
    waiting: Vec<IoEvent>,
}

impl<S: EventSink> Tee<S> {
    pub fn new(inner: S, window: SharedWindow) -> Self {
        let waiting = Vec::with_capacity(BATCH);
        Self {
            inner,
            window,
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
        lock(&self.window).file(file);
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

/// Is stderr in the state that [`LiveView`] needs? Global, because panics and the second signal end
/// the process past every destructor, and must leave the terminal as it was all the same.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back, if it was taken. To be called before `std::process::exit`.
pub fn restore_terminal() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        // There is nobody left to tell of a terminal that has gone.
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen, Show);
        let _ = stderr().flush();
    }
}

fn take_terminal() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            report(panic);
        }));
    });
    enable_raw_mode()?;
    ACTIVE.store(true, Ordering::SeqCst);
    execute!(stderr(), EnterAlternateScreen)?;
    Terminal::new(CrosstermBackend::new(stderr()))
}

/// A trace on the terminal (stderr), until it is dropped. The keys q and Ctrl-C send this process
/// SIGINT: they are Ctrl-C, which a terminal that hands over single keys no longer turns into one.
pub struct LiveView {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LiveView {
    /// Takes the terminal and begins to show `window`. Nothing else may be written to stderr
    /// until the view is dropped.
    ///
    /// # Errors
    /// The terminal refuses, or there is none; it is left as it was.
    pub fn start(window: SharedWindow) -> io::Result<Self> {
        let terminal = take_terminal().inspect_err(|_| restore_terminal())?;
        let end = Arc::new(AtomicBool::new(false));
        let glyphs = if crate::environment::has_unicode() {
            Glyphs::Unicode
        } else {
            Glyphs::Ascii
        };
        let mut screen = Screen {
            terminal,
            window,
            glyphs,
            controls: Controls::default(),
            end: Arc::clone(&end),
        };
        let show = move || {
            // Without its terminal the view has no purpose; the trace has.
            let _ = screen.run();
            restore_terminal();
        };
        let thread = std::thread::Builder::new()
            .name("trace-view".into())
            .spawn(show);
        let thread = thread.inspect_err(|_| restore_terminal())?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The hook has already told of a panic.
            let _ = thread.join();
        }
        restore_terminal();
    }
}

/// What the drawing thread has.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    window: SharedWindow,
    glyphs: Glyphs,
    controls: Controls,
    end: Arc<AtomicBool>,
}

/// What an input event asks for.
enum Wish {
    End,
    Key(Key),
    Redraw,
    Nothing,
}

impl Screen {
    fn run(&mut self) -> io::Result<()> {
        let mut shown = self.look();
        let mut looked = Instant::now();
        self.draw(&shown)?;
        while self.is_wanted() {
            let wish = if poll(LOOK_AGAIN)? {
                wish(&read()?)
            } else {
                Wish::Nothing
            };
            match wish {
                Wish::End => {
                    restore_terminal();
                    let _ = kill_process(getpid(), Signal::INT);
                    return Ok(());
                }
                Wish::Key(key) => {
                    let selected = self.controls.selected;
                    self.controls.obey(key, &shown);
                    if self.controls.selected != selected {
                        // Another file's map must be fetched, paused or not.
                        shown = self.look();
                    }
                    self.draw(&shown)?;
                }
                Wish::Redraw => self.draw(&shown)?,
                Wish::Nothing if self.controls.paused || looked.elapsed() < REDRAW => {}
                Wish::Nothing => {
                    shown = self.look();
                    looked = Instant::now();
                    self.draw(&shown)?;
                }
            }
        }
        Ok(())
    }

    /// Not after the end, nor once the terminal was given back.
    fn is_wanted(&self) -> bool {
        !self.end.load(Ordering::Relaxed) && ACTIVE.load(Ordering::SeqCst)
    }

    fn look(&self) -> LiveSnapshot {
        lock(&self.window).snapshot(monotonic_ns(), self.controls.selected)
    }

    fn draw(&mut self, shown: &LiveSnapshot) -> io::Result<()> {
        if self.is_wanted() {
            let (controls, glyphs) = (self.controls, self.glyphs);
            self.terminal
                .draw(|frame| draw(frame, shown, &controls, glyphs))?;
        }
        Ok(())
    }
}

fn wish(event: &Event) -> Wish {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => wish_of_key(key),
        Event::Resize(..) => Wish::Redraw,
        _ => Wish::Nothing,
    }
}

fn wish_of_key(key: &KeyEvent) -> Wish {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::End,
        KeyCode::Char('q') | KeyCode::Esc => Wish::End,
        KeyCode::Char('p') | KeyCode::Char(' ') => Wish::Key(Key::Pause),
        KeyCode::Up | KeyCode::Char('k') => Wish::Key(Key::Up),
        KeyCode::Down | KeyCode::Char('j') => Wish::Key(Key::Down),
        KeyCode::Tab => Wish::Key(Key::Tab),
        _ => Wish::Nothing,
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
        let mut tee = Tee::new(&mut counter, Arc::clone(&window));
        (0..BATCH + 3).for_each(|_| tee.event(&event).unwrap());
        assert_eq!(lock(&window).events(), BATCH as u64);
        tee.drained().unwrap();
        assert_eq!((counter.events, counter.drains), (BATCH + 3, 1));
        assert_eq!(lock(&window).events(), BATCH as u64 + 3);
    }

    #[test]
    fn keys() {
        let key = |code, modifiers| wish_of_key(&KeyEvent::new(code, modifiers));
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        assert!(matches!(key(KeyCode::Char('q'), none), Wish::End));
        assert!(matches!(key(KeyCode::Char('c'), control), Wish::End));
        assert!(matches!(key(KeyCode::Char('c'), none), Wish::Nothing));
        assert!(matches!(key(KeyCode::Tab, none), Wish::Key(Key::Tab)));
    }
}
