//! Tells whether a replica set still has the primary that it had: what is measured on a set is its primary's, and so is
//! what was set for it.

use std::time::{Duration, Instant};

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use seekscope_run::{ErrorKind, Kinded};
use seekscope_server::{Hello, Server, ServerError};

const PAUSE: Duration = Duration::from_millis(200);
/// For so long a set is waited for that has no primary: by default members notice after 10 s that one is gone.
const ELECTION_LIMIT: Duration = Duration::from_secs(20);

/// A member's time as the primary of its set. It ends with any election, also with one that the same member wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reign {
    /// The member as it is named in its set, `host:port`.
    pub member: String,
    election: Option<ObjectId>,
}

/// The primary is not the one any more whose settings are tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", in_words(was, now.as_deref()))]
pub struct PrimaryChanged {
    pub was: String,
    /// `None` if no member has become primary meanwhile.
    pub now: Option<String>,
}

impl Kinded for PrimaryChanged {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Target)
    }
}

fn in_words(was: &str, now: Option<&str>) -> String {
    match now {
        Some(now) if now == was => {
            format!("{was} stopped being the primary of its set, and has been elected again since")
        }
        Some(now) => {
            format!("{was} is not the primary of its set any more: {now} has been elected")
        }
        None => format!(
            "{was} is not the primary of its set any more, and no other member has been elected within {} s",
            ELECTION_LIMIT.as_secs()
        ),
    }
}

impl Reign {
    /// Returns that of the present primary; `None` where the connection string means one server, and not one of several
    /// members.
    ///
    /// # Errors
    /// Returns an error if there is no primary that answers.
    pub async fn of(server: &Server) -> Result<Option<Self>, ServerError> {
        if server.is_direct() {
            return Ok(None);
        }
        Ok(Self::read(&ask(server).await?))
    }

    /// Reads the answer of a primary.
    fn read(reply: &Document) -> Option<Self> {
        let hello = Hello::read(reply);
        let members = hello.data_members.len() + hello.arbiters.len();
        let is_of_several = hello.set.is_some() && hello.is_writable && members > 1;
        Some(Self {
            member: hello.me.filter(|_| is_of_several)?,
            election: reply.get_object_id("electionId").ok(),
        })
    }

    /// Checks that it goes on.
    ///
    /// # Errors
    /// Returns who has become the primary otherwise, for which it waits some seconds.
    pub async fn check(&self, server: &Server) -> Result<(), PrimaryChanged> {
        let began = Instant::now();
        while began.elapsed() < ELECTION_LIMIT {
            // A member that has stepped down may answer as long as the driver does not know.
            match Self::of(server).await {
                Ok(Some(now)) if now == *self => return Ok(()),
                Ok(Some(now)) => {
                    return Err(PrimaryChanged {
                        was: self.member.clone(),
                        now: Some(now.member),
                    });
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(PrimaryChanged {
            was: self.member.clone(),
            now: None,
        })
    }
}

/// Asks a server what it is to its set. Those before 4.4.2 know the question by its older name.
async fn ask(server: &Server) -> Result<Document, ServerError> {
    let ask = |word: &str| server.command_in_time("admin", doc! { word: 1 });
    match ask("hello").await {
        Err(_) => ask("isMaster").await,
        reply => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(me: &str, election: ObjectId) -> Document {
        doc! {
            "setName": "rs0", "hosts": ["a:1", "b:1"], "me": me, "isWritablePrimary": true,
            "electionId": election,
        }
    }

    #[test]
    fn a_reign_ends_with_an_election_whoever_wins_it() {
        let (first, second) = (ObjectId::new(), ObjectId::new());
        let reign = Reign::read(&reply("a:1", first)).unwrap();
        assert_eq!(Reign::read(&reply("a:1", first)), Some(reign.clone()));
        assert_ne!(Reign::read(&reply("a:1", second)), Some(reign.clone()));
        assert_ne!(Reign::read(&reply("b:1", second)), Some(reign));
    }

    #[test]
    fn only_a_primary_of_several_members_reigns() {
        let with = |name: &str, value: mongodb::bson::Bson| {
            let mut reply = reply("a:1", ObjectId::new());
            reply.insert(name, value);
            Reign::read(&reply)
        };
        assert_eq!(with("isWritablePrimary", false.into()), None);
        assert_eq!(with("hosts", vec!["a:1"].into()), None);
        assert_eq!(with("setName", 7.into()), None);
        assert!(with("hosts", vec!["a:1", "b:1", "c:1"].into()).is_some());
    }

    #[test]
    fn both_members_are_named() {
        let changed = |now: Option<&str>| {
            let now = now.map(String::from);
            PrimaryChanged {
                was: "a:1".into(),
                now,
            }
            .to_string()
        };
        assert_eq!(
            changed(Some("b:2")),
            "a:1 is not the primary of its set any more: b:2 has been elected"
        );
        assert!(changed(Some("a:1")).contains("elected again"));
        assert!(changed(None).contains("no other member"));
    }
}
