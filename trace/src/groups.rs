//! The kinds of I/O that can be followed, and the hooks through which this kernel allows it.
//!
//! Each group other than the plain calls is a separate set of kernel programs (`bpf/*.h`). Which
//! variant fits is read from the kernel's type information, not from its version. Whether it loads
//! is found by loading everything together, because each load reads the kernel's types again, which
//! takes more CPU time than the programs themselves; only if that fails is each group tried alone.
//! A group that does not fit or load is left out, with the reason in the trailer, and never keeps
//! the others from running.

mod attach;
mod functions;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Typedef};
use seekscope_run::{BLOCK_REQUESTS, TraceCoverage};

use crate::loader::{AT_FOLLOWED_CALLS, Backend};

pub(crate) use attach::{attach, in_flight, programs, select};

/// The reason for a group that nobody asked for; it is not a limitation of the host.
pub(crate) const NOT_ASKED_FOR: &str = "not asked for";

/// A kind of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// System calls on open files. Always followed.
    Calls,
    /// Requests through io_uring.
    Uring,
    /// Linux native asynchronous I/O (`io_submit`), which libaio wraps.
    Aio,
    /// Major faults of mapped files.
    Faults,
    /// Requests of disks.
    Block,
}

impl Group {
    /// Those that the calls of a database go through: it maps no data files and does not use libaio.
    pub const OF_DATABASES: [Self; 2] = [Self::Calls, Self::Uring];
    /// All groups.
    pub const ALL: [Self; 5] = [
        Self::Calls,
        Self::Uring,
        Self::Aio,
        Self::Faults,
        Self::Block,
    ];

    /// Returns the group's name in the trailer.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "read and write calls",
            Self::Uring => "io_uring",
            Self::Aio => "libaio",
            Self::Faults => "faults of mapped files",
            Self::Block => BLOCK_REQUESTS,
        }
    }

    /// Returns the table in which its kernel programs keep what has begun and not ended.
    fn table(self) -> Option<&'static str> {
        match self {
            Self::Calls => None,
            Self::Uring => Some("seekscope_uring"),
            Self::Aio => Some("seekscope_aio"),
            Self::Faults => Some("seekscope_fault"),
            Self::Block => Some("seekscope_block"),
        }
    }
}

/// One way to follow a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hooks {
    pub(crate) group: Group,
    /// Names of the kernel programs.
    pub(crate) programs: &'static [&'static str],
    /// Description for the trailer.
    pub(crate) how: &'static str,
}

/// The plain calls, with each [`Backend`]; these programs run at every system call of the host.
const CALLS: Hooks = Hooks {
    group: Group::Calls,
    programs: &["seekscope_enter", "seekscope_exit"],
    how: "tp_btf sys_enter and sys_exit",
};
const CALLS_AND_AIO: Hooks = Hooks {
    programs: &["seekscope_enter_with_aio", "seekscope_exit_with_aio"],
    ..CALLS
};
/// These run at the followed calls only.
const CALLS_BY_TRACEPOINT: Hooks = Hooks {
    programs: AT_FOLLOWED_CALLS,
    how: "classic tracepoints of these calls",
    ..CALLS
};

const BLOCK: Hooks = Hooks {
    group: Group::Block,
    programs: &[
        "seekscope_bio",
        "seekscope_issue",
        "seekscope_back",
        "seekscope_compl",
    ],
    how: "tp_btf block_rq_issue and block_rq_complete; files of direct I/O by block_bio_queue",
};
/// The hooks for kernels where both tracepoints name the queue before the request.
const BLOCK_QUEUE_FIRST: Hooks = Hooks {
    programs: &[
        "seekscope_bio2",
        "seekscope_issue2",
        "seekscope_back2",
        "seekscope_compl",
    ],
    ..BLOCK
};
/// The hooks for kernels where one of them does: later versions of Linux 5.10.
const BLOCK_MIXED: Hooks = Hooks {
    programs: &[
        "seekscope_bio2",
        "seekscope_issue",
        "seekscope_back",
        "seekscope_compl",
    ],
    ..BLOCK
};
const URING: Hooks = Hooks {
    group: Group::Uring,
    programs: &["seekscope_sub_r", "seekscope_cqe"],
    how: "tp_btf io_uring_submit_req and io_uring_complete",
};
const URING_BY_VALUE: Hooks = Hooks {
    programs: &["seekscope_sub_r", "seekscope_cqe_v"],
    ..URING
};
const URING_SQE: Hooks = Hooks {
    group: Group::Uring,
    programs: &["seekscope_sub_s", "seekscope_cqe_v"],
    how: "tp_btf io_uring_submit_sqe and io_uring_complete",
};
const AIO: Hooks = Hooks {
    group: Group::Aio,
    programs: &["seekscope_aio_e", "seekscope_aio_x"],
    how: "io_submit and io_getevents (latency until collected; results collected without a call are not seen)",
};
const FAULTS: Hooks = Hooks {
    group: Group::Faults,
    programs: &["seekscope_flt_e", "seekscope_flt_x"],
    how: "fentry and fexit filemap_fault",
};
const FAULTS_BY_EVENT: Hooks = Hooks {
    group: Group::Faults,
    programs: &["seekscope_flt_t", "seekscope_flt_m"],
    how: "tp_btf mm_filemap_fault and the software event of major faults",
};

/// The arguments that a tracepoint passes to programs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prototype {
    arguments: usize,
    /// The structure that the first argument points to; empty if it points to something else.
    first: String,
}

/// What this kernel offers, according to its type information.
trait Kernel {
    fn tracepoint(&self, name: &str) -> Option<Prototype>;
    /// Checks whether a program can be attached to a function's entry; the error says why not.
    fn lets_programs_at(&self, function: &str) -> Result<(), String>;
}

impl Kernel for Btf<'_> {
    fn tracepoint(&self, name: &str) -> Option<Prototype> {
        let named: Typedef<'_> = self.type_by_name(&format!("btf_trace_{name}"))?;
        let prototype = FuncProto::try_from(named.next_type()?.next_type()?).ok()?;
        // The first parameter belongs to the program itself.
        let first = prototype.get(1).and_then(|parameter| {
            let pointer: Ptr<'_> = self.type_by_id(parameter.ty)?;
            let name = pointer.next_type()?.name()?;
            Some(name.to_string_lossy().into_owned())
        });
        Some(Prototype {
            arguments: prototype.len().saturating_sub(1),
            first: first.unwrap_or_default(),
        })
    }

    fn lets_programs_at(&self, function: &str) -> Result<(), String> {
        let known: Option<Func<'_>> = self.type_by_name(function);
        let known = known.ok_or("the kernel has no such function in its types")?;
        functions::try_entry_of(known.type_id()).map_err(|error| error.to_string())
    }
}

/// Chooses how to follow a group on this kernel. Returns the hooks and what the trailer says about
/// them; the error says why the group cannot be followed.
fn choose(group: Group, kernel: &dyn Kernel) -> Result<(Hooks, String), String> {
    let hooks = match group {
        Group::Calls => return Err("they have their own tracing programs".into()),
        Group::Faults => return faults(kernel),
        Group::Aio => AIO,
        Group::Block => block(kernel)?,
        Group::Uring => uring(kernel)?,
    };
    Ok((hooks, hooks.how.into()))
}

fn block(kernel: &dyn Kernel) -> Result<Hooks, &'static str> {
    let arguments = |name| kernel.tracepoint(name).map(|form| form.arguments);
    match (arguments("block_rq_issue"), arguments("block_bio_queue")) {
        (Some(1), Some(1)) => Ok(BLOCK),
        (Some(1), Some(2)) => Ok(BLOCK_MIXED),
        (Some(2), Some(2)) => Ok(BLOCK_QUEUE_FIRST),
        _ => {
            Err("the kernel's tracepoints block_rq_issue and block_bio_queue have an unknown form")
        }
    }
}

fn uring(kernel: &dyn Kernel) -> Result<Hooks, &'static str> {
    let takes_request = |name| {
        kernel
            .tracepoint(name)
            .is_some_and(|form| form.first == "io_kiocb")
    };
    let by_value = match kernel.tracepoint("io_uring_complete") {
        Some(Prototype { arguments: 3, .. }) => false,
        Some(Prototype { arguments: 7, .. }) => true,
        _ => {
            return Err(
                "the tracepoints of io_uring identify the request only on Linux 6.0 and later",
            );
        }
    };
    if takes_request("io_uring_submit_req") {
        Ok(if by_value { URING_BY_VALUE } else { URING })
    } else if by_value && takes_request("io_uring_submit_sqe") {
        Ok(URING_SQE)
    } else {
        Err("the tracepoints of io_uring identify the request only on Linux 6.0 and later")
    }
}

/// The function's entry and exit tell more; if programs are not allowed there, the tracepoint is
/// used.
fn faults(kernel: &dyn Kernel) -> Result<(Hooks, String), String> {
    let why = match kernel.lets_programs_at("filemap_fault") {
        Ok(()) => return Ok((FAULTS, FAULTS.how.into())),
        Err(why) => format!("{} did not load ({why})", FAULTS.how),
    };
    match kernel.tracepoint("mm_filemap_fault") {
        Some(_) => Ok((FAULTS_BY_EVENT, format!("{}; {why}", FAULTS_BY_EVENT.how))),
        None => Err(format!("{why}, and the kernel has no tracepoint for it")),
    }
}

/// What to load, and what the trailer says about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) hooks: Vec<Hooks>,
    pub(crate) coverage: Vec<TraceCoverage>,
}

impl Plan {
    /// Chooses the hooks of the requested groups.
    pub(crate) fn make(groups: &[Group]) -> Self {
        let mut plan = Self::default();
        // Read only if needed: the kernel's types are megabytes.
        let types = if groups.iter().any(|group| *group != Group::Calls) {
            Btf::from_vmlinux().map_err(|error| error.to_string())
        } else {
            Err(String::new())
        };
        for group in Group::ALL.into_iter().filter(|g| *g != Group::Calls) {
            let found = match &types {
                _ if !groups.contains(&group) => Err(NOT_ASKED_FOR.into()),
                Ok(types) => choose(group, types),
                Err(error) => Err(error.clone()),
            };
            plan.add(group, found);
        }
        plan
    }

    /// Returns whether a group is followed.
    pub(crate) fn has(&self, group: Group) -> bool {
        self.hooks.iter().any(|hooks| hooks.group == group)
    }

    /// Returns the hooks of the plain calls. Where those programs can see to the calls of libaio as well, that group
    /// is left without programs of its own: a second pair would run at every system call of every process.
    pub(crate) fn hooks_of_calls(&mut self, backend: Backend) -> Hooks {
        let aio = self.hooks.iter_mut().find(|h| h.group == Group::Aio);
        match (backend, aio) {
            (Backend::Tracepoint, _) => CALLS_BY_TRACEPOINT,
            (Backend::TpBtf, None) => CALLS,
            (Backend::TpBtf, Some(aio)) => {
                aio.programs = &[];
                CALLS_AND_AIO
            }
        }
    }

    fn add(&mut self, group: Group, found: Result<(Hooks, String), String>) {
        let covered = found.is_ok();
        let how = match found {
            Ok((hooks, how)) => {
                self.hooks.push(hooks);
                how
            }
            Err(why) => why,
        };
        self.coverage.push(TraceCoverage {
            group: group.name().into(),
            covered,
            how,
        });
    }

    /// Tries each group alone, after they failed to load together, and drops those that fail.
    /// Returns whether there were any.
    pub(crate) fn drop_failing(&mut self, probe: impl Fn(&Hooks) -> Result<(), String>) -> bool {
        let failing: Vec<(Group, String)> = self
            .hooks
            .iter()
            .filter_map(|hooks| Some((hooks.group, failure_of(hooks, &probe)?)))
            .collect();
        let any = !failing.is_empty();
        for (group, why) in failing {
            self.drop_group(group, why);
        }
        any
    }

    /// Drops a group that did not load, or could not be attached although it loaded.
    pub(crate) fn drop_group(&mut self, group: Group, why: String) {
        self.hooks.retain(|hooks| hooks.group != group);
        for entry in &mut self.coverage {
            if entry.group == group.name() {
                entry.covered = false;
                entry.how.clone_from(&why);
            }
        }
    }
}

/// Returns why these hooks do not load alone; `None` if they do.
fn failure_of(hooks: &Hooks, probe: &impl Fn(&Hooks) -> Result<(), String>) -> Option<String> {
    let why = probe(hooks).err()?;
    Some(format!("{} did not load ({why})", hooks.how))
}

#[cfg(test)]
mod tests;
