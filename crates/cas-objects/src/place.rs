//! The object store to use, from one URL and settings.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use percent_encoding::percent_decode_str;

/// Time limit of the retries of a request. A caller should not wait for minutes.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES_MAX: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlace {
    #[error("`{0}` is no place for payloads, expected s3://bucket/prefix or file:///folder")]
    NotAUrl(String),
    #[error("`{0}` is not a setting of the object store")]
    Setting(String),
    #[error("cannot use {place} for payloads: {why}")]
    Unusable { place: String, why: String },
}

type Opened = (Arc<dyn ObjectStore>, Path, String);

pub(crate) fn open(
    url: &str,
    settings: impl Iterator<Item = (String, String)>,
) -> Result<Opened, InvalidPlace> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let unusable = |why: String| InvalidPlace::Unusable { place: place.to_owned(), why };
    if let Some(folder) = place.strip_prefix("file://").filter(|folder| folder.starts_with('/')) {
        return folder_at(folder)
            .map(|objects| (objects, Path::default(), place.to_owned()))
            .map_err(unusable);
    }
    let rest = place.strip_prefix("s3://").ok_or_else(|| InvalidPlace::NotAUrl(url.to_owned()))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(InvalidPlace::NotAUrl(url.to_owned()));
    }
    // The TLS client uses this cryptography provider. Another part of this process may have installed the same one
    // before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry =
        RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(retry);
    for (key, value) in settings {
        if let Ok(key) = key.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = name.parse::<AmazonS3ConfigKey>().map_err(|_| InvalidPlace::Setting(name.to_owned()))?;
        builder = builder.with_config(key, percent_decode_str(value).decode_utf8_lossy());
    }
    // An explicit http:// endpoint allows unencrypted connections.
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    let objects = builder.build().map_err(|e| unusable(e.to_string()))?;
    let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|e| unusable(e.to_string()))?;
    Ok((Arc::new(objects), prefix, place.to_owned()))
}

/// A store in a local folder. Each object is synced to disk before `put` returns.
fn folder_at(folder: &str) -> Result<Arc<dyn ObjectStore>, String> {
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let objects = LocalFileSystem::new_with_prefix(folder).map_err(|e| e.to_string())?;
    Ok(Arc::new(objects.with_fsync(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        open(url, std::iter::empty()).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_bad_place_is_told_what_is_wrong_with_it() {
        let expected = "is no place for payloads, expected s3://bucket/prefix or file:///folder";
        for url in ["ftp://x", "s3://", "file://relative", ""] {
            assert_eq!(refused(url), format!("`{url}` {expected}"));
        }
        assert_eq!(refused("s3://bucket?colour=red"), "`colour` is not a setting of the object store");
        let text = refused("s3://bucket/a//b?aws_region=eu-central-1");
        assert!(text.starts_with("cannot use s3://bucket/a//b for payloads: "), "{text}");
        let text = refused("file:///dev/null/folder");
        assert!(text.starts_with("cannot use file:///dev/null/folder for payloads: "), "{text}");
    }

    #[test]
    fn settings_of_others_are_left_alone() {
        let settings = [("AWS_REGION", "eu-central-1"), ("AWS_PROFILE_X", "x"), ("HOME", "/root")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let (_, prefix, name) = open("s3://bucket/a/b/", settings.into_iter()).unwrap();
        assert_eq!((prefix.as_ref(), name.as_str()), ("a/b", "s3://bucket/a/b/"));
    }
}
