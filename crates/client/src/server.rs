//! Information about the server.

use switchyard_api::ServerView;

use crate::{Client, Error};

impl Client {
    /// Gets the server's version and the id of its store.
    pub async fn server(&self) -> Result<ServerView, Error> {
        self.get(&["v1", "server"], &[]).await
    }
}
