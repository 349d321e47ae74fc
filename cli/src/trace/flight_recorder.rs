//! `seekscope trace --ring`: keeps the last seconds in memory and writes them down when something happens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use seekscope_run::units::nanoseconds;
use seekscope_run::{FileRecord, IoEvent, ThreadRecord};
use seekscope_trace::{EventSink, SinkError};

/// State shared by the recorder and those who control it.
#[derive(Debug, Default)]
pub struct FlightState {
    /// Write down what is held, at the next drain.
    pub dump: AtomicBool,
    /// Number of times that was done.
    pub dumps: AtomicU64,
    /// Number of events displaced by newer ones.
    pub overwritten: AtomicU64,
    /// Number of events in memory.
    pub held: AtomicU64,
    /// Number of displaced events that were younger than the time asked for: the memory was too small.
    pub too_young: AtomicU64,
}

/// Holds events and passes them on when asked, or when a call was slow.
pub struct FlightRecorder<S> {
    inner: S,
    state: Arc<FlightState>,
    held: VecDeque<IoEvent>,
    events_max: usize,
    span_ns: u64,
    slow_ns: Option<u64>,
}

impl<S: EventSink> FlightRecorder<S> {
    /// Holds the events of the last `span`, in at most `memory_bytes`.
    pub fn new(inner: S, span: Duration, memory_bytes: u64, slow: Option<Duration>) -> Self {
        let events = memory_bytes / size_of::<IoEvent>() as u64;
        Self {
            inner,
            state: Arc::default(),
            held: VecDeque::new(),
            events_max: usize::try_from(events).unwrap_or(usize::MAX).max(1),
            span_ns: nanoseconds(span),
            slow_ns: slow.map(nanoseconds),
        }
    }

    pub fn state(&self) -> Arc<FlightState> {
        Arc::clone(&self.state)
    }

    fn forget_old(&mut self, now_ns: u64) {
        while let Some(oldest) = self.held.front() {
            let age_ns = now_ns.saturating_sub(oldest.t_ns);
            if age_ns <= self.span_ns && self.held.len() <= self.events_max {
                return;
            }
            self.held.pop_front();
            self.state.overwritten.fetch_add(1, Ordering::Relaxed);
            if age_ns <= self.span_ns {
                self.state.too_young.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn write_down(&mut self) -> Result<(), SinkError> {
        self.state.dumps.fetch_add(1, Ordering::Relaxed);
        for event in self.held.drain(..) {
            self.inner.event(&event)?;
        }
        Ok(())
    }
}

impl<S: EventSink> EventSink for FlightRecorder<S> {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.held.push_back(*event);
        self.forget_old(event.t_ns);
        if self.slow_ns.is_some_and(|slow| event.latency_ns >= slow) {
            self.state.dump.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.inner.file(file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        self.inner.thread(thread)
    }

    fn lost(&mut self, events: u64) {
        self.inner.lost(events);
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        if self.state.dump.swap(false, Ordering::Relaxed) {
            self.write_down()?;
        }
        let held = self.held.len() as u64;
        self.state.held.store(held, Ordering::Relaxed);
        self.inner.drained()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use seekscope_run::{IoFlags, IoOp};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u64>>>);

    impl EventSink for Written {
        fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
            self.0.lock().unwrap().push(event.t_ns);
            Ok(())
        }
        fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
            Ok(())
        }
    }

    fn event(t_ns: u64, latency_ns: u64) -> IoEvent {
        IoEvent {
            t_ns,
            pid: 1,
            tid: 1,
            file_id: 0,
            op: IoOp::Pread,
            flags: IoFlags::default(),
            offset: Some(0),
            length: 1,
            latency_ns,
            result: 1,
            device_read_bytes: 0,
            request: None,
        }
    }

    #[test]
    fn the_last_nanoseconds_are_written_when_a_call_is_slow() {
        let written = Written::default();
        let slow = Some(Duration::from_nanos(50));
        let mut recorder =
            FlightRecorder::new(written.clone(), Duration::from_nanos(30), 1 << 20, slow);
        let state = recorder.state();
        for t_ns in [0, 10, 20, 40, 50] {
            recorder.event(&event(t_ns, 1)).unwrap();
        }
        recorder.drained().unwrap();
        assert!(written.0.lock().unwrap().is_empty());
        recorder.event(&event(55, 50)).unwrap();
        recorder.drained().unwrap();
        assert_eq!(*written.0.lock().unwrap(), [40, 50, 55]);
        assert_eq!(state.overwritten.load(Ordering::Relaxed), 3);
        assert_eq!(state.too_young.load(Ordering::Relaxed), 0);
        recorder.event(&event(60, 1)).unwrap();
        state.dump.store(true, Ordering::Relaxed);
        recorder.drained().unwrap();
        assert_eq!(
            *written.0.lock().unwrap(),
            [40, 50, 55, 60],
            "nothing twice"
        );
        assert_eq!(state.dumps.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn memory_is_bounded_and_a_short_memory_is_told() {
        let room = 10 * size_of::<IoEvent>() as u64;
        let mut recorder =
            FlightRecorder::new(Written::default(), Duration::from_secs(9), room, None);
        (0..25).for_each(|t_ns| recorder.event(&event(t_ns, 1)).unwrap());
        recorder.drained().unwrap();
        let state = recorder.state();
        assert_eq!(state.held.load(Ordering::Relaxed), 10);
        assert_eq!(state.too_young.load(Ordering::Relaxed), 15);
    }
}
