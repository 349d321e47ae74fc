//! Behaviour of the old program that was a fault but that a script may rely on. All off by default;
//! the command line has a flag of the same name (with hyphens) for each.

/// The faults of the old program to reproduce.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompatOptions {
    /// MB/sec in the sample lines is operations × 4096 bytes, whatever was transferred.
    pub mongoperf_mbs: bool,
    /// Sampling continues with all threads until interrupted, instead of ending after eight
    /// samples.
    pub forever: bool,
    /// The test file is named `mongoperf__testfile__tmp` and stays. Unlike the old program, this
    /// one refuses if a file of that name exists.
    pub keep_file: bool,
    /// The file, and what is written to it, is all zeros: compressible and repetitive.
    pub zero_fill: bool,
    /// Each thread sleeps sleepMicros divided by the number of running threads, so that the load
    /// grows with the square of the number of threads.
    pub sleep_shared: bool,
    /// If direct I/O is impossible, the page cache is measured instead, with a notice.
    pub allow_cached: bool,
    /// With mmf, the kernel may read ahead around each fault according to the device's setting;
    /// otherwise it is advised that accesses are random.
    pub read_around: bool,
    /// Offsets and data are a function of this seed; otherwise they differ from run to run.
    pub fixed_seed: Option<u64>,
    /// nThreads 0 ends the program with success after its complaint.
    pub zero_threads_ok: bool,
    /// Measures even if a database is running in the directory.
    pub next_to_database: bool,
}
