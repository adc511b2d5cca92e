//! A typed client of the HTTP API of a Switchyard server.
//!
//! ```no_run
//! use serde_json::json;
//! use switchyard_client::{Client, Submission};
//!
//! # async fn example() -> Result<(), switchyard_client::Error> {
//! let client = Client::new("http://127.0.0.1:7070")?;
//! let run = client.submit(&Submission::named("hello", json!({"name": "Ada"}))).await?.run_id;
//! let mut events = client.follow(run, 0);
//! while let Some(event) = events.next().await? {
//!     println!("{} {}", event.seq, event.kind);
//! }
//! println!("{}", client.run(run).await?.output);
//! # Ok(())
//! # }
//! ```
//!
//! The client repeats a request while the server does not answer, with exponential back-off. Every change carries an
//! id, so the server makes it once even if the client repeats it. If the outcome stays unknown,
//! [`Error::OutcomeUnknown`] names the id, and [`Client::with_operation_id`] repeats the change with it. A worker's
//! claims, chunks and log lines have no id: the client does not repeat them if the server may have received them. If
//! the server refuses a request, the error is [`Error::Refused`] with its [`Problem`]: a stable code, a sentence, a
//! hint.
//!
//! This crate never reads the environment (its HTTP client honours the usual proxy variables, except for addresses
//! of this machine), and never decides what happens to a run.

#![warn(missing_docs)]

mod approvals;
mod bulk;
mod control;
mod error;
mod events;
mod keys;
mod patches;
mod queues;
mod request;
mod retry;
mod runs;
mod schedules;
mod server;
mod sse;
mod tasks;
mod workers;
mod workflows;

pub use control::Fork;
pub use error::Error;
pub use events::Events;
pub use keys::NewKey;
pub use patches::Patch;
pub use request::{Client, ClientBuilder};
pub use runs::{Count, EventPage, RunsQuery, Submission};
pub use schedules::NewSchedule;
pub use tasks::{ClaimTasks, TaskFailure};

pub use switchyard_api as documents;
pub use switchyard_api::Problem;
pub use switchyard_base::PatchOp;
pub use switchyard_core::OperationId;
