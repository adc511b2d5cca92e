//! Connections with TLS mean what they mean to every client of Postgres.

use switchyard_archive_postgres::{PostgresArchive, Target, migrate};
use switchyard_store::Archive;
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
        match (works(&url).await, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => assert!(error.contains(part), "{url}: {error}"),
            (answer, _) => panic!("{url}: {answer:?}"),
        }
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
