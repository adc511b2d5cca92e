//! The TLS certificates that an address names.

use redis::{ClientTlsConfig, TlsCertificates};

use crate::address::{AddressError, UrlParts};

/// Reads the PEM files; `None` if the address names none.
pub(crate) fn certificates(parts: &UrlParts<'_>) -> Result<Option<TlsCertificates>, AddressError> {
    let root_cert = parts.parameter("ssl_ca_certs").map(read).transpose()?;
    let client_tls = match (parts.parameter("ssl_certfile"), parts.parameter("ssl_keyfile")) {
        (Some(certificate), Some(key)) => {
            Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
        }
        (None, None) => None,
        _ => return Err(AddressError("ssl_certfile and ssl_keyfile go together".to_owned())),
    };
    if root_cert.is_none() && client_tls.is_none() {
        return Ok(None);
    }
    if !parts.is_tls() {
        return Err(AddressError("certificates are for rediss:// URLs".to_owned()));
    }
    Ok(Some(TlsCertificates { client_tls, root_cert }))
}

fn read(path: String) -> Result<Vec<u8>, AddressError> {
    std::fs::read(&path).map_err(|error| AddressError(format!("cannot read `{path}`: {error}")))
}

/// Installs the cryptography provider of this process. The error of a second installation is ignored: it is the same
/// provider.
pub(crate) fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
