//! `tune` on a replica set whose members are restarted in turn.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::running::programs;
use crate::support::{Bench, assert_fails, json, python_interpreter, shared_machine, stderr};
use crate::tune::session_at;

/// How often the members are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A set of three members with configuration files of their own, which a script restarts.
pub struct Restartable {
    pub bench: Bench,
    pub ports: Vec<u16>,
}

impl Restartable {
    pub fn start() -> Self {
        let bench = Bench::new();
        let listeners: Vec<_> = (0..3)
            .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports = listeners.iter().map(|one| one.local_addr().unwrap().port());
        let ports: Vec<u16> = ports.collect();
        drop(listeners);
        let set = Self { bench, ports };
        for port in &set.ports {
            let data = set.bench.path(&format!("data-{port}"));
            std::fs::create_dir(&data).unwrap();
            let config = format!(
                "# {port}\nnet: {{port: {port}, bindIp: 127.0.0.1}}\nstorage:\n  dbPath: {0}\n  wiredTiger:\n    \
                 engineConfig: {{cacheSizeGB: 0.25}}\nsystemLog: {{destination: file, path: {0}.log, logAppend: \
                 true}}\nprocessManagement: {{fork: true}}\nreplication: {{replSetName: turns}}\n",
                data.display(),
            );
            std::fs::write(set.config(*port), config).unwrap();
        }
        let text = format!(
            "pid=$(cat {}/data-$1/mongod.lock 2> /dev/null)\n\
             [ -n \"$pid\" ] && kill $pid && while kill -0 $pid 2> /dev/null; do sleep 0.1; done\n\
             [ \"$2\" = stop ] || {} -f {}/mongod-$1.conf > /dev/null\n",
            set.bench.path("").display(),
            programs().mongod.path.display(),
            set.bench.path("").display(),
        );
        std::fs::write(set.bench.path("restart.sh"), text).unwrap();
        for port in &set.ports {
            assert!(set.shell(&format!("sh restart.sh {port}")));
        }
        let members = set.ports.iter().enumerate();
        let members =
            members.map(|(n, port)| format!("{{'_id': {n}, 'host': '127.0.0.1:{port}'}}"));
        let members: Vec<String> = members.collect();
        let initiate = format!(
            "import pymongo, time\nc = pymongo.MongoClient('127.0.0.1', {}, directConnection=True)\n\
             c.admin.command('replSetInitiate', {{'_id': 'turns', 'members': [{}]}})\n\
             c = pymongo.MongoClient('{}')\nc.a.b.with_options(write_concern=pymongo.WriteConcern(3)).insert_one({{}})\n\
             while sum(m['state'] in (1, 2) for m in c.admin.command('replSetGetStatus')['members']) < 3:\n    time.sleep(0.2)\n",
            set.ports[0],
            members.join(", "),
            set.uri(),
        );
        std::fs::write(set.bench.path("initiate.py"), initiate).unwrap();
        assert!(set.shell(&format!("{} initiate.py", python_interpreter().display())));
        set
    }

    pub fn uri(&self) -> String {
        let members = self.ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let members: Vec<String> = members.collect();
        format!("mongodb://{}/?replicaSet=turns", members.join(","))
    }

    fn config(&self, port: u16) -> PathBuf {
        self.bench.path(&format!("mongod-{port}.conf"))
    }

    fn configs(&self) -> Vec<String> {
        let configs = self.ports.iter().map(|port| self.config(*port));
        configs
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect()
    }

    pub fn shell(&self, text: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]).current_dir(self.bench.path(""));
        shell.stdout(Stdio::null()).status().unwrap().success()
    }

    /// How many members do not listen.
    fn down(&self) -> usize {
        let listens = |port: &&u16| std::net::TcpStream::connect(("127.0.0.1", **port)).is_ok();
        self.ports.len() - self.ports.iter().filter(listens).count()
    }

    fn session(&self, out: &str, more: &[&str]) -> Command {
        let mut session = session_at(&self.bench, &self.uri(), out, more);
        session.args(["--knobs", "cache_cursors"]);
        session.args(["--config-file", "mongod-{port}.conf"]);
        session.args(["--restart-command", "sh restart.sh {port}"]);
        session
    }

    /// Runs a command to its end, and returns how many members were down at the same time at most.
    fn most_down_during(&self, command: &mut Command) -> (usize, Output) {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut most_down = 0;
        while child.try_wait().unwrap().is_none() {
            most_down = self.down().max(most_down);
            std::thread::sleep(LOOK);
        }
        (most_down, child.wait_with_output().unwrap())
    }
}

impl Drop for Restartable {
    fn drop(&mut self) {
        for port in &self.ports {
            self.shell(&format!("sh restart.sh {port} stop"));
        }
    }
}

#[test]
fn members_of_a_set_are_restarted_in_turn_and_never_two_are_down() {
    let machine = shared_machine();
    let set = Restartable::start();
    let before = set.configs();
    let output = set.session("refused", &[]).output().unwrap();
    assert_fails(&output, 2, &["3 members", "--allow-stepdown"]);
    let mut mixed_up = session_at(&set.bench, &set.uri(), "refused", &["--allow-stepdown"]);
    mixed_up.args(["--knobs", "cache_cursors", "--config-file", "mongod.conf"]);
    mixed_up.args(["--restart-command", "sh restart.sh {port}"]);
    assert_fails(
        &mixed_up.output().unwrap(),
        2,
        &["{host} or {port} in both"],
    );
    assert!(!set.bench.path("refused").exists());

    // Notes how many members have another setting while a trial runs, and finds it better.
    let work = "n=$(cat mongod-*.conf | grep -c cache_cursors); echo $n >> seen; echo $((7 + n))";
    std::fs::write(set.bench.path("work.sh"), work).unwrap();
    let mut session = set.session("run", &["--allow-stepdown", "--command", "sh work.sh"]);
    let (most_down, output) = set.most_down_during(&mut session);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(most_down, 1, "{}", stderr(&output));
    let seen = std::fs::read_to_string(set.bench.path("seen")).unwrap();
    let seen: BTreeSet<&str> = seen.lines().collect();
    assert_eq!(
        seen,
        ["0", "3"].into(),
        "all members have a setting or none"
    );
    assert_eq!(set.configs(), before);
    let mut show = set.bench.seekscope(&["tune", "show", "run"]);
    let document = json(&mut show);
    assert_eq!(document["summary"]["restored"], true, "{}", stderr(&output));

    // What waits for the machine alone, and everything that waits for that, does not have to wait for all of this.
    drop(machine);
    let _machine = shared_machine();
    let uri = set.uri();
    let apply = |more: &[&str]| {
        let mut apply = set
            .bench
            .seekscope(&["tune", "apply", "run", &uri, "--yes"]);
        apply.args(["--config-file", "mongod-{port}.conf"]);
        apply
            .args(["--restart-command", "sh restart.sh {port}"])
            .args(more);
        apply
    };
    assert_fails(&apply(&[]).output().unwrap(), 2, &["--allow-stepdown"]);
    assert_eq!(set.configs(), before);
    for (undo, count) in [(&[][..], 3), (&["--undo"], 0)] {
        let mut apply = apply(&[undo, &["--allow-stepdown"]].concat());
        let (most_down, output) = set.most_down_during(&mut apply);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(most_down, 1, "{}", stderr(&output));
        let configs = set.configs();
        let changed = configs.iter().filter(|text| text.contains("cache_cursors"));
        assert_eq!(changed.count(), count, "{configs:?}");
    }
    assert_eq!(set.configs(), before);
    // Its servers end while the lock is held.
    drop(set);
}

#[test]
fn a_killed_session_of_a_set_is_put_back_in_turn() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let before = set.configs();
    let mut command = set.session("run", &["--allow-stepdown"]);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let mut session = command.spawn().unwrap();
    // The second member has the setting, and is being restarted.
    let is_set = |text: &&String| text.contains("cache_cursors");
    while set.configs().iter().filter(is_set).count() < 2 {
        assert!(session.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(LOOK);
    }
    session.kill().unwrap();
    session.wait().unwrap();
    let clean = set.bench.seekscope(&["clean"]).output().unwrap();
    let told = stderr(&clean) + &String::from_utf8_lossy(&clean.stdout);
    assert!(
        told.contains("tune --restore") && told.contains("cache_cursors"),
        "{told}"
    );
    let output = set.session("next", &["--allow-stepdown"]).output().unwrap();
    assert_fails(&output, 3, &["an earlier run ended", "--restore"]);

    // The command that was restarting the second member has gone on without the session.
    let settled = Instant::now();
    while set.down() > 0 || settled.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(LOOK);
    }
    // One member is down, as if the session had been killed while it restarted that.
    set.shell(&format!("sh restart.sh {} stop", set.ports[2]));
    let uri = set.uri();
    let mut restore = set.bench.seekscope(&["tune", "--restore", "run", &uri]);
    let (most_down, output) = set.most_down_during(&mut restore);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(most_down, 1, "{}", stderr(&output));
    assert_eq!(set.configs(), before);
    assert_eq!(set.down(), 0);
}
