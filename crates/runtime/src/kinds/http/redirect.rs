//! Follows redirects: every hop is checked like the first request, and credentials stay with the origin that they
//! were written for.

use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Method, Request, Response, StatusCode, Url};
use switchyard_core::NodeError;

use super::Target;

pub(super) const REDIRECTS_MAX: usize = 10;

/// The parts of a request that a redirect needs, saved before the request is sent.
pub(super) struct Origin {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Origin {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            url: request.url().clone(),
            headers: request.headers().clone(),
            body: request.body().and_then(reqwest::Body::as_bytes).map(<[u8]>::to_vec),
        }
    }

    /// The next request, if the response is a redirect.
    pub(super) fn next(self, response: &Response, target: &Target) -> Result<Option<Request>, NodeError> {
        let status = response.status();
        let Some(location) = response.headers().get(LOCATION).filter(|_| is_redirect(status)) else {
            return Ok(None);
        };
        let bad = |why: &str| NodeError::permanent("http_redirect", format!("{target} redirects {why}"));
        let location = location.to_str().map_err(|_| bad("to something that is not a URL"))?;
        let mut url = self.url.join(location).map_err(|_| bad("to something that is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(&format!("to a URL with `{}`", url.scheme())));
        }
        // Credentials in the URL of a redirect are dropped. These calls fail only for URLs without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Some(self.request_to(url, status)))
    }

    fn request_to(mut self, url: Url, status: StatusCode) -> Request {
        if url.origin() != self.url.origin() {
            drop_credentials(&mut self.headers);
        }
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
                self.headers.remove(name);
            }
        }
        let mut request = Request::new(self.method, url);
        *request.headers_mut() = self.headers;
        *request.body_mut() = self.body.map(Into::into);
        request
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

pub(super) fn too_many(target: &Target) -> NodeError {
    let message = format!("{target}: more than {REDIRECTS_MAX} redirects");
    NodeError::permanent("http_redirect", message)
}

fn drop_credentials(headers: &mut HeaderMap) {
    let carries =
        |name: &HeaderName, value: &HeaderValue| value.is_sensitive() || is_credential(name.as_str());
    let names: Vec<HeaderName> =
        headers.iter().filter(|(name, value)| carries(name, value)).map(|(name, _)| name.clone()).collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
}

/// Whether a header name looks like that of a credential. Omitting a header by mistake makes a call fail visibly;
/// sending one by mistake reveals a secret.
fn is_credential(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "auth",
        "cookie",
        "cookie2",
        "credential",
        "credentials",
        "jwt",
        "key",
        "pass",
        "passwd",
        "session",
        "sid",
        "signature",
    ];
    const PARTS: [&str; 6] = ["authenticat", "authoriz", "apikey", "password", "secret", "token"];
    if name == "idempotency-key" {
        return false;
    }
    name.split(['-', '_', '.']).any(|word| WORDS.contains(&word))
        || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_carry_credentials_are_told_from_others() {
        for name in [
            "authorization",
            "proxy-authorization",
            "www-authenticate",
            "cookie",
            "x-api-key",
            "apikey",
            "x-auth",
            "x-auth-token",
            "x-amz-security-token",
            "private-token",
            "x-vault-token",
            "x-csrftoken",
            "x-client-secret",
            "x-functions-key",
            "ocp-apim-subscription-key",
            "x-session-id",
            "x-hub-signature",
            "x-password",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in
            ["accept", "content-type", "idempotency-key", "traceparent", "user-agent", "x-author", "x-monkey"]
        {
            assert!(!is_credential(name), "{name}");
        }
    }
}
