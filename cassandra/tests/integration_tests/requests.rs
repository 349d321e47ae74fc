//! Requests one by one, through the client that the engine is given.

use bson::{Binary, Bson, Document, RawDocumentBuf, doc, rawdoc, spec::BinarySubtype};
use seekscope_cassandra::{CqlFactory, CqlTarget};
use seekscope_client::request::Verb;
use seekscope_client::{
    AsyncClient, AsyncClientFactory, Failure, FailureKind, OwnedReply, Request,
};
use seekscope_workload::{Sdu, SduOptions};

use crate::cassandra_server::shared;

pub(crate) struct Client(Box<dyn AsyncClient>);

impl Client {
    pub(crate) async fn connect(uri: &str) -> Result<Self, Failure> {
        let factory = CqlFactory::new(CqlTarget::parse(uri, "unused").unwrap());
        Ok(Self(factory.connect(1).await?.remove(0)))
    }

    pub(crate) async fn send(
        &mut self,
        verb: Verb,
        body: Document,
        statements: &[Vec<u8>],
    ) -> Result<OwnedReply, Failure> {
        let mut request = Request {
            verb,
            statement_count: u32::try_from(statements.len()).unwrap(),
            ..Request::default()
        };
        request.body.raw(&body.to_vec().unwrap());
        for statement in statements {
            request.statements.raw(statement);
        }
        let mut reply = OwnedReply::default();
        self.0.send(&request, &mut reply).await.map(|()| reply)
    }

    async fn insert(&mut self, table: &str, documents: &[Document]) -> Result<OwnedReply, Failure> {
        let documents: Vec<_> = documents.iter().map(|d| d.to_vec().unwrap()).collect();
        self.send(Verb::Insert, doc! { "insert": table }, &documents)
            .await
    }

    async fn find(&mut self, body: Document) -> OwnedReply {
        self.send(Verb::Find, body, &[]).await.unwrap()
    }
}

fn binary(text: &str) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: text.as_bytes().to_vec(),
    }
}

fn parsed(document: Option<RawDocumentBuf>) -> Document {
    Document::try_from(document.expect("a document").as_ref()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_back_as_the_documents_that_were_sent() {
    let server = shared();
    let mut client = Client::connect(&server.uri("rows", "")).await.unwrap();
    let rows: Vec<Document> = (0..20)
        .map(|n| doc! { "_id": format!("user{n}"), "field0": binary("x y"), "field1": binary("~") })
        .collect();
    let inserted = client.insert("usertable", &rows).await.unwrap();
    assert_eq!((inserted.matched, inserted.modified), (20, 20));

    let by_key = |key: &str| doc! { "find": "usertable", "filter": { "_id": key }, "limit": 1 };
    let found = client.find(by_key("user7")).await;
    assert_eq!(found.returned, 1);
    assert_eq!(parsed(found.first), rows[7]);
    assert_eq!(client.find(by_key("nobody")).await.returned, 0);
    let mut one_field = by_key("user7");
    one_field.insert("projection", doc! { "_id": 0, "field1": 1 });
    let expected = doc! { "field1": binary("~") };
    assert_eq!(parsed(client.find(one_field).await.first), expected);

    let set = [
        rawdoc! { "q": { "_id": "user7" }, "u": { "$set": { "field0": binary("new") } } }
            .into_bytes(),
    ];
    let updated = client.send(Verb::Update, doc! { "update": "usertable" }, &set);
    assert_eq!(updated.await.unwrap().matched, 1);
    let found = parsed(client.find(by_key("user7")).await.first);
    assert_eq!(found.get("field0"), Some(&Bson::Binary(binary("new"))));
    assert_eq!(found.get("field1"), rows[7].get("field1"));

    // From a key on, in the order of hashes: 5 rows, and all of them from the least hash on.
    let scan = |key: &str, limit: i32| {
        doc! {
            "find": "usertable", "filter": { "_id": { "$gte": key } }, "sort": { "_id": 1 }, "limit": limit,
        }
    };
    let mut most = 0;
    for row in &rows {
        let key = row.get_str("_id").unwrap();
        let found = client.find(scan(key, 100)).await;
        assert_eq!(parsed(found.first).get_str("_id").unwrap(), key);
        most = most.max(found.returned);
        assert_eq!(
            client.find(scan(key, 5)).await.returned,
            found.returned.min(5)
        );
    }
    assert_eq!(most, 20);

    let gone = [rawdoc! { "q": { "_id": "user7" }, "limit": 1 }.into_bytes()];
    let deleted = client.send(Verb::Delete, doc! { "delete": "usertable" }, &gone);
    deleted.await.unwrap();
    assert_eq!(client.find(by_key("user7")).await.returned, 0);
    let counted = client
        .send(Verb::Command, doc! { "count": "usertable" }, &[])
        .await;
    assert_eq!(counted.unwrap().matched, 19);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_own_table_of_binaries_is_known_to_the_next() {
    let server = shared();
    let uri = server.uri("known", "");
    let row = doc! { "_id": "a", "field0": binary("text") };
    let mut first = Client::connect(&uri).await.unwrap();
    first
        .insert("usertable", std::slice::from_ref(&row))
        .await
        .unwrap();
    let mut second = Client::connect(&uri).await.unwrap();
    let found = second
        .find(doc! { "find": "usertable", "filter": { "_id": "a" } })
        .await;
    assert_eq!(parsed(found.first), row);
    // A value that does not fit the column's type is refused before it is sent.
    let unfit = doc! { "_id": "b", "field0": Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 200] } };
    let failure = second.insert("usertable", &[unfit]).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
    // Dropped and made anew, what was prepared before is not used.
    second
        .send(Verb::Command, doc! { "drop": "usertable" }, &[])
        .await
        .unwrap();
    first
        .insert("usertable", &[doc! { "_id": 5_i64, "n": 1 }])
        .await
        .unwrap();
    let found = second
        .find(doc! { "find": "usertable", "filter": { "_id": 5_i64 } })
        .await;
    assert_eq!(parsed(found.first), doc! { "_id": 5_i64, "n": 1 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_on_sdu_documents_is_built_and_used() {
    let server = shared();
    let sdu = Sdu::new(SduOptions::default());
    for kind in ["sai", "legacy"] {
        let options = format!("index={kind}");
        let uri = server.uri(&format!("sdu_{kind}"), &options);
        let mut client = Client::connect(&uri).await.unwrap();
        let documents: Vec<_> = (0..500).map(|n| sdu.document(n).into_bytes()).collect();
        for batch in documents.chunks(100) {
            let insert = client.send(Verb::Insert, doc! { "insert": "aged" }, batch);
            assert_eq!(insert.await.unwrap().matched, 100);
        }
        let found = client
            .find(doc! { "find": "aged", "filter": { "_id": 77_i64 } })
            .await;
        let whole = Document::try_from(sdu.document(77).as_ref()).unwrap();
        assert_eq!(parsed(found.first), whole);

        let by_index = doc! { "find": "aged", "filter": { "i": whole.get_i32("i").unwrap() } };
        let refused = client.send(Verb::Find, by_index.clone(), &[]).await;
        assert!(refused.is_err(), "an index is needed");
        let index = doc! { "key": { "i": 1 }, "name": "i_1" };
        let create = doc! { "createIndexes": "aged", "indexes": [index] };
        client
            .send(Verb::Command, create.clone(), &[])
            .await
            .unwrap();
        // Every key is in it as soon as the command has ended.
        for number in [0, 77, 499] {
            let i = sdu.document(number).get_i32("i").unwrap();
            let found = client
                .find(doc! { "find": "aged", "filter": { "i": i } })
                .await;
            assert_eq!(found.returned, 1);
        }
        assert_eq!(parsed(client.find(by_index).await.first), whole);
        let twice = client.send(Verb::Command, create, &[]).await.unwrap_err();
        assert_eq!(twice.kind, FailureKind::Server);
        let gone = doc! { "dropIndexes": "aged", "index": "i_1" };
        client.send(Verb::Command, gone, &[]).await.unwrap();
    }
}
