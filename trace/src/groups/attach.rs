//! Attaching the chosen groups.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::{
    ErrorExt, Link, MapCore, MapFlags, Object, OpenObject, Program, ProgramMut, ProgramType,
};

use super::{Group, Hooks};

/// Entries of a table read at a time when a trace ends.
const ENTRIES_PER_BATCH: u32 = 4096;

/// The tables that [`Group::Block`] keeps besides the requests themselves.
const BLOCK_TABLES: [&str; 3] = [
    "seekscope_direct",
    "seekscope_pieces",
    "seekscope_request_counts",
];

/// The programs that follow children, and that count the host's calls; they belong to no hooks.
const OF_NO_HOOKS: [&str; 3] = ["seekscope_fork", "seekscope_exec", "seekscope_tally"];

/// Disables the programs and tables of all hooks but the chosen ones.
pub(crate) fn select(object: &mut OpenObject, hooks: &[Hooks]) -> libbpf_rs::Result<()> {
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if !OF_NO_HOOKS.contains(&name.as_str()) {
            program.set_autoload(hooks.iter().any(|h| h.programs.contains(&name.as_str())));
        }
    }
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let chosen = |group: Group| hooks.iter().any(|hooks| hooks.group == group);
        if BLOCK_TABLES.contains(&&*name) {
            map.set_autocreate(chosen(Group::Block))?;
        } else if let Some(group) = Group::ALL.into_iter().find(|g| g.table() == Some(&*name)) {
            map.set_autocreate(chosen(group))?;
        }
    }
    Ok(())
}

/// Attaches the programs of one set of hooks.
pub(crate) fn attach(object: &Object, hooks: &Hooks) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy();
        if !hooks.programs.contains(&&*name) {
            continue;
        }
        if program.prog_type() == ProgramType::PerfEvent {
            links.extend(attach_to_major_faults(&program)?);
        } else {
            links.push(program.attach()?);
        }
    }
    Ok(links)
}

/// Attaches the program. The event is counted per CPU; a CPU that comes online later is missed.
fn attach_to_major_faults(program: &ProgramMut<'_>) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    let mut failure = None;
    for cpu in 0..libbpf_rs::num_possible_cpus()? {
        match major_fault_event(cpu) {
            Ok(event) => {
                links.push(program.attach_perf_event(event.as_raw_fd())?);
                // From here on the link closes it.
                let _ = event.into_raw_fd();
            }
            // The CPU is offline.
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if links.is_empty() => {
            Err(libbpf_rs::Error::from(error)).context("the software event for major faults")
        }
        _ => Ok(links),
    }
}

/// Opens the software event on one CPU, for all processes, firing at each fault.
fn major_fault_event(cpu: usize) -> io::Result<OwnedFd> {
    let mut attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        config: u64::from(libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
        ..Default::default()
    };
    attributes.size = u32::try_from(size_of_val(&attributes)).map_err(io::Error::other)?;
    attributes.__bindgen_anon_1.sample_period = 1;
    let (all_processes, no_group) = (-1, -1);
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: perf_event_open(2) reads `size` bytes of a structure that outlives the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            all_processes,
            cpu,
            no_group,
            libbpf_sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: a descriptor just made, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the programs of the chosen hooks.
pub(crate) fn programs<'a>(
    object: &'a Object,
    hooks: &'a [Hooks],
) -> impl Iterator<Item = Program<'a>> {
    object.progs().filter(|program| {
        let name = program.name().to_string_lossy();
        hooks.iter().any(|hooks| hooks.programs.contains(&&*name))
    })
}

/// Returns the I/Os of the groups that began and have not ended. Meaningful once tracing is off.
/// Faults are left out, because their table also holds minor ones.
pub(crate) fn in_flight(object: &Object, hooks: &[Hooks]) -> u64 {
    let counted = |name: &str| {
        hooks
            .iter()
            .any(|hooks| hooks.group != Group::Faults && hooks.group.table() == Some(name))
    };
    object
        .maps()
        .filter(|map| counted(&map.name().to_string_lossy()))
        .filter_map(|map| {
            let entries = map.lookup_batch(ENTRIES_PER_BATCH, MapFlags::ANY, MapFlags::ANY);
            Some(entries.ok()?.count() as u64)
        })
        .sum()
}
