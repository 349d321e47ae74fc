//! Defines the effect of keys.

use super::snapshot::LiveSnapshot;

/// A key with a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Tab,
    Pause,
}

/// The view on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tab {
    #[default]
    Files,
    Map,
    Disks,
}

impl Tab {
    pub(super) const ALL: [(Self, &'static str); 3] = [
        (Self::Files, "Files"),
        (Self::Map, "Map"),
        (Self::Disks, "Disks"),
    ];
}

/// The choices of the person at the keyboard.
#[derive(Debug, Clone, Copy, Default)]
pub struct Controls {
    /// The file whose map is shown; `None` for the busiest.
    pub selected: Option<u32>,
    /// The picture is frozen; the trace continues.
    pub paused: bool,
    pub(super) tab: Tab,
}

impl Controls {
    /// Applies a key, with `shown` on the screen.
    pub fn obey(&mut self, key: Key, shown: &LiveSnapshot) {
        match key {
            Key::Up => self.select(shown, |index| index.saturating_sub(1)),
            Key::Down => self.select(shown, |index| index + 1),
            Key::Tab => {
                self.tab = match self.tab {
                    Tab::Files => Tab::Map,
                    Tab::Map => Tab::Disks,
                    Tab::Disks => Tab::Files,
                }
            }
            Key::Pause => self.paused = !self.paused,
        }
    }

    /// Moves the selection. It follows its file when the order of files changes.
    fn select(&mut self, shown: &LiveSnapshot, next: impl Fn(usize) -> usize) {
        let index = self.selected_index(shown);
        let wanted = next(index).min(shown.files.len().saturating_sub(1));
        self.selected = shown.files.get(wanted).map(|file| file.file_id);
    }

    /// Returns which line is selected; the first, unless one was chosen and is still there.
    pub(super) fn selected_index(&self, shown: &LiveSnapshot) -> usize {
        let chosen = self.selected;
        let index = shown
            .files
            .iter()
            .position(|file| Some(file.file_id) == chosen);
        index.unwrap_or(0)
    }
}
