//! Processors that never sleep.
//!
//! Whoever sends to a thread on a sleeping processor pays for its waking: under a hypervisor several
//! times what the operation costs, by the same amount for every tool. A thread that spins on each
//! processor at idle priority, which gives way to all others at once, takes that out of the comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, ensure};

/// Keeps all processors awake until it is dropped.
#[derive(Debug)]
pub(crate) struct Awake {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    pub(crate) fn keep() -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let mut awake = Self {
            over,
            threads: Vec::new(),
        };
        for _ in 0..std::thread::available_parallelism()?.get() {
            let over = Arc::clone(&awake.over);
            let (said, told) = std::sync::mpsc::channel();
            awake.threads.push(std::thread::spawn(move || {
                let is_idle = at_idle_priority();
                if said.send(is_idle).is_ok() && is_idle {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            }));
            ensure!(
                told.recv()?,
                "SCHED_IDLE: {}",
                std::io::Error::last_os_error()
            );
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Gives the calling thread idle priority; returns whether that succeeded.
fn at_idle_priority() -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a local of the type that the call reads; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) == 0 }
}
