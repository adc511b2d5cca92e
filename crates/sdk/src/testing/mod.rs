//! Tests of workflows: a real engine in a temporary folder, with a clock that only the test moves.
//!
//! ```
//! use std::time::Duration;
//!
//! use switchyard_sdk::testing::TestSwitchyard;
//! use switchyard_sdk::{HandlerError, NodeState, RunStatus};
//!
//! const REMIND: &str = r#"
//! name: remind
//! nodes:
//!   nap: { type: sleep, duration: 2h }
//!   send:
//!     type: function
//!     function: send
//!     needs: [nap]
//!     retry: { max_attempts: 3, initial: 10m }
//! "#;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let run = TestSwitchyard::new()
//!     .handler("send", |_: (), cx| async move {
//!         match cx.attempt() {
//!             1 => Err(HandlerError::retryable("busy", "not now")),
//!             attempt => Ok(attempt),
//!         }
//!     })
//!     .start(REMIND, ())
//!     .await?;
//!
//! run.advance(Duration::from_secs(3600)).await?;
//! run.look().await?.assert_status(RunStatus::Running).assert_node("nap", NodeState::Waiting);
//!
//! let outcome = run.run_to_end::<u32>().await?;
//! assert_eq!(outcome.output()?, 2);
//! run.look().await?.assert_attempts("send", 2);
//! # Ok(())
//! # }
//! ```
//!
//! The helpers never sleep: they wait for notifications of the engine, and move the clock only when no run can progress
//! without it.
//!
//! The test clock governs runs: sleeps, retries, deadlines, the time-outs of approvals and signals. Executions take
//! real time: the machine's clock measures the `timeout` of a `function` node and a `tokio::time::sleep` in a handler.
//! Do not pause tokio's own clock (`start_paused`): tokio would take the engine's waits for its disk for idleness.

mod calm;
mod error;
mod observed;
mod run;
mod switchyard;

pub use error::TestError;
pub use observed::ObservedRun;
pub use run::TestRun;
pub use switchyard::TestSwitchyard;
