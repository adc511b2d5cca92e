//! TLS as in libpq: `sslmode` says whether TLS is used, and how much of the server's certificate is checked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use switchyard_store::StoreError;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a connection is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    /// Encrypts if the server can; does not protect against a man in the middle.
    #[default]
    Prefer,
    /// Does not protect against a man in the middle, unless the URL names a root certificate: then as `VerifyCa`.
    Require,
    /// The certificate must come from a trusted authority.
    VerifyCa,
    /// The certificate must also name this server.
    VerifyFull,
}

impl Mode {
    pub(crate) const WORDS: &str = "disable, prefer, require, verify-ca or verify-full";

    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }

    pub(crate) fn as_driver(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// The TLS settings of the URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) mode: Mode,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Tls {
    pub(crate) fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let unusable =
            |error: &dyn fmt::Display| StoreError::unavailable(format!("TLS cannot be set up: {error}"));
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(self.verifier(provider)?));
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let own = config.with_client_auth_cert(certificates(certificate)?, private_key(key)?);
                own.map_err(|error| unfit(key, certificate, &error))?
            }
            _ => config.with_no_client_auth(),
        };
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Verifier, StoreError> {
        let checked = match self.mode {
            Mode::Disable | Mode::Prefer => Checked::Nothing,
            Mode::Require if self.root_certificates.is_none() => Checked::Nothing,
            Mode::Require | Mode::VerifyCa => Checked::Authority(self.roots(&provider)?),
            Mode::VerifyFull => Checked::Everything(self.roots(&provider)?),
        };
        Ok(Verifier { checked, provider })
    }

    fn roots(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, StoreError> {
        let mut roots = RootCertStore::empty();
        match &self.root_certificates {
            Some(file) => {
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| unread(file, &error))?;
                }
            }
            // An unreadable certificate of the system is ignored.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| StoreError::unavailable(format!("no root certificates to trust: {error}")))
    }
}

fn unread(file: &Path, error: &dyn fmt::Display) -> StoreError {
    StoreError::unavailable(format!("cannot read certificates from {}: {error}", file.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => {
            Err(StoreError::unavailable(format!("there is no certificate in {}", file.display())))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(unread(file, &error)),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, StoreError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| {
        StoreError::unavailable(format!("cannot read the key in {}: {error}", file.display()))
    })
}

fn unfit(key: &Path, certificate: &Path, error: &Error) -> StoreError {
    let (key, certificate) = (key.display(), certificate.display());
    StoreError::unavailable(format!(
        "the key in {key} does not do for the certificate in {certificate}: {error}"
    ))
}

#[derive(Debug)]
struct Verifier {
    checked: Checked,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Checked {
    Nothing,
    Authority(Arc<WebPkiServerVerifier>),
    Everything(Arc<WebPkiServerVerifier>),
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.checked {
            Checked::Nothing => Ok(ServerCertVerified::assertion()),
            Checked::Everything(roots) => roots.verify_server_cert(certificate, between, name, ocsp, now),
            // The name is checked last: at this point the certificate is from a trusted authority.
            Checked::Authority(roots) => {
                match roots.verify_server_cert(certificate, between, name, ocsp, now) {
                    Err(Error::InvalidCertificate(
                        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                    )) => Ok(ServerCertVerified::assertion()),
                    answer => answer,
                }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
