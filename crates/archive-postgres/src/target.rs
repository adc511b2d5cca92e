//! Which Postgres, from one URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use switchyard_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

const SCHEMA: &str = "switchyard";

/// How long one attempt to connect may take, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A server, a database and a schema in it, as `postgres://user:password@host:port/database` says.
///
/// Besides what Postgres itself knows, the URL takes `schema` (`switchyard` if not given), `sslmode` and
/// `sslrootcert`. `sslmode` is `disable` (as if not given) or `require`; with `require` (or `verify-full`, which is
/// the same here) the server's certificate is checked, against the system's roots or the file `sslrootcert`.
#[derive(Clone)]
pub struct Target {
    pub(crate) config: Config,
    pub(crate) schema: String,
    name: Arc<str>,
    tls: bool,
    root_certificates: Option<PathBuf>,
}

/// Not shown with its password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("schema", &self.schema).finish()
    }
}

/// "Postgres at host:port/database", for sentences.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("a Postgres URL begins with postgres:// or postgresql://")]
    NotAUrl,
    #[error("the Postgres URL: {0}")]
    Malformed(String),
    #[error("the schema `{0}` is not a name: up to 63 lowercase letters, digits and _, no digit first")]
    Schema(String),
    #[error("sslmode is `{0}`, expected disable, require or verify-full")]
    SslMode(String),
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(url: &str) -> Result<Self, InvalidTarget> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(InvalidTarget::NotAUrl);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut schema = SCHEMA.to_owned();
        let mut tls = false;
        let mut root_certificates = None;
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = percent_decode_str(value).decode_utf8_lossy();
            match key {
                "schema" => schema = decoded.into_owned(),
                "sslmode" => tls = wants_tls(&decoded)?,
                "sslrootcert" => root_certificates = Some(PathBuf::from(decoded.as_ref())),
                _ => theirs.push(pair),
            }
        }
        check_schema(&schema)?;
        let config = parse(&format!("{base}?{}", theirs.join("&")))?;
        let config = prepared(config, &schema, tls);
        let name = name_of(&config).into();
        Ok(Self { config, schema, name, tls, root_certificates })
    }
}

impl Target {
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The same database, another schema.
    pub fn with_schema(&self, schema: &str) -> Result<Self, InvalidTarget> {
        check_schema(schema)?;
        let config = prepared(self.config.clone(), schema, self.tls);
        Ok(Self { config, schema: schema.to_owned(), ..self.clone() })
    }

    pub(crate) fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        let roots = if self.tls { self.roots()? } else { RootCertStore::empty() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| StoreError::unavailable(format!("TLS cannot be set up: {e}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, StoreError> {
        let mut roots = RootCertStore::empty();
        match &self.root_certificates {
            Some(file) => {
                let unread = |e: &dyn fmt::Display| {
                    StoreError::unavailable(format!("cannot read certificates from {}: {e}", file.display()))
                };
                for certificate in CertificateDer::pem_file_iter(file).map_err(|e| unread(&e))? {
                    roots.add(certificate.map_err(|e| unread(&e))?).map_err(|e| unread(&e))?;
                }
            }
            // One that the system has and nobody can read is not the reason why a server is not trusted.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        Ok(roots)
    }
}

fn wants_tls(mode: &str) -> Result<bool, InvalidTarget> {
    match mode {
        "disable" => Ok(false),
        "require" | "verify-full" => Ok(true),
        other => Err(InvalidTarget::SslMode(other.to_owned())),
    }
}

/// Names that need no quotes, because they also stand in the search path.
fn check_schema(schema: &str) -> Result<(), InvalidTarget> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins && schema.len() <= 63 && schema.chars().all(valid) {
        return Ok(());
    }
    Err(InvalidTarget::Schema(schema.to_owned()))
}

fn parse(url: &str) -> Result<Config, InvalidTarget> {
    url.trim_end_matches('?').parse::<Config>().map_err(|e| {
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        InvalidTarget::Malformed(why)
    })
}

fn prepared(mut config: Config, schema: &str, tls: bool) -> Config {
    config.ssl_mode(if tls { SslMode::Require } else { SslMode::Disable });
    config.options(format!("-c search_path={schema}"));
    if config.get_application_name().is_none() {
        config.application_name("switchyard");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config
}

fn name_of(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("Postgres at {host}:{port}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_which_schema() {
        let target: Target =
            "postgres://ada:secret@db.example.com:5433/yard?schema=tenant_a&sslmode=require".parse().unwrap();
        assert_eq!(target.to_string(), "Postgres at db.example.com:5433/yard");
        assert_eq!((target.schema(), target.tls), ("tenant_a", true));
        assert_eq!(target.config.get_options(), Some("-c search_path=tenant_a"));
        assert!(!format!("{target:?}").contains("secret"));
        let plain: Target = "postgresql://ada@db/yard".parse().unwrap();
        assert_eq!((plain.schema(), plain.tls), ("switchyard", false));
        let socket: Target = "postgres://ada@/yard?host=%2Frun%2Fpg&port=5".parse().unwrap();
        assert_eq!(socket.to_string(), "Postgres at /run/pg:5/yard");
    }

    #[test]
    fn a_bad_url_is_told_what_is_wrong_with_it() {
        let refused = |url: &str| url.parse::<Target>().unwrap_err().to_string();
        assert_eq!(refused("mysql://x"), "a Postgres URL begins with postgres:// or postgresql://");
        assert_eq!(
            refused("postgres://x/y?schema=a-b"),
            "the schema `a-b` is not a name: up to 63 lowercase letters, digits and _, no digit first"
        );
        assert_eq!(
            refused("postgres://x/y?sslmode=prefer"),
            "sslmode is `prefer`, expected disable, require or verify-full"
        );
        assert_eq!(refused("postgres://x/y?colour=red"), "the Postgres URL: unknown option `colour`");
        assert!(refused("postgres://x:port/y").starts_with("the Postgres URL: "));
    }
}
