//! A server's role in its replica set, which decides whether it may be traced without being asked for.

use seekscope_run::MemberState;
use seekscope_server::examination::members_with_data;
use seekscope_server::{Hello, Server, ServerError};

/// The server's role in its set; `None` if it does not tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberRole(pub Option<Hello>);

impl MemberRole {
    /// Asks the server for its role. Hidden members replicate as well, but only a user with the right to ask for
    /// the state of the set is told of them.
    ///
    /// # Errors
    /// It refused, or did not answer within some seconds.
    pub async fn ask(server: &Server) -> Result<Self, ServerError> {
        let mut hello = server.hello().await?;
        if hello.is_writable && hello.set.is_some() {
            match members_with_data(server).await {
                Ok(members) => hello.data_members = members,
                Err(_) if is_followed(&hello) => {}
                Err(_) => return Ok(Self::default()),
            }
        }
        Ok(Self(Some(hello)))
    }

    /// Returns whether this is a primary that others replicate from, as slowing it down affects everybody. A
    /// server that does not tell may be one.
    pub fn others_may_depend_on_it(&self) -> bool {
        self.0.as_ref().is_none_or(is_followed)
    }

    /// Returns the role in words.
    pub fn in_words(&self) -> String {
        let Some(hello) = &self.0 else {
            return "which does not report its role".into();
        };
        match (&hello.set, hello.is_writable) {
            _ if hello.is_router() => "a mongos".into(),
            (None, _) => "a standalone server".into(),
            (Some(set), true) if is_followed(hello) => format!("the primary of {set}"),
            (Some(set), true) => format!("the only member of {set}"),
            (Some(set), false) if hello.state == MemberState::Secondary => {
                format!("a secondary of {set}")
            }
            (Some(set), false) if hello.state == MemberState::Arbiter => {
                format!("an arbiter of {set}")
            }
            (Some(set), false) => format!("a member of {set} that serves no clients now"),
        }
    }
}

/// Returns whether it is a primary that others replicate from.
fn is_followed(hello: &Hello) -> bool {
    hello.is_writable && hello.set.is_some() && hello.data_members.len() > 1
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, doc};

    use super::*;

    #[test]
    fn only_a_primary_with_company_is_spared() {
        let of = |hello: Document| MemberRole(Some(Hello::read(&hello)));
        let alone = of(
            doc! { "setName": "rs0", "isWritablePrimary": true, "hosts": ["a:1"], "arbiters": ["b:1"] },
        );
        assert!(!alone.others_may_depend_on_it());
        assert_eq!(alone.in_words(), "the only member of rs0");
        let primary =
            of(doc! { "setName": "rs0", "ismaster": true, "hosts": ["a:1"], "passives": ["b:1"] });
        assert!(primary.others_may_depend_on_it());
        let secondary = of(doc! { "setName": "rs0", "ismaster": false, "hosts": ["a:1", "b:1"] });
        assert!(!secondary.others_may_depend_on_it());
        // A standalone server also calls itself a writable primary.
        assert!(!of(doc! { "isWritablePrimary": true }).others_may_depend_on_it());
        assert_eq!(of(doc! { "msg": "isdbgrid" }).in_words(), "a mongos");
        assert!(MemberRole::default().others_may_depend_on_it());
    }

    #[test]
    fn passive_members_and_old_words_count() {
        let depends =
            |hello: Document| MemberRole(Some(Hello::read(&hello))).others_may_depend_on_it();
        assert!(depends(
            doc! { "ismaster": true, "hosts": ["a:1", "b:1"], "setName": "rs" }
        ));
        for other in [
            doc! { "ismaster": true },
            doc! { "ismaster": true, "hosts": ["a:1"] },
            doc! { "ismaster": false, "secondary": true, "hosts": ["a:1", "b:1"] },
        ] {
            assert!(!depends(other.clone()), "{other}");
        }
    }
}
