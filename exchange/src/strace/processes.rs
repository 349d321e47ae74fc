//! Processes, threads, which descriptors they share, and what each descriptor refers to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The most descriptors of all processes together. A server has some thousands.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// An open file; `dup` and `fork` share it, including its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenFile {
    pub(super) path: String,
    /// `None` if unknown.
    pub(super) position: Option<u64>,
    pub(super) append: bool,
    pub(super) direct: bool,
}

/// The state of a descriptor.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) file: Rc<RefCell<OpenFile>>,
    pub(super) close_on_exec: bool,
}

type Descriptors = Rc<RefCell<HashMap<i64, Slot>>>;

#[derive(Debug, Clone, Default)]
struct Thread {
    pid: u32,
    descriptors: Descriptors,
}

/// All processes known.
#[derive(Debug, Default)]
pub(super) struct Processes {
    threads: HashMap<u32, Thread>,
    /// The latest unfinished call that creates a thread or process: its caller, and what is shared.
    forking: Option<(u32, Sharing)>,
    /// Slots ever taken and not released; an upper bound.
    slots: usize,
}

/// What a new thread shares with its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sharing {
    /// Whether it is in the same process.
    thread: bool,
    descriptors: bool,
}

impl Sharing {
    /// Parses the text of a `clone`, `clone3`, `fork` or `vfork`.
    pub(super) fn of(text: &str) -> Self {
        let thread = text.contains("CLONE_THREAD");
        Self {
            thread,
            descriptors: thread || text.contains("CLONE_FILES"),
        }
    }
}

/// Calls that create threads.
pub(super) const FORKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

impl Processes {
    /// Notes the start of a call that other lines interrupt: its child may print before it returns.
    pub(super) fn may_fork(&mut self, tid: u32, text: &str) {
        if FORKS.contains(&super::syntax::name_of(text)) {
            self.forking = Some((tid, Sharing::of(text)));
        }
    }

    /// Notes that a thread was created.
    pub(super) fn forked(&mut self, parent: u32, child: u32, sharing: Sharing) {
        if self.forking.is_some_and(|(tid, _)| tid == parent) {
            self.forking = None;
        }
        if !self.threads.contains_key(&child) {
            self.add_child(parent, child, sharing);
        }
    }

    fn add_child(&mut self, parent: u32, child: u32, sharing: Sharing) {
        let parent = self.thread(parent).clone();
        let thread = if sharing.descriptors {
            parent.descriptors
        } else {
            let copy = parent.descriptors.borrow().clone();
            self.slots += copy.len();
            Rc::new(RefCell::new(copy))
        };
        let pid = if sharing.thread { parent.pid } else { child };
        self.threads.insert(
            child,
            Thread {
                pid,
                descriptors: thread,
            },
        );
    }

    /// Returns a thread, known or new. The first thread to be named is the one that was nameless
    /// before.
    fn thread(&mut self, tid: u32) -> &mut Thread {
        if !self.threads.contains_key(&tid) {
            if let Some((parent, sharing)) = self.forking.take() {
                self.add_child(parent, tid, sharing);
            } else if let Some(nameless) = self.threads.remove(&0) {
                self.threads.insert(
                    tid,
                    Thread {
                        pid: tid,
                        ..nameless
                    },
                );
            }
        }
        self.threads.entry(tid).or_insert_with(|| Thread {
            pid: tid,
            ..Thread::default()
        })
    }

    /// Returns the process of a thread.
    pub(super) fn pid(&mut self, tid: u32) -> u32 {
        self.thread(tid).pid
    }

    pub(super) fn ended(&mut self, tid: u32) {
        if let Some(thread) = self.threads.remove(&tid)
            && Rc::strong_count(&thread.descriptors) == 1
        {
            self.slots = self.slots.saturating_sub(thread.descriptors.borrow().len());
        }
    }

    pub(super) fn slot(&mut self, tid: u32, descriptor: i64) -> Option<Slot> {
        let thread = self.thread(tid);
        thread.descriptors.borrow().get(&descriptor).cloned()
    }

    /// Sets what a descriptor refers to from now on. Returns false if there are too many.
    pub(super) fn set(&mut self, tid: u32, descriptor: i64, slot: Slot) -> bool {
        if self.slots >= DESCRIPTORS_MAX {
            return false;
        }
        let thread = self.thread(tid);
        let old = thread.descriptors.borrow_mut().insert(descriptor, slot);
        self.slots += usize::from(old.is_none());
        true
    }

    pub(super) fn close(&mut self, tid: u32, descriptor: i64) {
        let thread = self.thread(tid);
        let old = thread.descriptors.borrow_mut().remove(&descriptor);
        self.slots -= usize::from(old.is_some()).min(self.slots);
    }

    /// Notes that the process started a program.
    pub(super) fn executed(&mut self, tid: u32) {
        let thread = self.thread(tid);
        thread
            .descriptors
            .borrow_mut()
            .retain(|_, slot| !slot.close_on_exec);
    }
}
