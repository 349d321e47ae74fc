//! Deployments for tests: [`shared`] by all, or of a test's [`own`]; and what is made [`beforehand`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLockWriteGuard};

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::{Deployment, DeploymentOptions, MongoPrograms, Topology};
use seekscope_server::{LocalServer, Server, page_cache};

use crate::support::{load_documents, machine, runtime, shared_machine};

/// A deployment and its folder. Dropping it kills the servers and removes their data.
pub struct Running {
    // Dropped in this order: first the servers, then what they write to.
    deployment: Deployment,
    _folder: tempfile::TempDir,
}

/// One that tests share, or why there is none: what could not be started is not tried again.
type Shared = Arc<OnceLock<Result<Arc<Running>, String>>>;

/// All that tests share, until the process ends.
static SHARED: Mutex<BTreeMap<Topology, Shared>> = Mutex::new(BTreeMap::new());

/// The deployment that all tests of this topology use, started by the first.
pub fn shared(topology: Topology) -> Arc<Running> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // Statics are not dropped, and the servers' folders would stay.
        // SAFETY: the function may be called at any time, and touches nothing of the C library's.
        let registered = unsafe { libc::atexit(stop_shared) };
        assert_eq!(registered, 0);
    });
    // A test that wants one server does not wait for the start of another's cluster.
    let one = {
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(topology).or_default())
    };
    let one = one.get_or_init(|| {
        let options = DeploymentOptions::default();
        // On a busy host a start may fail, and it is not what the tests that share it are about.
        let started = start(topology, &options).or_else(|first| {
            let again = start(topology, &options);
            again.map_err(|second| format!("{first}\nOnce more: {second}"))
        });
        started.map(Arc::new)
    });
    one.clone().unwrap_or_else(|why| panic!("{why}"))
}

extern "C" fn stop_shared() {
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    all.clear();
}

/// A deployment for one test, with more on the command line of each mongod.
pub fn own(topology: Topology, mongod_arguments: &[&str]) -> Running {
    let options = DeploymentOptions {
        mongod_arguments: mongod_arguments.iter().map(OsString::from).collect(),
        ..DeploymentOptions::default()
    };
    own_with(topology, &options)
}

/// A deployment for one test with the data of one process elsewhere, in a folder that exists.
pub fn own_with_data_elsewhere(topology: Topology, member: &str, elsewhere: &Path) -> Running {
    let folder = folder();
    std::os::unix::fs::symlink(elsewhere, folder.path().join(member)).unwrap();
    let started = start_in(folder, topology, &DeploymentOptions::default());
    started.unwrap_or_else(|why| panic!("{why}"))
}

/// The same with all options.
pub fn own_with(topology: Topology, options: &DeploymentOptions) -> Running {
    start(topology, options).unwrap_or_else(|why| panic!("{why}"))
}

/// What a test makes while others run, and then the machine for itself alone: for tests that prepare for long and measure
/// for a short time. What was made may be some minutes old by then.
pub fn beforehand<T>(make: impl FnOnce() -> T) -> (RwLockWriteGuard<'static, ()>, T) {
    let made = {
        let _machine = shared_machine();
        make()
    };
    (machine(), made)
}

fn start(topology: Topology, options: &DeploymentOptions) -> Result<Running, String> {
    start_in(folder(), topology, options)
}

fn folder() -> tempfile::TempDir {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(parent).unwrap();
    tempfile::tempdir_in(parent).unwrap()
}

fn start_in(
    folder: tempfile::TempDir,
    topology: Topology,
    options: &DeploymentOptions,
) -> Result<Running, String> {
    let programs = programs();
    let deployment = Deployment::start(&programs, topology, options, folder.path());
    match runtime().block_on(deployment) {
        Ok(deployment) => Ok(Running {
            deployment,
            _folder: folder,
        }),
        Err(error) => Err(format!("{topology:?} was not started: {error:#}")),
    }
}

/// What is tested: named in the environment, else on PATH, else in seekscope's cache.
pub fn programs() -> MongoPrograms {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mongod = named("SEEKSCOPE_TEST_MONGOD")
        .or_else(|| {
            let path = std::env::var_os("PATH")?;
            let mut on_path = std::env::split_paths(&path).map(|folder| folder.join("mongod"));
            on_path.find(|mongod| mongod.exists())
        })
        .or_else(|| {
            let home = named("HOME")?;
            let versions = std::fs::read_dir(home.join(".cache/seekscope/mongod")).ok()?;
            let found = versions
                .flatten()
                .map(|version| version.path().join("mongod"));
            found.filter(|mongod| mongod.exists()).max()
        })
        .expect("a mongod: SEEKSCOPE_TEST_MONGOD names none, and none is on PATH or in the cache");
    MongoPrograms::find(&mongod, named("SEEKSCOPE_TEST_MONGOS")).unwrap()
}

impl Running {
    /// The connection string of its users, with the password if there is one.
    pub fn uri(&self) -> &str {
        self.deployment.uri()
    }

    /// A process: "standalone"; "member-0", …; "config", "shard-0", …, "mongos".
    pub fn member(&self, name: &str) -> &LocalServer {
        self.deployment.member(name).unwrap()
    }

    /// Names of all processes.
    pub fn members(&self) -> Vec<&str> {
        let members = self.deployment.members().iter();
        members.map(|member| member.name.as_str()).collect()
    }

    /// Returns the PID of the only process, or of the first.
    pub fn pid(&self) -> u32 {
        self.deployment.members()[0].process.pid()
    }

    /// Returns the data directory of the only process, or of the first.
    pub fn data_directory(&self) -> &Path {
        self.deployment.members()[0].process.data_directory()
    }

    /// Runs a command, which must succeed.
    pub fn command(&self, database: &str, command: Document) -> Document {
        self.try_command(database, command).unwrap()
    }

    /// Runs commands one after the other over one connection; each must succeed. To connect for each takes longer than most
    /// of them do.
    pub fn commands(&self, database: &str, commands: impl IntoIterator<Item = Document>) {
        runtime().block_on(async {
            let server = Server::connect(self.uri()).await.unwrap();
            for command in commands {
                server.command(database, command).await.unwrap();
            }
        });
    }

    pub fn try_command(&self, database: &str, command: Document) -> Result<Document, String> {
        let reply = self.deployment.command(database, command);
        runtime().block_on(reply).map_err(|error| error.to_string())
    }

    /// Runs an administrative command on each process, whether it takes writes or not.
    pub fn command_on_each(&self, command: &Document) {
        for member in self.deployment.members() {
            let reply = async {
                let server = Server::connect(&member.process.uri()).await.unwrap();
                server.command("admin", command.clone()).await
            };
            runtime().block_on(reply).unwrap();
        }
    }

    /// Adds SDU documents of about 3 KiB to `database.collection`.
    pub fn load(&self, namespace: &str, documents: u64) {
        load_documents(self.uri(), &namespace.parse().unwrap(), documents);
    }

    /// Brings the files to rest and empties the page cache of them. They need two checkpoints: mongod 4.4.6 writes some
    /// pages of a load anew in the second one, by which the file grows, and none in those after it.
    pub fn reset_page_cache(&self) {
        for _ in 0..2 {
            self.command("admin", doc! { "fsync": 1 });
        }
        for member in self.deployment.members() {
            let data = member.process.data_directory();
            if data.exists() {
                page_cache::evict(data).unwrap();
            }
        }
    }

    /// Returns the version as the server gives it, such as "4.4.6-8".
    pub fn version(&self) -> String {
        let info = self.command("admin", doc! { "buildInfo": 1 });
        info.get_str("version").unwrap().to_owned()
    }
}
