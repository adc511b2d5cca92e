//! Workflows in tests: a real engine in a temporary folder, and a clock that only the test moves.
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
//! Nothing here sleeps: the helpers wait for the engine to tell them that something has happened, and move the clock
//! when nothing can happen any more without it.
//!
//! The clock is that of runs: sleeps, retries, deadlines, the time-outs of approvals and signals. What one execution
//! takes is real: the `timeout` of a `function` node is measured by the machine, and so is a `tokio::time::sleep` in a
//! handler. Do not pause tokio's own clock (`start_paused`): the engine waits for its disk, and tokio would take that
//! for idleness.

mod calm;
mod error;
mod observed;
mod run;
mod switchyard;

pub use error::TestError;
pub use observed::ObservedRun;
pub use run::TestRun;
pub use switchyard::TestSwitchyard;
