//! Where Redis is: a URL.
//!
//! With TLS (`rediss://`), `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile` in the query are paths of PEM files, as
//! they are for redis-py and for the checkpointer.

use redis::io::tcp::TcpSettings;
use redis::{Client, ClientTlsConfig, IntoConnectionInfo, TlsCertificates};
use switchyard_store::StoreError;

use crate::error::about;

/// A client for a URL, and what errors call the server: never with the password.
pub(crate) fn client(url: &str) -> Result<(Client, String), StoreError> {
    // The first caller in the process chooses; all of ours choose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let misunderstood =
        |why: String| StoreError::unavailable(format!("the address of Redis cannot be understood: {why}"));
    let (plain, files) = Files::taken_from(url);
    let info = plain.into_connection_info().map_err(|error| misunderstood(about(&error)))?;
    // Many share a connection: a small call must not wait until the answer to another has been acknowledged.
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let location = info.addr().to_string();
    let client = match files.read(url.starts_with("rediss:")).map_err(misunderstood)? {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    };
    let client = client.map_err(|error| misunderstood(about(&error)))?;
    Ok((client, location))
}

/// Certificates that a URL names.
#[derive(Default)]
struct Files {
    roots: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Files {
    /// What is left of the URL is what the client understands.
    fn taken_from(url: &str) -> (String, Self) {
        let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), Self::default()) };
        let mut files = Self::default();
        let mut rest = Vec::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "ssl_ca_certs" => files.roots = Some(decoded(value)),
                "ssl_certfile" => files.certificate = Some(decoded(value)),
                "ssl_keyfile" => files.key = Some(decoded(value)),
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        (plain, files)
    }

    fn read(&self, is_tls: bool) -> Result<Option<TlsCertificates>, String> {
        let root_cert = self.roots.as_deref().map(pem).transpose()?;
        let client_tls = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Some(ClientTlsConfig { client_cert: pem(certificate)?, client_key: pem(key)? })
            }
            (None, None) => None,
            _ => return Err("ssl_certfile and ssl_keyfile go together".to_owned()),
        };
        if root_cert.is_none() && client_tls.is_none() {
            return Ok(None);
        }
        if !is_tls {
            return Err("certificates are for rediss:// URLs".to_owned());
        }
        Ok(Some(TlsCertificates { client_tls, root_cert }))
    }
}

fn pem(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        client(url).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("redis://ada:secret@h:1/2", "h:1"),
            ("rediss://:secret@h:1", "h:1"),
            ("redis+unix:///tmp/redis.sock?db=1&pass=secret", "/tmp/redis.sock"),
            ("unix:///tmp/redis.sock", "/tmp/redis.sock"),
        ] {
            assert_eq!(client(url).unwrap().1, shown);
        }
    }

    #[test]
    fn a_bad_url_is_told_what_is_wrong_with_it() {
        for (url, why) in [
            ("http://h", "cannot be understood"),
            ("redis://h/zero", "cannot be understood"),
            ("rediss://h?ssl_ca_certs=/nowhere.pem", "cannot read `/nowhere.pem`"),
            ("rediss://h?ssl_certfile=/nowhere.pem", "go together"),
            ("redis://h?ssl_ca_certs=%2Fdev%2Fnull", "certificates are for rediss:// URLs"),
        ] {
            assert!(refused(url).contains(why), "{url}: {}", refused(url));
        }
    }
}
