//! Durable workflows in a Rust program.
//!
//! A workflow is a graph of steps in YAML or JSON. Its `function` nodes call handlers: async functions of this
//! program, with typed input and output. A run that was accepted ends, whatever is killed on the way: every step is
//! in the data folder before the next one starts, and the next process that opens the folder goes on from there.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use switchyard_sdk::{Context, HandlerError, Yard};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Greet {
//!     name: String,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Greeting {
//!     text: String,
//! }
//!
//! async fn greet(input: Greet, cx: Context) -> Result<Greeting, HandlerError> {
//!     if input.name.is_empty() {
//!         return Err(HandlerError::permanent("no_name", "whom shall I greet?"));
//!     }
//!     cx.log(format!("attempt {}", cx.attempt()));
//!     Ok(Greeting { text: format!("Hello, {}!", input.name) })
//! }
//!
//! const WORKFLOW: &str = r#"
//! name: greet
//! nodes:
//!   greet:
//!     type: function
//!     function: greet
//!     input: { name: "${{ input.name }}" }
//!     retry: { max_attempts: 3 }
//! "#;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path();
//! // `data` is a folder, such as "./switchyard-data".
//! let yard = Yard::builder(data)
//!     .handler("greet", greet)
//!     .handler("shout", |input: String, _| async move { Ok(input.to_uppercase()) })
//!     .open()
//!     .await?;
//!
//! let outcome = yard.run::<Greeting>(WORKFLOW, Greet { name: "Ada".into() }).await?;
//! assert_eq!(outcome.output()?.text, "Hello, Ada!");
//!
//! let refused = yard.run::<Greeting>(WORKFLOW, Greet { name: String::new() }).await?;
//! assert_eq!(refused.failure().map(|failure| failure.code()), Some("no_name"));
//!
//! yard.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`testing`] runs a workflow with a clock that a test moves: a `sleep` of two hours takes no time.
//!
//! # What is guaranteed
//!
//! Exactly once is about state: a step's result changes its run once. A handler can run twice, if its process dies
//! after its effect and before its result was recorded; [`Context::idempotency_key`] is for whoever must not see the
//! effect twice. A handler that blocks its thread cannot be stopped, and holds a thread of the runtime: use
//! `tokio::task::spawn_blocking`.
//!
//! # What is not there
//!
//! Handlers run in the process that opened the folder; there is no client for a server yet. A [`Context`] has no
//! heartbeat, because a claim within one process needs none; no checkpoint and no stream of chunks, because nothing
//! stores them yet; and no request to stop, because a cancelled handler is dropped where it awaits, without a grace.

#![warn(missing_docs)]

mod context;
mod error;
mod events;
mod handler;
mod outcome;
mod remote;
mod submit;
pub mod testing;
mod worker;
mod workflow;
mod yard;

pub use context::Context;
pub use error::{Error, HandlerError};
pub use events::RunEvents;
pub use outcome::{RunFailure, RunOutcome};
pub use remote::{RemoteYard, RemoteYardBuilder};
pub use submit::SubmitOptions;
pub use worker::{Worker, WorkerBuilder};
pub use workflow::Workflow;
pub use yard::{PendingApproval, Yard, YardBuilder};

pub use switchyard_api::Event;
pub use switchyard_client::{Client, Error as ServerError, Problem};
pub use switchyard_core::error::RunError;
pub use switchyard_core::run::{NodeState, RunStatus};
pub use switchyard_core::{ApprovalId, RunId, Timestamp};
pub use switchyard_lang::{Diagnostics, Program};
pub use switchyard_runtime::{Engine, EngineError, NodeView, Recovered, RunView};
pub use switchyard_store::WorkflowRecord;
