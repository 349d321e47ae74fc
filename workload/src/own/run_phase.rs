//! Runs a phase's roles at the same time.
//!
//! Each role is a workload with its own schedule, on its own threads: so a role that the server slows down
//! takes no arrivals from another, and each has its own seconds. All begin at the same time; their results
//! arrive on the caller's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use seekscope_client::{ClientError, ClientSpec, Ended, Job, Second, Workload, run};
use seekscope_run::clock::monotonic_ns;

/// Time for all roles to connect; otherwise their first operations begin late together.
const HEAD_START: Duration = Duration::from_millis(100);
/// How often the caller's stop flag is checked.
const LOOK: Duration = Duration::from_millis(50);

/// A role to run.
#[derive(Debug)]
pub struct RoleRun<'a> {
    pub workload: &'a dyn Workload,
    pub job: Job,
    /// Stops when all others have ended.
    pub background: bool,
}

enum Event {
    Second(Second),
    Ended(Result<Ended, ClientError>),
}

/// Runs the roles until all have ended; the result has one entry for each, `None` for one in the background
/// that did not begin before the others ended. `each` gets the role's index and its second. A role that
/// cannot begin ends the others, and its error is the result.
pub fn run_phase(
    client: &ClientSpec,
    roles: &[RoleRun<'_>],
    stop: &AtomicBool,
    each: &mut dyn FnMut(usize, Second),
) -> Result<Vec<Option<Ended>>, ClientError> {
    let start_ns = monotonic_ns() + u64::try_from(HEAD_START.as_nanos()).unwrap_or(0);
    let flags: Vec<AtomicBool> = roles.iter().map(|_| AtomicBool::new(false)).collect();
    let (sender, events) = mpsc::channel();
    thread::scope(|scope| {
        for (place, (role, flag)) in roles.iter().zip(&flags).enumerate() {
            let sender = sender.clone();
            let start_ns = role
                .job
                .start_at_ns
                .or((roles.len() > 1).then_some(start_ns));
            scope.spawn(move || run_role(client, role, start_ns, flag, place, &sender));
        }
        drop(sender);
        let stop_all = || {
            flags
                .iter()
                .for_each(|flag| flag.store(true, Ordering::Relaxed))
        };
        let mut ended: Vec<Option<Ended>> = roles.iter().map(|_| None).collect();
        let mut failure = None;
        loop {
            match events.recv_timeout(LOOK) {
                Ok((place, Event::Second(second))) => each(place, second),
                Ok((place, Event::Ended(Ok(end)))) => {
                    ended[place] = Some(end);
                    let mut others = roles
                        .iter()
                        .zip(&ended)
                        .filter(|(role, _)| !role.background);
                    if others.all(|(_, end)| end.is_some()) {
                        stop_all();
                    }
                }
                Ok((place, Event::Ended(Err(ClientError::Stopped))))
                    if roles[place].background && !stop.load(Ordering::Relaxed) => {}
                Ok((_, Event::Ended(Err(error)))) => {
                    failure.get_or_insert(error);
                    stop_all();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stop.load(Ordering::Relaxed) {
                stop_all();
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(ended),
        }
    })
}

fn run_role(
    client: &ClientSpec,
    role: &RoleRun<'_>,
    start_ns: Option<u64>,
    flag: &AtomicBool,
    place: usize,
    sender: &Sender<(usize, Event)>,
) {
    let job = Job {
        start_at_ns: start_ns,
        ..role.job.clone()
    };
    // The receiver lives until all senders are gone.
    let ended = run(client, role.workload, &job, flag, &mut |second| {
        let _ = sender.send((place, Event::Second(second)));
    });
    let _ = sender.send((place, Event::Ended(ended)));
}
