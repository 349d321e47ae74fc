use super::*;

const COST: u32 = 4;

fn users(of: &[(&str, &str)]) -> Users {
    let hashes = of.iter().map(|(name, password)| {
        let hash = bcrypt::hash(password, COST).unwrap();
        (name.to_string(), hash)
    });
    Users::new(hashes.collect())
}

fn basic(pair: &str) -> HeaderValue {
    let encoded = BASE64_STANDARD.encode(pair);
    HeaderValue::from_str(&format!("Basic {encoded}")).unwrap()
}

#[tokio::test]
async fn only_the_right_pair_passes() {
    let logins = Logins::new().unwrap();
    let of_two = users(&[("alice", "one:two"), ("bob", "")]);
    for (authorization, login) in [
        (Some(basic("alice:one:two")), Login::Passed),
        (Some(basic("bob:")), Login::Passed),
        (Some(basic("alice:one:twO")), Login::Refused),
        (Some(basic("alice:")), Login::Refused),
        (Some(basic("bob:one:two")), Login::Refused),
        (Some(basic("carol:one:two")), Login::Refused),
        (Some(basic("alice")), Login::Refused),
        (Some(HeaderValue::from_static("Basic ?")), Login::Refused),
        (Some(HeaderValue::from_static("Bearer x")), Login::Refused),
        (Some(HeaderValue::from_static("Basic")), Login::Refused),
        (None, Login::Refused),
    ] {
        // Twice, as what has passed is kept.
        for _ in 0..2 {
            let found = logins.check(&of_two, authorization.as_ref()).await;
            assert_eq!(found, login, "{authorization:?}");
        }
    }
    assert_eq!(logins.check(&Users::default(), None).await, Login::Passed);
}

#[tokio::test]
async fn what_has_passed_is_kept_for_its_hash_alone_and_within_bounds() {
    let logins = Logins::new().unwrap();
    let before = users(&[("alice", "old")]);
    let old = basic("alice:old");
    assert_eq!(logins.check(&before, Some(&old)).await, Login::Passed);
    let after = users(&[("alice", "new")]);
    assert_eq!(logins.check(&after, Some(&old)).await, Login::Refused);
    // bcrypt looks at the first 72 bytes alone, so there are many right passwords.
    let long = "x".repeat(72);
    let of_long = users(&[("alice", &long)]);
    for n in 0..PASSED_MAX + 2 {
        let pair = basic(&format!("alice:{long}{n}"));
        assert_eq!(logins.check(&of_long, Some(&pair)).await, Login::Passed);
        assert!(logins.passed().len() <= PASSED_MAX);
    }
}

/// A hash that could not be read would be refused at once, and so would tell who is not known.
#[test]
fn an_unknown_user_costs_the_same_hash_as_a_known_one() {
    let users = Users::new(BTreeMap::from([
        ("alice".into(), bcrypt::hash("right", 5).unwrap()),
        ("bob".into(), bcrypt::hash("right", 6).unwrap()),
    ]));
    let nobody: HashParts = users.nobody.parse().unwrap();
    assert_eq!(nobody.get_cost(), 6);
    assert!(!bcrypt::verify("right", &users.nobody).unwrap());
}

#[tokio::test]
async fn after_a_failure_nobody_is_hashed_for_a_while_and_whoever_has_passed_does_not_wait() {
    let logins = Logins::new().unwrap();
    let hash = bcrypt::hash("right", 8).unwrap();
    let users = Users::new(BTreeMap::from([("alice".into(), hash)]));
    let (right, wrong) = (basic("alice:right"), basic("alice:wrong"));
    assert_eq!(logins.check(&users, Some(&right)).await, Login::Passed);
    assert_eq!(logins.check(&users, Some(&wrong)).await, Login::Refused);
    assert_eq!(logins.turn.available_permits(), 0, "the pause");
    // Polled once.
    let at_once = timeout(Duration::ZERO, logins.check(&users, Some(&right))).await;
    assert_eq!(at_once, Ok(Login::Passed));
    let next = timeout(Duration::ZERO, logins.check(&users, Some(&wrong))).await;
    assert!(next.is_err(), "it has to wait");
    // And the pause ends.
    assert_eq!(logins.check(&users, Some(&wrong)).await, Login::Refused);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_give_its_turn_away() {
    let logins = Logins::new().unwrap();
    let hash = bcrypt::hash("right", 10).unwrap();
    let users = Users::new(BTreeMap::from([("alice".into(), hash)]));
    let pair = basic("alice:wrong");
    for _ in 0..3 {
        // Polled once, so that it has its turn, and dropped.
        let gone = timeout(Duration::ZERO, logins.check(&users, Some(&pair))).await;
        assert!(gone.is_err());
        assert_eq!(logins.turn.available_permits(), 0);
    }
}
