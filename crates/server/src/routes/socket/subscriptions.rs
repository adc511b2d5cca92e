//! The runs that a socket follows, and which of them may have new events.

use std::collections::{HashMap, VecDeque};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind};
use switchyard_runtime::{Engine, EngineError, Follow};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::messages::{already_subscribed, too_many};
use crate::problem::Problem;
use crate::routes::events::has_ended;

/// How many runs one socket may follow.
const RUNS_MAX: usize = 1_000;

pub(super) struct Subscriptions {
    engine: Engine,
    runs: HashMap<RunId, Subscription>,
    /// Runs to read, round-robin, so that a busy run does not delay the others.
    due: VecDeque<Ticket>,
    /// One future for each run whose events were all read; it resolves when there are new ones.
    waiting: FuturesUnordered<BoxFuture<'static, News>>,
    /// An error of the store, returned by the next call of `next_page`.
    trouble: Option<EngineError>,
    issued: u64,
}

/// A subscription's ticket, and whether it has new events; `None` if the client has unsubscribed meanwhile.
type News = (Ticket, Option<Result<(), EngineError>>);

struct Subscription {
    follow: Follow,
    last: u64,
    ticket: Ticket,
    given_up: CancellationToken,
    /// Cancels the future in `waiting` when the subscription is removed.
    _on_drop: DropGuard,
}

/// Identifies a subscription, so that entries of a removed subscription to the same run are ignored.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    run: RunId,
    number: u64,
}

/// New events of one run.
pub(super) struct Page {
    pub(super) run: RunId,
    pub(super) events: Vec<Event>,
    /// The number of the newest event that was read.
    pub(super) last: u64,
    /// The run has no more events; the subscription has ended.
    pub(super) ended: bool,
}

impl Subscriptions {
    pub(super) fn new(engine: Engine) -> Self {
        let (runs, due, waiting) = (HashMap::new(), VecDeque::new(), FuturesUnordered::new());
        Self { engine, runs, due, waiting, trouble: None, issued: 0 }
    }

    pub(super) async fn subscribe(&mut self, run: RunId, after: u64) -> Result<(), Problem> {
        if self.runs.contains_key(&run) {
            return Err(already_subscribed(run));
        }
        if self.runs.len() == RUNS_MAX {
            return Err(too_many(RUNS_MAX));
        }
        // Subscribed before the first read, so that no event is missed.
        let follow = self.engine.follow(run, after);
        let record = self.engine.history().run(run).await?;
        if after > record.last_seq {
            let detail = format!("{run} has {} events; there is no event {after}", record.last_seq);
            return Err(Problem::bad_request("invalid_message", detail));
        }
        self.issued += 1;
        let ticket = Ticket { run, number: self.issued };
        let given_up = CancellationToken::new();
        let _on_drop = given_up.clone().drop_guard();
        self.runs.insert(run, Subscription { follow, last: after, ticket, given_up, _on_drop });
        self.due.push_back(ticket);
        Ok(())
    }

    /// Stops following a run. Returns whether the socket followed it.
    pub(super) fn unsubscribe(&mut self, run: RunId) -> bool {
        self.runs.remove(&run).is_some()
    }

    /// The new events of the next run that has some; `None` if no run has any at the moment.
    pub(super) async fn next_page(&mut self) -> Option<Result<Page, EngineError>> {
        if let Some(error) = self.trouble.take() {
            return Some(Err(error));
        }
        while let Some(ticket) = self.due.pop_front() {
            if !self.is_current(ticket) {
                continue;
            }
            match self.read(ticket).await {
                Ok(page) if page.events.is_empty() && !page.ended => {}
                other => return Some(other),
            }
        }
        None
    }

    fn is_current(&self, ticket: Ticket) -> bool {
        self.runs.get(&ticket.run).is_some_and(|subscription| subscription.ticket == ticket)
    }

    async fn read(&mut self, ticket: Ticket) -> Result<Page, EngineError> {
        let run = ticket.run;
        let Some(subscription) = self.runs.get_mut(&run) else {
            return Ok(Page { run, events: Vec::new(), last: 0, ended: false });
        };
        let events = subscription.follow.ready().await?;
        subscription.last = events.last().map_or(subscription.last, |event| event.seq);
        let last = subscription.last;
        if is_over(&self.engine, run, &events, last).await? {
            self.runs.remove(&run);
            return Ok(Page { run, events, last, ended: true });
        }
        self.wait_or_come_again(ticket, events.is_empty());
        Ok(Page { run, events, last, ended: false })
    }

    /// Queues a run that had events to be read again; waits for news of a run that had none.
    fn wait_or_come_again(&mut self, ticket: Ticket, nothing: bool) {
        match self.runs.get(&ticket.run) {
            Some(subscription) if nothing => {
                let (news, given_up) = (subscription.follow.news(), subscription.given_up.clone());
                self.waiting
                    .push(Box::pin(async move { (ticket, given_up.run_until_cancelled_owned(news).await) }));
            }
            _ => self.due.push_back(ticket),
        }
    }

    /// Resolves when some run may have new events.
    pub(super) async fn news(&mut self) {
        match self.waiting.next().await {
            Some((ticket, Some(Ok(())))) => self.due.push_back(ticket),
            Some((_, Some(Err(error)))) => self.trouble = Some(error),
            Some((_, None)) => {}
            None => std::future::pending().await,
        }
    }
}

/// Whether the run has ended and its last event was read. A run that was retried after it ended has more.
async fn is_over(engine: &Engine, run: RunId, events: &[Event], last: u64) -> Result<bool, EngineError> {
    match events.last().map(|event| &event.kind) {
        Some(EventKind::RunEnded { .. }) | None => {}
        Some(_) => return Ok(false),
    }
    let record = engine.history().run(run).await?;
    Ok(has_ended(&record) && record.last_seq == last)
}
