//! A server's role in its replica set, which decides whether it may be traced without being asked for.

use seekscope_server::{Hello, Server, ServerError};

/// The server's role in its set, as far as it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberRole {
    /// Whether the server has told its role.
    pub known: bool,
    /// Name of its replica set, if it is in one.
    pub set: Option<String>,
    pub primary: bool,
    pub router: bool,
    /// Members that hold data, including itself: `host:port`.
    pub data_members: Vec<String>,
}

impl MemberRole {
    /// Asks the server for its role.
    ///
    /// # Errors
    /// It refused, or did not answer within some seconds.
    pub async fn ask(server: &Server) -> Result<Self, ServerError> {
        server.hello().await.map(Self::of)
    }

    fn of(hello: Hello) -> Self {
        Self {
            known: true,
            primary: hello.is_writable,
            router: hello.is_router(),
            set: hello.set,
            data_members: hello.data_members,
        }
    }

    /// Returns whether this is a primary that others replicate from, as slowing it down affects everybody. A
    /// server that does not tell may be one.
    pub fn others_may_depend_on_it(&self) -> bool {
        !self.known || self.primary && self.set.is_some() && self.data_members.len() > 1
    }

    /// Returns the role in words.
    pub fn in_words(&self) -> String {
        match (&self.set, self.primary) {
            _ if !self.known => "which does not say what it is to others".into(),
            _ if self.router => "a mongos".into(),
            (None, _) => "a standalone server".into(),
            (Some(set), true) if self.data_members.len() > 1 => format!("the primary of {set}"),
            (Some(set), true) => format!("the only member of {set}"),
            (Some(set), false) => format!("a secondary of {set}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, doc};

    use super::*;

    #[test]
    fn only_a_primary_with_company_is_spared() {
        let of = |hello: Document| MemberRole::of(Hello::read(&hello));
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
            |hello: Document| MemberRole::of(Hello::read(&hello)).others_may_depend_on_it();
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
