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

/// With a cost at which hashing takes most of the time. The quickest of some is compared, as nothing makes it quicker.
#[tokio::test]
async fn an_unknown_user_takes_as_long_as_a_known_one() {
    let hash = bcrypt::hash("right", 8).unwrap();
    let users = Users::new(BTreeMap::from([("alice".into(), hash)]));
    let mut quickest = [Duration::MAX; 2];
    for _ in 0..5 {
        for (name, quickest) in ["alice", "nobody"].iter().zip(&mut quickest) {
            // A pause of an earlier failure is over: each has its own turn.
            let logins = Logins::new().unwrap();
            let pair = basic(&format!("{name}:wrong"));
            let began = Instant::now();
            assert_eq!(logins.check(&users, Some(&pair)).await, Login::Refused);
            *quickest = (*quickest).min(began.elapsed());
        }
    }
    let [known, unknown] = quickest;
    assert!(known < unknown * 2 && unknown < known * 2, "{quickest:?}");
    assert!(known > Duration::from_millis(5), "{quickest:?}");
}

#[tokio::test]
async fn a_flood_of_failures_hashes_a_tenth_of_the_time_and_holds_up_nobody_who_has_passed() {
    let logins = Arc::new(Logins::new().unwrap());
    let hash = bcrypt::hash("right", 8).unwrap();
    let hash_took = (0..5).map(|_| {
        let began = Instant::now();
        bcrypt::verify("wrong", &hash).unwrap();
        began.elapsed()
    });
    let hash_took = hash_took.min().unwrap();
    let users = Arc::new(Users::new(BTreeMap::from([("alice".into(), hash)])));
    let right = basic("alice:right");
    assert_eq!(logins.check(&users, Some(&right)).await, Login::Passed);
    let flood: Vec<_> = (0..6)
        .map(|n| {
            let (logins, users) = (Arc::clone(&logins), Arc::clone(&users));
            tokio::spawn(async move {
                let pair = basic(&format!("alice:wrong{n}"));
                logins.check(&users, Some(&pair)).await
            })
        })
        .collect();
    let began = Instant::now();
    tokio::task::yield_now().await;
    assert_eq!(logins.check(&users, Some(&right)).await, Login::Passed);
    assert!(began.elapsed() < hash_took * PAUSE, "it waits for no turn");
    for one in flood {
        assert_eq!(one.await.unwrap(), Login::Refused);
    }
    // Five pauses lie between six.
    let least = hash_took * 5 * PAUSE;
    assert!(
        began.elapsed() > least,
        "{:?} {hash_took:?}",
        began.elapsed()
    );
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
