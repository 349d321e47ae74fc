//! Shows a picture on the terminal (stderr) that changes while something goes on, and reacts to keys.

use std::io::{self, Stderr, Write, stderr};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::process::{Signal, getpid, kill_process};
use seekscope_report::live::Glyphs;

/// How often the picture changes.
const REDRAW: Duration = Duration::from_millis(500);
/// How soon a key or the end is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The contents of the picture.
pub trait View: Send + 'static {
    /// Updates what is shown; called twice a second unless the view is paused.
    fn look(&mut self);

    /// Handles a key; returns false if it means nothing.
    fn key(&mut self, key: KeyCode) -> bool;

    /// Returns whether the reader has paused the picture.
    fn is_paused(&self) -> bool;

    fn draw(&self, frame: &mut Frame<'_>, glyphs: Glyphs);
}

/// Whether stderr is in the state that [`LiveTerminal`] needs. Global, because panics and the second signal end
/// the process without running destructors, yet must restore the terminal.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Restores the terminal if it was taken. Call this before `std::process::exit`.
pub fn restore_terminal() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        // If the terminal is gone, there is nobody to report errors to.
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

/// A view on the terminal, shown until it is dropped. The keys q and Ctrl-C send this process SIGINT: a
/// terminal that delivers single keys no longer turns Ctrl-C into a signal.
pub struct LiveTerminal {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LiveTerminal {
    /// Takes the terminal and starts showing `view`. Nothing else may be written to stderr until this is
    /// dropped.
    ///
    /// # Errors
    /// The terminal refuses, or there is none; it is left as it was.
    pub fn start(view: impl View) -> io::Result<Self> {
        let terminal = take_terminal().inspect_err(|_| restore_terminal())?;
        let end = Arc::new(AtomicBool::new(false));
        let glyphs = if crate::environment::has_unicode() {
            Glyphs::Unicode
        } else {
            Glyphs::Ascii
        };
        let mut screen = Screen {
            terminal,
            view,
            glyphs,
            end: Arc::clone(&end),
        };
        let show = move || {
            // Without its terminal the view is useless, but the work that it shows may not be.
            let _ = screen.run();
            restore_terminal();
        };
        let thread = std::thread::Builder::new()
            .name("live-view".into())
            .spawn(show);
        let thread = thread.inspect_err(|_| restore_terminal())?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl LiveTerminal {
    /// Returns whether nothing is shown any more: the terminal is gone, or the reader ended it.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The hook has already reported a panic.
            let _ = thread.join();
        }
        restore_terminal();
    }
}

/// State of the drawing thread.
struct Screen<V> {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    view: V,
    glyphs: Glyphs,
    end: Arc<AtomicBool>,
}

/// What an input event asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    End,
    Key(KeyCode),
    Redraw,
    Nothing,
}

impl<V: View> Screen<V> {
    fn run(&mut self) -> io::Result<()> {
        self.view.look();
        let mut looked = Instant::now();
        self.draw()?;
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
                    if self.view.key(key) {
                        self.draw()?;
                    }
                }
                Wish::Redraw => self.draw()?,
                Wish::Nothing if self.view.is_paused() || looked.elapsed() < REDRAW => {}
                Wish::Nothing => {
                    self.view.look();
                    looked = Instant::now();
                    self.draw()?;
                }
            }
        }
        Ok(())
    }

    /// Returns false after the end, or once the terminal was restored.
    fn is_wanted(&self) -> bool {
        !self.end.load(Ordering::Relaxed) && ACTIVE.load(Ordering::SeqCst)
    }

    fn draw(&mut self) -> io::Result<()> {
        if self.is_wanted() {
            let (view, glyphs) = (&self.view, self.glyphs);
            self.terminal.draw(|frame| view.draw(frame, glyphs))?;
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
        code => Wish::Key(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let key = |code, modifiers| wish_of_key(&KeyEvent::new(code, modifiers));
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        assert_eq!(key(KeyCode::Char('q'), none), Wish::End);
        assert_eq!(key(KeyCode::Char('c'), control), Wish::End);
        assert_eq!(key(KeyCode::Tab, none), Wish::Key(KeyCode::Tab));
        let c = KeyCode::Char('c');
        assert_eq!(key(c, none), Wish::Key(c));
    }
}
