//! Certificates for a server on this machine, made for one test with `openssl`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// An authority of the test's own, and a certificate of it for `localhost` and 127.0.0.1.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
}

const EXTENSIONS: &str =
    "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n";

impl Certificates {
    pub fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("switchyard-certificates-").tempdir().expect("a folder");
        std::fs::write(folder.path().join("extensions"), EXTENSIONS).expect("a file");
        openssl(
            folder.path(),
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test -addext basicConstraints=critical,CA:TRUE",
        );
        openssl(
            folder.path(),
            "req -newkey rsa:2048 -nodes -keyout key.pem -out req.pem -subj /CN=localhost",
        );
        openssl(
            folder.path(),
            "x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile extensions",
        );
        Self { folder }
    }

    /// Of the authority.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// For a server, or a client.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
    let done = done.expect("this test needs openssl: install the Debian package `openssl`");
    assert!(done.status.success(), "openssl {words}:\n{}", String::from_utf8_lossy(&done.stderr));
}
