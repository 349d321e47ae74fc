//! What `tune` and `bench index --memory-mb` leave of a replica set that elects another primary meanwhile: every member
//! has the settings of before, and the session says what happened instead of blaming the setting that was tried.

use std::process::{Command, Output, Stdio};

use mongodb::bson::{Document, doc};
use seekscope_server::Server;

use crate::support::{
    assert_fails, json, python_interpreter, runtime, shared_machine, stderr, stdout, until,
};
use crate::tune::session_at;
use crate::tune_rolling::Restartable;

/// What kills the primary, in a session's load.
const KILLS: &str = "os.kill(admin.command('serverStatus')['pid'], signal.SIGKILL)";
const TICKETS: &str = "wiredTigerConcurrentReadTransactions";
const LIMIT: &str = "maxIndexBuildMemoryUsageMegabytes";

/// Leads to this member alone.
fn direct_uri(port: u16) -> String {
    format!("mongodb://127.0.0.1:{port}/?directConnection=true")
}

impl Restartable {
    /// Asks one member, whatever its state.
    fn ask(&self, port: u16, command: Document) -> Document {
        let asked = async {
            let server = Server::connect(&direct_uri(port)).await.unwrap();
            server.command("admin", command).await
        };
        runtime().block_on(asked).unwrap()
    }

    /// All parameters and the cache's size of each member.
    fn settings(&self) -> Vec<(Document, f64)> {
        let of_member = |port: &u16| {
            let parameters = self.ask(*port, doc! { "getParameter": "*" });
            let own = parameters.into_iter();
            let own = own.filter(|(name, _)| !name.starts_with('$') && name != "operationTime");
            let status = self.ask(*port, doc! { "serverStatus": 1 });
            let cache = status.get_document("wiredTiger").unwrap();
            let cache = cache.get_document("cache").unwrap();
            let bytes = seekscope_server::float(cache.get("maximum bytes configured").unwrap());
            (own.collect(), bytes.unwrap())
        };
        self.ports.iter().map(of_member).collect()
    }

    /// The port of the member that is the primary.
    pub fn primary(&self) -> u16 {
        let primary = std::cell::Cell::new(0);
        until(|| {
            let mut ports = self.ports.iter();
            let found = ports.find(|port| {
                let hello = async {
                    Server::unasked(&direct_uri(**port))
                        .await
                        .unwrap()
                        .hello()
                        .await
                };
                let hello = runtime().block_on(hello);
                hello.is_ok_and(|hello| hello.is_writable)
            });
            primary.set(found.copied().unwrap_or_default());
            primary.get() != 0
        });
        primary.get()
    }

    /// A session whose load does something to the primary, once and when it is time, and then waits until another
    /// member is the primary. It finds any other setting of the read tickets better.
    fn session_with(&self, out: &str, when: &str, does: &str) -> Command {
        let script = format!(
            "import pymongo, os, signal, time\nc = pymongo.MongoClient('{}')\nadmin, name = c.admin, \
             'wiredTigerConcurrentReadTransactions'\nis_other = admin.command('getParameter', 1, **{{name: 1}})[name] != \
             128\nopen('runs', 'a').write('x')\nruns = os.path.getsize('runs')\nif {when} and not \
             os.path.exists('done'):\n    open('done', 'w').close()\n    was = \
             admin.command('hello')['me']\n    {does}\n    while True:\n        try:\n            if \
             admin.command('hello')['me'] != was and c.is_primary: break\n        except \
             pymongo.errors.PyMongoError: pass\n        time.sleep(0.1)\nprint(7 + is_other)\n",
            self.uri(),
        );
        std::fs::write(self.bench.path("load.py"), script).unwrap();
        let load = format!("{} load.py", python_interpreter().display());
        let knobs = ["--knobs", "read_tickets,cache_size", "--command", &load];
        let mut session = session_at(&self.bench, &self.uri(), out, &knobs);
        session.current_dir(self.bench.path(""));
        session
    }

    fn restore(&self, run: &str) -> Output {
        let mut restore = self.bench.seekscope(&["tune", "--restore", run]);
        restore.output().unwrap()
    }
}

/// Also tries a recommended change on a whole set, for which it has one.
#[test]
fn a_duel_that_its_primary_did_not_survive_is_fought_anew_on_the_next() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let (before, was) = (set.settings(), set.primary());
    // Two runs of the baseline and three of the search come first.
    let output = set.session_with("run", "runs == 8", KILLS).output();
    let again = ["the session ended early", &name(was), "tune --resume"];
    assert_fails(&output.unwrap(), 3, &again);

    // The member is still down.
    let mut resumed = set.bench.seekscope(&["tune", "--resume", "run"]);
    let resumed = resumed.args(["--out", "next"]).output().unwrap();
    let said = stderr(&resumed);
    assert!(resumed.status.success(), "{said}");
    assert!(said.contains("tune --restore"), "{said}");
    let document = json(&mut set.bench.seekscope(&["tune", "show", "next"]));
    assert_eq!(document["outcome"], "ok");
    let summary = &document["summary"];
    assert_eq!(summary["restored"], true);
    assert_eq!(summary["verdict"], "better", "{said}");
    // None of them is the former member's.
    assert_eq!(summary["duels"][0]["pairs"], 4);
    let what = document["limitations"][0]["what"].as_str().unwrap();
    let now = set.primary();
    assert!(
        what.contains(&name(was)) && what.contains(&name(now)),
        "{what}"
    );
    let decided = set.bench.seekscope(&["tune", "--resume", "next"]).output();
    assert_fails(&decided.unwrap(), 2, &["is over"]);

    let uri = set.uri();
    let apply = |more: &[&str]| {
        let mut apply = set.bench.seekscope(&["tune", "apply", "next", &uri]);
        apply.args(more).output().unwrap()
    };
    assert_fails(&apply(&["--yes"]), 3, &[&name(was), "nothing listens"]);
    assert!(set.shell(&format!("sh restart.sh {was}")));
    assert_eq!(set.settings(), before);
    // Any member may be the next primary.
    let applied = apply(&["--yes"]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    let tickets = |port: &u16| {
        let reply = set.ask(*port, doc! { "getParameter": 1, TICKETS: 1 });
        reply.get_i32(TICKETS).unwrap()
    };
    let found: Vec<i32> = set.ports.iter().map(tickets).collect();
    assert!(found[0] != 128 && found == [found[0]; 3], "{found:?}");
    let command = doc! { "replSetStepDown": 600, "secondaryCatchUpPeriodSecs": 60 };
    set.ask(now, command);
    let undone = apply(&["--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(set.settings(), before);
}

fn name(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

#[test]
fn a_session_ends_with_its_primary_and_puts_back_what_that_had() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let (before, was) = (set.settings(), set.primary());
    let steps_down = "admin.command('replSetStepDown', 600, secondaryCatchUpPeriodSecs=60)";
    let output = set.session_with("run", "is_other", steps_down).output();
    let output = output.unwrap();
    let now = set.primary();
    assert_ne!(was, now);
    let words = ["the session ended early", &name(was), &name(now)];
    assert_fails(&output, 3, &words);
    assert!(set.bench.path("done").exists(), "{}", stderr(&output));
    assert_eq!(set.settings(), before, "{}", stderr(&output));
    let document = json(&mut set.bench.seekscope(&["tune", "show", "run"]));
    assert_eq!(document["outcome"], "partial");
    assert_eq!(document["summary"]["restored"], true);
    // The run that the election has spoilt is no failure of what it was of.
    assert_eq!(document["summary"]["failed"], 0);
    let again = set.restore("run");
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(set.settings(), before);
    let told = stderr(&set.bench.seekscope(&["clean"]).output().unwrap());
    assert!(told.contains("Nothing was left behind"), "{told}");

    // Its figures are of the other member.
    let mut resumed = set.bench.seekscope(&["tune", "--resume", "run"]);
    let resumed = resumed.args(["--out", "next"]).output().unwrap();
    assert_fails(&resumed, 3, &[&name(was), &name(now)]);
    assert_eq!(set.settings(), before);
}

#[test]
fn a_member_that_was_killed_is_named_and_has_nothing_to_be_put_back_later() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let (before, was) = (set.settings(), set.primary());
    let output = set.session_with("run", "is_other", KILLS).output().unwrap();
    let member = name(was);
    let words = [
        "the session ended early",
        &member,
        "does not answer",
        "tune --restore",
    ];
    assert_fails(&output, 3, &words);
    let document = json(&mut set.bench.seekscope(&["tune", "show", "run"]));
    assert_eq!(document["summary"]["restored"], false);
    assert_eq!(document["summary"]["failed"], 0);
    // As long as nobody can know what it has.
    let told = stderr(&set.bench.seekscope(&["clean"]).output().unwrap());
    assert!(
        told.contains(&member) && told.contains("--restore"),
        "{told}"
    );
    assert_fails(&set.restore("run"), 5, &[&member, "does not answer"]);

    assert!(set.shell(&format!("sh restart.sh {was}")));
    let restored = set.restore("run");
    let said = stderr(&restored);
    assert!(restored.status.success(), "{said}");
    assert!(
        said.contains(&member) && said.contains("has ended"),
        "{said}"
    );
    assert!(stdout(&restored).contains("Every setting is as the session found it"));
    assert_eq!(set.settings(), before);
    let told = stderr(&set.bench.seekscope(&["clean"]).output().unwrap());
    assert!(told.contains("Nothing was left behind"), "{told}");
}

#[test]
fn an_index_benchmark_ends_with_its_primary_and_puts_back_the_limit_of_that() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let (before, was) = (set.settings(), set.primary());
    let uri = set.uri();
    let mut builds = set
        .bench
        .seekscope(&["bench", "index", &uri, "--memory-mb", "77"]);
    builds.args(["--docs", "20000", "--repeats", "9", "--out", "run"]);
    let builds = builds.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut builds = builds.spawn().unwrap();
    // Loading three members takes as long as the machine lets it.
    loop {
        let reply = set.ask(was, doc! { "getParameter": 1, LIMIT: 1 });
        if reply.get_i32(LIMIT).unwrap() == 77 {
            break;
        }
        assert!(builds.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let command = doc! { "replSetStepDown": 600, "secondaryCatchUpPeriodSecs": 60 };
    set.ask(was, command);
    let output = builds.wait_with_output().unwrap();
    let now = set.primary();
    assert_fails(
        &output,
        3,
        &["the benchmark ended early", &name(was), &name(now)],
    );
    assert_eq!(set.settings(), before, "{}", stderr(&output));
}
