//! API keys.

use reqwest::Method;
use serde_json::{Value, json};
use switchyard_api::{ApiKeyView, DrawnKey, KeyText};

use crate::request::list;
use crate::retry::Repeat;
use crate::{Client, Error};

/// A new key with its text, which is stored nowhere else.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewKey {
    /// The key as the server stores it.
    pub record: ApiKeyView,
    /// The text to send as `Authorization: Bearer …`.
    pub text: KeyText,
}

impl Client {
    /// Lists all keys, including revoked ones, oldest first.
    pub async fn keys(&self) -> Result<Vec<ApiKeyView>, Error> {
        let answer: Value = self.get(&["v1", "keys"], &[]).await?;
        list(answer, "keys").map_err(|error| self.strange(error.to_string()))
    }

    /// Creates a key. The client generates it and does not send the secret. The key is valid when this returns.
    pub async fn create_key(&self, name: &str) -> Result<NewKey, Error> {
        let text = KeyText::drawn(rand::random(), rand::random());
        let body = json!({ "name": name, "drawn": DrawnKey::from(&text) });
        match self.change(&["v1", "keys"], &body).await {
            Ok(record) => Ok(NewKey { record, text }),
            // If this was the first key and the response was lost, the server now rejects requests without a key: look
            // the key up with the key itself.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 401) => {
                match self.made(&text).await {
                    Some(record) => Ok(NewKey { record, text }),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn made(&self, text: &KeyText) -> Option<ApiKeyView> {
        let request = self.request(Method::GET, &["v1", "keys"]).bearer_auth(text);
        let answer: Value = self.send(request, Repeat::Harmless).await.ok()?;
        let keys: Vec<ApiKeyView> = list(answer, "keys").ok()?;
        keys.into_iter().find(|key| key.id == text.id())
    }

    /// Revokes a key: the server rejects requests with it from now on.
    pub async fn revoke_key(&self, id: &str) -> Result<ApiKeyView, Error> {
        self.change(&["v1", "keys", id, "revoke"], &json!({})).await
    }
}
