//! Durable workflows in a Rust program.
//!
//! A workflow is a graph of steps in YAML or JSON. Its `function` nodes call handlers: async functions of this
//! program, with typed input and output. An accepted run ends even if any part crashes: every step is stored in the
//! data folder before the next one starts, and the next process that opens the folder continues from there.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use switchyard_sdk::{Context, HandlerError, Switchyard};
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
//! let switchyard = Switchyard::builder(data)
//!     .handler("greet", greet)
//!     .handler("shout", |input: String, _| async move { Ok(input.to_uppercase()) })
//!     .open()
//!     .await?;
//!
//! let outcome = switchyard.run::<Greeting>(WORKFLOW, Greet { name: "Ada".into() }).await?;
//! assert_eq!(outcome.output()?.text, "Hello, Ada!");
//!
//! let refused = switchyard.run::<Greeting>(WORKFLOW, Greet { name: String::new() }).await?;
//! assert_eq!(refused.failure().map(|failure| failure.code()), Some("no_name"));
//!
//! switchyard.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`testing`] runs a workflow with a clock that a test moves: a `sleep` of two hours takes no time.
//!
//! # What is guaranteed
//!
//! State changes exactly once: a step's result changes its run once. A handler can run twice, if its process dies after
//! the effect and before the result is recorded; pass [`Context::idempotency_key`] to systems that must not see the
//! effect twice. A handler that blocks its thread cannot be stopped, and occupies a thread of the runtime: use
//! `tokio::task::spawn_blocking`.
//!
//! # While a handler works
//!
//! Its [`Context`] saves checkpoints, from which the next attempt or the next process continues; streams output to
//! followers of the run; and reports cancellation:
//!
//! ```
//! # use switchyard_sdk::{Context, HandlerError};
//! async fn copy(pages: Vec<String>, cx: Context) -> Result<usize, HandlerError> {
//!     let done: usize = cx.checkpoint()?.unwrap_or(0);
//!     for (number, page) in pages.iter().enumerate().skip(done) {
//!         if cx.is_cancelled() {
//!             return Err(HandlerError::retryable("stopped", "the run was cancelled"));
//!         }
//!         cx.stream(page).await?;
//!         cx.save_checkpoint(number + 1).await?;
//!     }
//!     Ok(pages.len())
//! }
//! ```
//!
//! # At a server
//!
//! [`Worker::connect`] runs the same handlers for a server, and [`Switchyard::connect`] submits, follows and controls
//! runs on the server with the same methods:
//!
//! ```no_run
//! # use switchyard_sdk::{Context, HandlerError, Worker, Switchyard};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn greet(name: String, _: Context) -> Result<String, HandlerError> { Ok(name) }
//! let url = "http://127.0.0.1:7070";
//! let worker = Worker::connect(url).handler("greet", greet).start().await?;
//! let switchyard = Switchyard::connect(url).open().await?;
//! let workflow = "name: hi\nnodes:\n  greet: { type: function, function: greet, input: Ada }\n";
//! let run = switchyard.submit(workflow, ()).await?;
//! let mut events = switchyard.follow(run, 0);
//! while let Some(event) = events.next().await? {
//!     println!("{} {}", event.seq, event.kind);
//! }
//! println!("{}", switchyard.wait::<String>(run).await?.output()?);
//! worker.shut_down().await;
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod context;
mod error;
mod events;
mod handler;
mod outcome;
mod remote;
mod submit;
mod switchyard;
pub mod testing;
mod worker;
mod workflow;

pub use context::Context;
pub use error::{Error, HandlerError};
pub use events::RunEvents;
pub use outcome::{RunFailure, RunOutcome};
pub use remote::{RemoteSwitchyard, RemoteSwitchyardBuilder};
pub use submit::SubmitOptions;
pub use switchyard::{PendingApproval, Switchyard, SwitchyardBuilder};
pub use worker::{Worker, WorkerBuilder};
pub use workflow::Workflow;

pub use switchyard_api::Event;
pub use switchyard_base::Diagnostics;
pub use switchyard_client::{Client, Error as ServerError, Problem};
pub use switchyard_core::error::RunError;
pub use switchyard_core::run::{LogLevel, NodeState, RunStatus};
pub use switchyard_core::{ApprovalId, RunId, Timestamp};
pub use switchyard_lang::Program;
pub use switchyard_runtime::{Engine, EngineError, NodeView, Principal, Recovered, RunView};
pub use switchyard_store::WorkflowRecord;
