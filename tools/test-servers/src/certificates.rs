//! Certificates for a server on this machine, created for one test with `openssl`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A private certificate authority, and its certificate for `localhost` and 127.0.0.1.
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
        let made = Self { folder };
        made.issue("localhost");
        made
    }

    /// Issues a client certificate for this name; returns the certificate and its key.
    pub fn client(&self, name: &str) -> (PathBuf, PathBuf) {
        self.issue(name);
        (self.file(name, "pem"), self.file(name, "key"))
    }

    fn issue(&self, name: &str) {
        let request =
            format!("req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.req -subj /CN={name}");
        openssl(self.folder.path(), &request);
        let signing = format!(
            "x509 -req -in {name}.req -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2"
        );
        openssl(self.folder.path(), &format!("{signing} -extfile extensions"));
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{kind}"))
    }

    /// The certificate of the authority.
    pub fn ca(&self) -> PathBuf {
        self.file("ca", "pem")
    }

    /// The certificate for `localhost`, for a server or a client.
    pub fn certificate(&self) -> PathBuf {
        self.file("localhost", "pem")
    }

    pub fn key(&self) -> PathBuf {
        self.file("localhost", "key")
    }
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
    let done = done.expect("this test needs openssl: install the Debian package `openssl`");
    assert!(done.status.success(), "openssl {words}:\n{}", String::from_utf8_lossy(&done.stderr));
}
