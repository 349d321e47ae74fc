//! A trace that runs alongside the caller, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use seekscope_run::TraceFacts;

use crate::cost;
use crate::error::TraceError;
use crate::source::{EventSink, EventSource};

type Sink = Box<dyn EventSink + Send>;
type Outcome = Result<(TraceFacts, Sink), TraceError>;

const RUNNING: u8 = 0;
/// Collect the rest and write the trailer.
const STOP: u8 = 1;
/// Detach and end; nobody will read the rest.
const ABANDON: u8 = 2;

/// A running trace. Dropping it detaches everything from the kernel before `drop` returns, so an
/// interrupted command leaves nothing behind; [`Recording::stop`] is the orderly end.
pub struct Recording {
    order: Arc<AtomicU8>,
    reader: Option<JoinHandle<Outcome>>,
}

impl Recording {
    /// Starts handing `source`'s events to `sink`. If the thread cannot be started, [`stop`]
    /// reports it.
    ///
    /// [`stop`]: Recording::stop
    pub fn start(source: Box<dyn EventSource>, sink: Box<dyn EventSink + Send>) -> Recording {
        let order = Arc::new(AtomicU8::new(RUNNING));
        let theirs = Arc::clone(&order);
        let reader = std::thread::Builder::new()
            .name("trace-reader".into())
            .spawn(move || read(source, sink, &theirs));
        match reader {
            Ok(reader) => Recording {
                order,
                reader: Some(reader),
            },
            Err(_) => Recording {
                order,
                reader: None,
            },
        }
    }

    /// Returns whether the reader has ended by itself, which it does only on an error.
    /// [`Recording::stop`] then returns that error.
    pub fn has_failed(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the trace: collects the rest and returns the trailer and the sink.
    ///
    /// # Errors
    /// Any error that ended the trace early, or occurred at its end. The programs are detached
    /// either way.
    pub fn stop(mut self) -> Result<(TraceFacts, Box<dyn EventSink + Send>), TraceError> {
        self.end(STOP)
    }

    fn end(&mut self, order: u8) -> Outcome {
        self.order.store(order, Ordering::Release);
        let reader = self.reader.take().ok_or_else(|| TraceError::Reader {
            why: "the operating system refused to create a thread".into(),
        })?;
        reader.join().unwrap_or_else(|_| {
            Err(TraceError::Reader {
                why: "it panicked; please report this".into(),
            })
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.reader.is_some() {
            // The events are not wanted, nor any error.
            let _ = self.end(ABANDON);
        }
    }
}

/// Runs the reader thread. `source` lives here, so that the programs are detached when it ends.
fn read(mut source: Box<dyn EventSource>, mut sink: Sink, order: &AtomicU8) -> Outcome {
    while order.load(Ordering::Acquire) == RUNNING {
        source.wait();
        if source.drain(sink.as_mut())? > 0 {
            sink.drained().map_err(TraceError::Sink)?;
        }
    }
    if order.load(Ordering::Acquire) == ABANDON {
        return Err(TraceError::Reader {
            why: "the trace was abandoned".into(),
        });
    }
    let before_stop_ns = cost::thread_cpu_ns();
    source.stop();
    let stop_ns = cost::thread_cpu_ns() - before_stop_ns;
    let mut facts = source.finish(sink.as_mut())?;
    sink.drained().map_err(TraceError::Sink)?;
    cost::add_reader(&mut facts, cost::thread_cpu_ns() - stop_ns);
    Ok((facts, sink))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use seekscope_run::{FileRecord, IoEvent, IoFlags, IoOp};

    use super::*;
    use crate::error::SinkError;
    use crate::replay::VecSource;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<IoEvent>>>);

    impl EventSink for Shared {
        fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
            self.0.lock().unwrap().push(*event);
            Ok(())
        }
        fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
            Ok(())
        }
    }

    struct FullDisk;

    impl EventSink for FullDisk {
        fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
            Err("no space left".into())
        }
        fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
            Ok(())
        }
    }

    struct Endless(Sender<()>);

    impl EventSource for Endless {
        fn drain(&mut self, _: &mut dyn EventSink) -> Result<usize, TraceError> {
            Ok(0)
        }
        fn finish(&mut self, _: &mut dyn EventSink) -> Result<TraceFacts, TraceError> {
            Ok(TraceFacts::default())
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    fn events(count: u64) -> Vec<IoEvent> {
        let event = |i| IoEvent {
            t_ns: i,
            pid: 1,
            tid: 1,
            file_id: 1,
            op: IoOp::Read,
            flags: IoFlags::default(),
            offset: Some(i),
            length: 1,
            latency_ns: 1,
            result: 1,
            device_read_bytes: 0,
            request: None,
        };
        (0..count).map(event).collect()
    }

    #[test]
    fn stop_hands_over_everything_in_order() {
        let given = events(1000);
        let sink = Shared::default();
        let source = VecSource::new(Vec::new(), given.clone(), 7);
        let (facts, _) = Recording::start(Box::new(source), Box::new(sink.clone()))
            .stop()
            .unwrap();
        assert_eq!((facts.seen, facts.written, facts.lost), (1000, 1000, 0));
        assert!(facts.cost.drain_cpu_ns > 0);
        assert_eq!(*sink.0.lock().unwrap(), given);
    }

    #[test]
    fn a_failing_sink_ends_the_trace_with_its_words() {
        let source = VecSource::new(Vec::new(), events(3), 0);
        let recording = Recording::start(Box::new(source), Box::new(FullDisk));
        let Err(error) = recording.stop() else {
            panic!("the failure was swallowed")
        };
        assert_eq!(
            error.to_string(),
            "cannot store trace events: no space left"
        );
    }

    #[test]
    fn drop_waits_until_the_source_is_gone() {
        let (sender, gone) = channel();
        drop(Recording::start(
            Box::new(Endless(sender)),
            Box::new(Shared::default()),
        ));
        gone.try_recv()
            .expect("the source must be dropped before drop returns");
    }
}
