//! The terminal view: the newest frame, and the reader's keys.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use seekscope_report::live::Glyphs;
use seekscope_report::live::top::{Order, TopControls, TopFrame, TopKey, draw};

use crate::live_terminal::View;

/// The newest frame, made by one thread and drawn by another.
#[derive(Clone)]
pub struct SharedFrame(Arc<Mutex<TopFrame>>);

impl SharedFrame {
    pub fn new(frame: TopFrame) -> Self {
        Self(Arc::new(Mutex::new(frame)))
    }

    pub fn put(&self, frame: TopFrame) {
        *self.lock() = frame;
    }

    pub fn change(&self, change: impl FnOnce(&mut TopFrame)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, TopFrame> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The view on the screen.
pub struct TopView {
    newest: SharedFrame,
    shown: TopFrame,
    controls: TopControls,
}

impl TopView {
    pub fn new(newest: SharedFrame, order: Order) -> Self {
        let shown = newest.lock().clone();
        Self {
            newest,
            shown,
            controls: TopControls::sorted_by(order),
        }
    }
}

impl View for TopView {
    fn look(&mut self) {
        self.shown = self.newest.lock().clone();
    }

    fn key(&mut self, key: KeyCode) -> bool {
        let key = match key {
            KeyCode::Char('w') => TopKey::Order(Order::Waited),
            KeyCode::Char('b') => TopKey::Order(Order::Bytes),
            KeyCode::Char('c') => TopKey::Order(Order::Calls),
            KeyCode::Char('s') => TopKey::NextOrder,
            KeyCode::Char('p' | ' ') => TopKey::Pause,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => TopKey::Help,
            KeyCode::Up | KeyCode::Char('k') => TopKey::Up,
            KeyCode::Down | KeyCode::Char('j') => TopKey::Down,
            KeyCode::Home => TopKey::First,
            _ => return false,
        };
        self.controls.obey(key, self.shown.files_used());
        true
    }

    fn is_paused(&self) -> bool {
        self.controls.paused
    }

    fn draw(&self, frame: &mut Frame<'_>, glyphs: Glyphs) {
        draw(frame, &self.shown, &self.controls, glyphs);
    }
}
