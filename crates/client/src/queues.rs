//! Queues and dead letters.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::{DeadLetterGroup, DeadLetterView, QueuesView, Redriven};
use switchyard_base::HumanDuration;

use crate::request::list;
use crate::{Client, Error};

#[derive(Deserialize)]
struct Purged {
    purged: usize,
}

impl Client {
    /// Shows how many tasks wait for workers, by type and priority.
    pub async fn queues(&self) -> Result<QueuesView, Error> {
        self.get(&["v1", "queues"], &[]).await
    }

    /// Lists at most `limit` dead letters, newest first.
    pub async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetterView>, Error> {
        let answer: Value = self.get(&["v1", "dead-letters"], &[("limit", limit.to_string())]).await?;
        list(answer, "dead_letters").map_err(|error| self.strange(error.to_string()))
    }

    /// Counts dead letters by kind, node and reason, the largest groups first.
    pub async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, Error> {
        let answer: Value =
            self.get(&["v1", "dead-letters", "groups"], &[("limit", limit.to_string())]).await?;
        list(answer, "groups").map_err(|error| self.strange(error.to_string()))
    }

    /// Gets a dead letter with all its deliveries.
    pub async fn dead_letter(&self, id: &str) -> Result<DeadLetterView, Error> {
        self.get(&["v1", "dead-letters", id], &[]).await
    }

    /// Redrives a dead letter: the task or signal is delivered again.
    pub async fn redrive(&self, id: &str, by: &str) -> Result<Redriven, Error> {
        self.change(&["v1", "dead-letters", id, "redrive"], &json!({ "by": by })).await
    }

    /// Removes a dead letter.
    pub async fn remove_dead_letter(&self, id: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &["v1", "dead-letters", id]);
        self.send_change(request).await.map(drop)
    }

    /// Removes dead letters older than `older_than`, or all of them if `None`. Returns how many were removed.
    pub async fn purge_dead_letters(&self, older_than: Option<Duration>) -> Result<usize, Error> {
        let body = match older_than {
            Some(age) => json!({ "older_than": HumanDuration(age).to_string() }),
            None => json!({ "all": true }),
        };
        let purged: Purged = self.change(&["v1", "dead-letters", "purge"], &body).await?;
        Ok(purged.purged)
    }
}
