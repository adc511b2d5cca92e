//! Handles signals of plain workers: each is settled, dropped as stale, or stored as a dead letter with the reason.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, future, stream};
use serde_json::{Value, json};
use switchyard_core::run::{ClaimRef, LogLine, Settled};
use switchyard_core::{CasRef, RunId};
use switchyard_store::plain::{About, Found, Offer, PlainWorkers};
use switchyard_store::{DeadLetter, HotStore, StoreError};

use super::signal::{Output, Says, Signal};
use crate::engine::{SentLine, keep_lines};
use crate::kinds::Services;
use crate::payloads::PayloadError;
use crate::worker::{Begun, Prepared, Report, begin, finish};

/// How many runs have their signals settled concurrently.
const AT_ONCE: usize = 16;
/// The longest reason of a dead letter, in characters.
const REASON_CHARS_MAX: usize = 500;
/// How often a signal is tried again when its run changes meanwhile.
const LOOKS_MAX: usize = 50;

pub(super) struct Mover {
    pub(super) plain: Arc<dyn PlainWorkers>,
    pub(super) hot: Arc<dyn HotStore>,
    pub(super) services: Arc<Services>,
    /// How long a worker keeps a task that it asked for.
    pub(super) lease: Duration,
}

/// The outcome of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Applied,
    /// The signal repeats known facts, or is too late.
    Stale,
    Buried,
    /// The signal is not handled yet; a later pass tries again.
    Left,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    pub(super) settled: usize,
    pub(super) left: usize,
}

impl Pass {
    fn and(self, other: Self) -> Self {
        Self { settled: self.settled + other.settled, left: self.left + other.left }
    }
}

/// The text of a signal and its parsed form.
type Taken<'t> = (&'t String, Result<Signal, String>);

/// Why a signal was not settled.
enum Trouble {
    Malformed(String),
    Store(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            // Retrying does not help, and other signals wait behind this one.
            StoreError::Corrupt(_) => Self::Malformed(error.to_string()),
            other => Self::Store(other),
        }
    }
}

impl Mover {
    pub(super) async fn pass(&self) -> Result<Pass, StoreError> {
        let signals = self.plain.take_signals().await?;
        if !signals.is_empty() {
            // Leases and limits apply at this moment, not at the next pass of the duty.
            self.hot.reclaim().await?;
        }
        let mut by_run: HashMap<Option<RunId>, Vec<Taken<'_>>> = HashMap::new();
        for text in &signals {
            let read = Signal::read(text);
            let run = read.as_ref().ok().map(|signal| signal.about.run);
            by_run.entry(run).or_default().push((text, read));
        }
        let each: Vec<_> = by_run.into_values().map(|signals| self.settle_in_order(signals)).collect();
        let passes = stream::iter(each).buffer_unordered(AT_ONCE);
        Ok(passes.fold(Pass::default(), |sum, pass| future::ready(sum.and(pass))).await)
    }

    /// Settles the signals of one run in their order.
    async fn settle_in_order(&self, signals: Vec<Taken<'_>>) -> Pass {
        let mut pass = Pass::default();
        for (text, read) in signals {
            match self.settle(text, read).await {
                Ok(Became::Left) => pass.left += 1,
                Ok(became) => {
                    pass.settled += 1;
                    self.services.observe.metrics().signalled(became.word());
                }
                // The signal stays in its list, and the next ones are handled.
                Err(error) => {
                    tracing::error!(%error, "a signal of a plain worker could not be settled");
                    pass.left += 1;
                }
            }
        }
        pass
    }

    async fn settle(&self, text: &str, read: Result<Signal, String>) -> Result<Became, StoreError> {
        match self.try_to_settle(text, read).await {
            Ok(became) => {
                if became == Became::Stale {
                    self.plain.drop_signal(text).await?;
                }
                Ok(became)
            }
            Err(Trouble::Store(error)) => Err(error),
            Err(Trouble::Malformed(reason)) => {
                // The reason may quote the signal, and lists show it.
                let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
                tracing::warn!(%reason, "a signal of a plain worker is buried");
                let letter = DeadLetter::of_signal(text, reason, self.services.clock.now());
                self.services.archive.bury(letter).await?;
                self.plain.drop_signal(text).await?;
                Ok(Became::Buried)
            }
        }
    }

    async fn try_to_settle(&self, text: &str, read: Result<Signal, String>) -> Result<Became, Trouble> {
        let signal = read.map_err(Trouble::Malformed)?;
        let about = &signal.about;
        for _ in 0..LOOKS_MAX {
            match self.plain.find_node(about).await? {
                Found::NotHere => return self.not_here(about).await,
                Found::UnknownNode => {
                    return Err(Trouble::Malformed(format!("{} has no node `{}`", about.run, about.node)));
                }
                Found::Passed => return self.too_late(&signal).await,
                Found::Held { claim, delivery } => {
                    let theirs = match signal.claim {
                        Some(said) => said == claim,
                        None => about.delivery.is_some() && about.delivery == delivery,
                    };
                    return if theirs {
                        self.held(text, signal, claim).await
                    } else {
                        self.too_late(&signal).await
                    };
                }
                Found::Ready(offer) => {
                    if let Some(became) = self.ready(text, &signal, &offer).await? {
                        return Ok(became);
                    }
                }
            }
        }
        Ok(Became::Left)
    }

    async fn not_here(&self, about: &About) -> Result<Became, Trouble> {
        match self.services.archive.run(about.run).await? {
            None => Err(Trouble::Malformed(format!("there is no run {}", about.run))),
            Some(record) if record.status.is_terminal() => Ok(Became::Stale),
            // The hot store has lost the run; recovery restores it.
            Some(_) => Ok(Became::Left),
        }
    }

    /// Tells a worker that asked for a task not to execute it.
    async fn too_late(&self, signal: &Signal) -> Result<Became, Trouble> {
        if signal.says == Says::Started {
            self.plain.answer(&signal.about, GONE).await?;
        }
        Ok(Became::Stale)
    }

    /// Handles a signal about a valid claim.
    async fn held(&self, text: &str, signal: Signal, claim: u32) -> Result<Became, Trouble> {
        let claim = ClaimRef { run: signal.about.run, node: signal.about.node, claim };
        let report = match signal.says {
            Says::Started => return Ok(Became::Stale),
            Says::Heartbeat => {
                self.hot.heartbeat(&[claim], Some(self.lease)).await?;
                self.plain.drop_signal(text).await?;
                return Ok(Became::Applied);
            }
            Says::Logged(lines) => return self.log(text, claim, lines).await,
            Says::Failed(error) => Report::Failed(error),
            Says::Completed(output) => Report::Succeeded(self.load(output).await?),
        };
        let Some(task) = self.hot.held_task(&claim).await? else { return Ok(Became::Stale) };
        let outcome = finish(&self.services, &task, report).await?;
        Ok(match self.plain.settle_claim(text, claim, outcome).await? {
            Settled::Applied => Became::Applied,
            Settled::Duplicate | Settled::Stale => Became::Stale,
        })
    }

    /// Stores log lines before it drops the signal: after a crash in between they are stored twice.
    async fn log(&self, text: &str, claim: ClaimRef, lines: Vec<SentLine>) -> Result<Became, Trouble> {
        let now = self.services.clock.now();
        let lines: Vec<LogLine> = lines.into_iter().map(|line| line.received(now)).collect();
        let logged = keep_lines(&self.services.payloads, &lines).await.map_err(|error| match error {
            PayloadError::Store(error) => error.into(),
            other => Trouble::Malformed(other.to_string()),
        })?;
        match self.hot.progress(&claim, logged).await? {
            Settled::Applied => {
                self.plain.drop_signal(text).await?;
                Ok(Became::Applied)
            }
            Settled::Duplicate | Settled::Stale => Ok(Became::Stale),
        }
    }

    /// Handles a signal about a task that was read and not claimed. `None` if the caller must look at the node again.
    async fn ready(&self, text: &str, signal: &Signal, offer: &Offer) -> Result<Option<Became>, Trouble> {
        let about = &signal.about;
        // The claim was taken back. Only a claimed task can log.
        if signal.claim.is_some() || matches!(signal.says, Says::Heartbeat | Says::Logged(_)) {
            return Ok(Some(Became::Stale));
        }
        let outcome = match begin(&self.services, &offer.task).await? {
            Begun::Settle(outcome) => outcome,
            Begun::Call(prepared) => {
                let report = match &signal.says {
                    Says::Started => return self.hand_over(text, about, offer, &prepared).await,
                    Says::Failed(error) => Report::Failed(error.clone()),
                    Says::Completed(output) => Report::Succeeded(self.load_ref(output).await?),
                    Says::Heartbeat | Says::Logged(_) => return Ok(Some(Became::Stale)),
                };
                finish(&self.services, &offer.task, report).await?
            }
        };
        if !self.plain.settle_offer(text, about, offer, &outcome).await? {
            return Ok(None);
        }
        if signal.says == Says::Started {
            self.plain.answer(about, GONE).await?;
        }
        Ok(Some(Became::Applied))
    }

    async fn hand_over(
        &self,
        text: &str,
        about: &About,
        offer: &Offer,
        prepared: &Prepared,
    ) -> Result<Option<Became>, Trouble> {
        match prepared.describe(&self.services, &offer.task, self.lease).await {
            Ok(mut task) => {
                task["status"] = json!("claimed");
                let answer = task.to_string();
                let claimed = self.plain.claim_offer(text, about, offer, self.lease, &answer).await?;
                Ok(claimed.then_some(Became::Applied))
            }
            Err(error) => {
                let settled = self.plain.settle_offer(text, about, offer, &error.outcome()?).await?;
                if settled {
                    self.plain.answer(about, GONE).await?;
                }
                Ok(settled.then_some(Became::Applied))
            }
        }
    }

    async fn load(&self, output: Output) -> Result<Value, Trouble> {
        match output {
            Output::Json(value) => Ok(value),
            kept @ Output::Kept(_) => self.load_ref(&kept).await,
        }
    }

    async fn load_ref(&self, output: &Output) -> Result<Value, Trouble> {
        let hash = match output {
            Output::Json(value) => return Ok(value.clone()),
            Output::Kept(hash) => *hash,
        };
        let content = match self.services.payloads.cas().get(CasRef { hash, bytes: 0 }).await {
            Ok(content) => content,
            Err(StoreError::Unknown { .. }) => {
                return Err(Trouble::Malformed(format!("`result_ref`: there is no payload cas://{hash}")));
            }
            Err(error) => return Err(error.into()),
        };
        serde_json::from_slice(&content)
            .map_err(|error| Trouble::Malformed(format!("`result_ref`: cas://{hash} is not JSON: {error}")))
    }
}

/// The answer to a worker that asked for a task and must not execute it.
const GONE: &str = r#"{"status":"gone"}"#;

impl Became {
    fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Stale => "stale",
            Self::Buried => "malformed",
            Self::Left => "left",
        }
    }
}
