//! The `sslmode` values mean the same as for every other client of Postgres.

use std::path::Path;

use switchyard_archive_postgres::{PostgresArchive, Target, migrate, probe};
use switchyard_store::{Journal, RunIndex};
use switchyard_test_servers::certificates::Certificates;
use switchyard_test_servers::postgres::{Postgres, Sync};

/// Migrates, writes and reads.
async fn works(url: &str) -> Result<(), String> {
    let target: Target = url.parse().map_err(|error| format!("{error}"))?;
    migrate(&target).await.map_err(|error| error.to_string())?;
    let archive = PostgresArchive::open(target).await.map_err(|error| error.to_string())?;
    archive.append(Vec::new()).await.map_err(|error| error.to_string())?;
    archive.unfinished().await.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn sslmode_says_how_much_is_checked() {
    let certificates = Certificates::make();
    let server = Postgres::start_with_tls(&certificates);
    let (ours, strangers) = (certificates.ca().display().to_string(), Certificates::make());
    let strangers = strangers.ca().display().to_string();
    // The certificate names localhost and 127.0.0.1, and 127.0.0.2 is this machine as well.
    let (right, wrong) = (server.url(), server.url().replace("127.0.0.1", "127.0.0.2"));
    for (url, expected) in [
        (right.clone(), Ok(())),
        (format!("{right}?sslmode=prefer"), Ok(())),
        (format!("{right}?sslmode=disable"), Err("no encryption")),
        (format!("{right}?sslmode=require"), Ok(())),
        (format!("{right}?sslmode=require&sslrootcert={ours}"), Ok(())),
        (format!("{right}?sslmode=require&sslrootcert={strangers}"), Err("certificate")),
        (format!("{wrong}?sslmode=verify-ca&sslrootcert={ours}"), Ok(())),
        (format!("{right}?sslmode=verify-ca&sslrootcert={strangers}"), Err("certificate")),
        (format!("{right}?sslmode=verify-full&sslrootcert={ours}"), Ok(())),
        (format!("{wrong}?sslmode=verify-full&sslrootcert={ours}"), Err("not valid for name")),
        (format!("{right}?sslmode=verify-full"), Err("certificate")),
        (
            format!("{right}?sslmode=verify-full&sslrootcert=/nowhere.pem"),
            Err("cannot read certificates from /nowhere.pem"),
        ),
    ] {
        check(&url, expected).await;
    }
}

async fn check(url: &str, expected: Result<(), &str>) {
    let target: Target = url.parse().expect("a URL");
    assert_eq!(probe(&target).await, None, "{url}: the server answers");
    match (works(url).await, expected) {
        (Ok(()), Ok(())) => {}
        (Err(error), Err(part)) => assert!(error.contains(part), "{url}: {error}"),
        (answer, _) => panic!("{url}: {answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_shows_who_it_is() {
    let certificates = Certificates::make();
    let server = Postgres::start_asking_for_certificates(&certificates);
    let (right, root) = (server.url(), certificates.ca().display().to_string());
    let own = certificates.client("postgres");
    let (ada, strangers) = (certificates.client("ada"), Certificates::make());
    let stranger = strangers.client("postgres");
    let showing = |certificate: &Path, key: &Path| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("{right}?sslmode=verify-full&sslrootcert={root}&sslcert={certificate}&sslkey={key}")
    };
    for (url, expected) in [
        (showing(&own.0, &own.1), Ok(())),
        (
            format!("{right}?sslmode=verify-full&sslrootcert={root}"),
            Err("requires a valid client certificate"),
        ),
        (showing(&ada.0, &ada.1), Err("authentication failed for user \"postgres\"")),
        (showing(&stranger.0, &stranger.1), Err("received fatal alert")),
        (showing(&own.0, &ada.1), Err("the key in")),
        (showing(&own.1, &own.1), Err("no certificate in")),
        (showing("/nowhere.pem".as_ref(), &own.1), Err("cannot read certificates from /nowhere.pem")),
        (showing(&own.0, "/nowhere.key".as_ref()), Err("cannot read the key in /nowhere.key")),
        (showing(&own.0, &own.0), Err("cannot read the key in")),
    ] {
        check(&url, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_refused_by_those_who_want_it() {
    let server = Postgres::start(Sync::Off);
    works(&server.url()).await.expect("it works without");
    let error = works(&format!("{}?sslmode=require", server.url())).await.expect_err("it has no TLS");
    assert!(error.contains("TLS"), "{error}");
    works(&format!("{}&sslmode=prefer", server.socket_url())).await.expect("a socket needs none");
}
