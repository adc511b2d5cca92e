//! Secrets of nodes: read at the call, put into the request or the environment of the program, never stored.
//!
//! A called service or program may send secrets back. They are removed from outputs and errors before these become
//! part of the run.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Map, Value};
use switchyard_core::NodeError;
use switchyard_lang::Scope;

/// The largest secret, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// The shortest text that is redacted: shorter ones occur in too many places that have nothing to do with the secret.
const REDACTED_BYTES_MIN: usize = 4;

/// The sources of secrets: the files of a folder first, then the given values.
#[derive(Clone, Default)]
pub struct Secrets {
    /// A folder with one file for each secret, which has the secret's name.
    pub dir: Option<PathBuf>,
    pub values: BTreeMap<String, String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("dir", &self.dir).field("values", &self.values.keys()).finish()
    }
}

impl Secrets {
    /// Reads a secret. Files are read each time, so that a secret can be rotated while the worker runs.
    async fn get(&self, name: &str) -> Result<String, NodeError> {
        if let Some(dir) = &self.dir {
            match read(dir.join(name)).await {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(text) => return Ok(text),
                Err(error) => {
                    let message = format!("secret `{name}` cannot be read: {error}");
                    return Err(NodeError::retryable("secret_unreadable", message));
                }
            }
        }
        // Retryable: another worker may have the secret, or this one may get it soon.
        let missing =
            || NodeError::retryable("secret_missing", format!("this worker has no secret `{name}`"));
        self.values.get(name).cloned().ok_or_else(missing)
    }
}

/// The text of a file, without the line break that editors put at its end.
async fn read(file: PathBuf) -> io::Result<String> {
    let bytes_max = SECRET_BYTES_MAX;
    if tokio::fs::metadata(&file).await?.len() > bytes_max {
        let message = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let text = tokio::fs::read_to_string(&file).await?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// The secrets of one call.
#[derive(Default)]
pub struct Revealed {
    values: Vec<(String, String)>,
    /// The texts to redact with their replacements, the longest first.
    forms: Vec<(Vec<u8>, String)>,
}

impl fmt::Debug for Revealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter().map(|(name, _)| name)).finish()
    }
}

impl Revealed {
    pub(crate) const NONE: Self = Self { values: Vec::new(), forms: Vec::new() };

    pub(crate) async fn look_up(secrets: &Secrets, names: &[String]) -> Result<Self, NodeError> {
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            values.push((name.clone(), secrets.get(name).await?));
        }
        let mut forms: Vec<(Vec<u8>, String)> = values.iter().flat_map(forms_of).collect();
        forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
        Ok(Self { values, forms })
    }

    /// A copy of the scope that contains `secrets`.
    pub(crate) fn added_to(&self, scope: &Scope) -> Scope {
        let mut scope = scope.clone();
        let values = self.values.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
        scope.set("secrets", Value::Object(values.collect::<Map<_, _>>()));
        scope
    }

    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.forms.iter().any(|(form, _)| find(text, form).is_some())
    }

    /// Redacts external bytes before they are parsed.
    pub(crate) fn redact_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let mut bytes = bytes;
        for (form, instead) in &self.forms {
            if find(&bytes, form).is_some() {
                bytes = replace(&bytes, form, instead.as_bytes());
            }
        }
        bytes
    }

    /// The length of the longest form of a secret, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.forms.first().map_or(0, |(form, _)| form.len())
    }

    /// Redacts the end of a text, which may begin within a secret.
    pub(crate) fn redact_tail(&self, mut tail: Vec<u8>) -> Vec<u8> {
        for (form, instead) in &self.forms {
            let cut = (1..form.len()).find(|cut| tail.starts_with(&form[*cut..]));
            if let Some(cut) = cut.filter(|cut| form.len() - cut >= REDACTED_BYTES_MIN) {
                tail.splice(..form.len() - cut, instead.bytes());
            }
        }
        self.redact_bytes(tail)
    }

    pub(crate) fn redact_error(&self, error: NodeError) -> NodeError {
        if !self.is_in(error.message.as_bytes()) {
            return error;
        }
        let message = self.redact_text(&error.message);
        NodeError { message: message.into(), ..error }
    }

    /// Redacts a value, including escaped text, numbers and keys.
    pub(crate) fn redact(&self, value: Value) -> Value {
        if self.forms.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.redact_text(&text)),
            Value::Number(number) if self.is_in(number.to_string().as_bytes()) => {
                Value::String(self.redact_text(&number.to_string()))
            }
            Value::Array(list) => list.into_iter().map(|value| self.redact(value)).collect(),
            Value::Object(map) => Value::Object(
                map.into_iter().map(|(key, value)| (self.redact_text(&key), self.redact(value))).collect(),
            ),
            other => other,
        }
    }

    fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes().to_vec())).into_owned()
    }
}

/// The forms in which a secret can be sent back: verbatim, in a URL, in JSON, in base64.
fn forms_of((name, value): &(String, String)) -> Vec<(Vec<u8>, String)> {
    let json = Value::String(value.clone()).to_string();
    let mut forms = vec![value.clone(), value.trim().to_owned(), json[1..json.len() - 1].to_owned()];
    forms.push(STANDARD.encode(value));
    forms.extend(in_urls(value));
    forms.sort();
    forms.dedup();
    forms.retain(|form| form.len() >= REDACTED_BYTES_MIN);
    forms.into_iter().map(|form| (form.into_bytes(), format!("[secret {name}]"))).collect()
}

/// The encodings of a value in the query and in the path of a URL.
fn in_urls(value: &str) -> Vec<String> {
    let Ok(mut url) = Url::parse("http://x/") else { return Vec::new() };
    url.query_pairs_mut().append_pair("", value);
    let query = url.query().unwrap_or_default().trim_start_matches('=').to_owned();
    url.set_path(value);
    let path = url.path().trim_start_matches('/').to_owned();
    vec![query.replace('+', "%20"), query, path]
}

fn find(text: &[u8], form: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, form)
}

fn replace(text: &[u8], form: &[u8], instead: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, form) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(instead);
        rest = &rest[at + form.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn revealed(value: &str) -> Revealed {
        let secrets = Secrets { dir: None, values: BTreeMap::from([("TOKEN".to_owned(), value.to_owned())]) };
        Revealed::look_up(&secrets, &["TOKEN".to_owned()]).await.unwrap()
    }

    #[tokio::test]
    async fn a_secret_is_taken_out_in_every_form_that_it_comes_back_in() {
        let secrets = revealed("s3cr\"t/+ x").await;
        for text in
            ["s3cr\"t/+ x", "s3cr\\\"t/+ x", "s3cr%22t%2F%2B+x", "s3cr%22t%2F%2B%20x", "czNjciJ0LysgeA=="]
        {
            let found = secrets.redact(json!([{"a": format!("<{text}>")}, {text: 1}]));
            assert_eq!(found, json!([{"a": "<[secret TOKEN]>"}, {"[secret TOKEN]": 1}]), "{text}");
        }
        assert_eq!(revealed("123456").await.redact(json!([123456, 7])), json!(["[secret TOKEN]", 7]));
        let error = NodeError::permanent("c", "got s3cr\"t/+ x");
        assert_eq!(&*secrets.redact_error(error).message, "got [secret TOKEN]");
    }

    #[tokio::test]
    async fn a_text_that_begins_within_a_secret_gives_nothing_away() {
        let secrets = revealed("correct-horse").await;
        assert_eq!(secrets.redact_tail(b"ct-horse failed".to_vec()), b"[secret TOKEN] failed");
        assert_eq!(secrets.redact_tail(b"e failed: correct-horse".to_vec()), b"e failed: [secret TOKEN]");
    }

    #[tokio::test]
    async fn short_values_are_left_alone() {
        assert_eq!(revealed("on").await.redact(json!("on and on")), json!("on and on"));
    }

    #[tokio::test]
    async fn files_come_before_values_and_are_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let values = BTreeMap::from([("A".to_owned(), "given".to_owned())]);
        let secrets = Secrets { dir: Some(folder.path().to_owned()), values };
        assert_eq!(secrets.get("A").await.unwrap(), "given");
        std::fs::write(folder.path().join("A"), "from a file\r\n").unwrap();
        assert_eq!(secrets.get("A").await.unwrap(), "from a file");
        let missing = secrets.get("B").await.unwrap_err();
        assert_eq!((&*missing.code, missing.retryable), ("secret_missing", true));
        assert_eq!(&*missing.message, "this worker has no secret `B`");
        std::fs::create_dir(folder.path().join("C")).unwrap();
        assert_eq!(&*secrets.get("C").await.unwrap_err().code, "secret_unreadable");
        assert!(!format!("{secrets:?}").contains("given"));
    }
}
