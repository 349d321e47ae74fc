//! Making a replica set of servers that were started as its members, and waiting until it takes writes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bson::{Document, doc};
use mongodb::Database;
use mongodb::error::ErrorKind;
use seekscope_server::{LocalServer, Server};

const READY_LIMIT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// MongoDB's NotYetInitialized.
const NOT_YET_INITIALIZED: i32 = 94;

/// How the others reach a member.
pub fn host(member: &LocalServer) -> String {
    format!("127.0.0.1:{}", member.port())
}

/// Initiates the set, of which the first member becomes the primary, and waits until all have the data. A
/// lone member that was in a set before, on another port, is made the only member of it again.
pub async fn initiate(set: &str, members: &[&LocalServer], config_servers: bool) -> Result<()> {
    let Some(first) = members.first() else {
        bail!("a replica set without members");
    };
    let listed: Vec<Document> = (0..)
        .zip(members)
        .map(|(id, member)| configured(id, member))
        .collect();
    let mut config = doc! { "_id": set, "members": listed };
    if config_servers {
        config.insert("configsvr", true);
    }
    let admin = Server::connect(&first.uri()).await?.database("admin");
    let until = Instant::now() + READY_LIMIT;
    // A member answers before it has read its own configuration, so each step may have to be tried again.
    while let Err(why) = step(&admin, first, &config).await {
        if Instant::now() > until {
            let logs = members.iter().map(|member| member.last_lines_of_log());
            let logs = logs.collect::<Vec<String>>().join("\n\n");
            bail!(
                "the replica set {set} was not ready within {READY_LIMIT:?}: {why:#}; the last log lines of its \
                 members:\n{logs}"
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn configured(id: i32, member: &LocalServer) -> Document {
    doc! { "_id": id, "host": host(member) }
}

/// The next step towards a set that is ready; an error unless it is.
async fn step(admin: &Database, first: &LocalServer, config: &Document) -> Result<()> {
    let now = match admin.run_command(doc! { "replSetGetConfig": 1 }).await {
        Ok(reply) => reply.get_document("config")?.clone(),
        Err(error) if matches!(&*error.kind, ErrorKind::Command(said) if said.code == NOT_YET_INITIALIZED) =>
        {
            let initiate = doc! { "replSetInitiate": config.clone() };
            admin.run_command(initiate).await?;
            bail!("it has just been initiated");
        }
        Err(error) => return Err(error.into()),
    };
    let known = now.get_array("members")?;
    let is_alone = known.len() == 1 && config.get_array("members")?.len() == 1;
    let knows_us = known.iter().any(|one| {
        let one = one.as_document().and_then(|one| one.get_str("host").ok());
        one == Some(&host(first))
    });
    if is_alone && !knows_us {
        let mut moved = now.clone();
        let version = now.get_i32("version").map(i64::from);
        let version = version.or_else(|_| now.get_i64("version"))?;
        moved.insert("version", version + 1);
        moved.insert("members", vec![configured(0, first)]);
        let again = doc! { "replSetReconfig": moved, "force": true };
        admin.run_command(again).await?;
        bail!("it was told its new port");
    }
    let status = admin.run_command(doc! { "replSetGetStatus": 1 }).await?;
    let states: Vec<&str> = status
        .get_array("members")?
        .iter()
        .filter_map(|member| member.as_document()?.get_str("stateStr").ok())
        .collect();
    let others_follow = states.iter().skip(1).all(|state| *state == "SECONDARY");
    match states.first() {
        Some(&"PRIMARY") if others_follow => {
            let hello = admin.run_command(doc! { "isMaster": 1 }).await?;
            // Known as primary some moments before it takes writes.
            if !hello.get_bool("ismaster")? {
                bail!("the primary takes no writes yet");
            }
            Ok(())
        }
        Some(&"SECONDARY") => {
            // Without being asked it would wait for an election timeout of 10 s.
            admin.run_command(doc! { "replSetStepUp": 1 }).await?;
            bail!("the first member was asked to become primary");
        }
        _ => bail!("its members are {}", states.join(", ")),
    }
}
