//! `GET /v1/server`: the server's version and the id of its store.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use switchyard_api::ServerView;

use crate::ServerState;
use crate::api::Api;

pub(super) fn register(api: &mut Api) {
    let server = json!({
        "type": "object",
        "required": ["version", "store"],
        "properties": {
            "version": { "type": "string", "description": "Of Switchyard" },
            "store": {
                "type": ["string", "null"],
                "description": "Names the place where it keeps runs: the same for the same data folder",
            },
        },
    });
    let show = api.operation("server", "showServer", "Which server this is");
    api.get("/v1/server", show.answer(200, "What it says about itself", server), show_server);
}

async fn show_server(State(state): State<ServerState>) -> Json<ServerView> {
    let store = state.store.as_deref().map(str::to_owned);
    Json(ServerView { version: env!("CARGO_PKG_VERSION").to_owned(), store })
}
