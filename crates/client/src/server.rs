//! Which server this is.

use switchyard_api::ServerView;

use crate::{Client, Error};

impl Client {
    /// What the server says about itself.
    pub async fn server(&self) -> Result<ServerView, Error> {
        self.get(&["v1", "server"], &[]).await
    }
}
