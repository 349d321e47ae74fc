//! Tells whether a replica set still has the primary that it had: what is measured on a set is its primary's, and so is
//! what was set for it.

use std::time::{Duration, Instant};

use mongodb::bson::oid::ObjectId;
use seekscope_run::{ErrorKind, Kinded};
use seekscope_server::{Hello, Server, ServerError};

const PAUSE: Duration = Duration::from_millis(200);
/// How long to wait for a set without a primary: by default, members notice after 10 s that theirs is gone.
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
            format!("{was} is no longer the primary of its set: {now} was elected")
        }
        None => format!(
            "{was} is no longer the primary of its set, and no other member was elected within {} s",
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
        Ok(Self::read(server.hello().await?))
    }

    /// Reads the answer of a primary.
    fn read(hello: Hello) -> Option<Self> {
        let members = hello.data_members.len() + hello.arbiters.len();
        let is_of_several = hello.set.is_some() && hello.is_writable && members > 1;
        Some(Self {
            member: hello.me.filter(|_| is_of_several)?,
            election: hello.election,
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

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, doc};

    use super::*;

    fn read(reply: &Document) -> Option<Reign> {
        Reign::read(Hello::read(reply))
    }

    fn reply(me: &str, election: ObjectId) -> Document {
        doc! {
            "setName": "rs0", "hosts": ["a:1", "b:1"], "me": me, "isWritablePrimary": true,
            "electionId": election,
        }
    }

    #[test]
    fn a_reign_ends_with_an_election_whoever_wins_it() {
        let (first, second) = (ObjectId::new(), ObjectId::new());
        let reign = read(&reply("a:1", first)).unwrap();
        assert_eq!(read(&reply("a:1", first)), Some(reign.clone()));
        assert_ne!(read(&reply("a:1", second)), Some(reign.clone()));
        assert_ne!(read(&reply("b:1", second)), Some(reign));
    }

    #[test]
    fn only_a_primary_of_several_members_reigns() {
        let with = |name: &str, value: mongodb::bson::Bson| {
            let mut reply = reply("a:1", ObjectId::new());
            reply.insert(name, value);
            read(&reply)
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
            "a:1 is no longer the primary of its set: b:2 was elected"
        );
        assert!(changed(Some("a:1")).contains("elected again"));
        assert!(changed(None).contains("no other member"));
    }
}
