//! The caller that requests a change.

use std::fmt;
use std::sync::Arc;

use switchyard_store::ApiKeyRecord;

/// The name of a caller without an API key, at a server that requires none.
const ANONYMOUS: &str = "api";

/// The name under which Switchyard itself starts runs.
const SWITCHYARD: &str = "switchyard";

/// A caller of the engine. Histories record its name; logs show the id of its key beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    key_id: Option<Arc<str>>,
}

impl Principal {
    /// The holder of an API key, under the name of the key.
    pub fn of_key(key: &ApiKeyRecord) -> Self {
        Self { name: key.name.as_str().into(), key_id: Some(key.id.as_str().into()) }
    }

    /// A user or a program of this machine, under the name that it gives itself.
    pub fn local(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), key_id: None }
    }

    /// A program of this machine, at a server that requires no keys.
    pub fn anonymous() -> Self {
        Self::local(ANONYMOUS)
    }

    /// Switchyard's own duties.
    pub fn switchyard() -> Self {
        Self::local(SWITCHYARD)
    }

    /// The same caller on behalf of another name: histories show that name, logs still show the key.
    pub fn on_behalf_of(&self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), key_id: self.key_id.clone() }
    }

    /// The name that histories record.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Id of the API key that the caller sent, if any.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key_id {
            Some(key_id) => write!(f, "{} (key {key_id})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::{Hash, Timestamp};

    use super::*;

    #[test]
    fn a_caller_is_shown_with_its_key_and_recorded_by_its_name() {
        let key = ApiKeyRecord {
            id: "0123456789abcdef".into(),
            name: "ci".into(),
            digest: Hash::of(b"secret"),
            created_at: Timestamp::from_millis(0),
            revoked_at: None,
        };
        let ci = Principal::of_key(&key);
        assert_eq!((&**ci.name(), ci.to_string()), ("ci", "ci (key 0123456789abcdef)".into()));
        let ada = ci.on_behalf_of("ada");
        assert_eq!((&**ada.name(), ada.key_id()), ("ada", Some("0123456789abcdef")));
        assert_eq!(Principal::local("ada").to_string(), "ada");
        assert_eq!(Principal::anonymous().to_string(), "api");
        assert_eq!(Principal::switchyard().to_string(), "switchyard");
    }
}
