//! Which runs a socket follows, and which of them may have something to tell.

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

/// Runs that one socket may follow.
const RUNS_MAX: usize = 1_000;

pub(super) struct Subscriptions {
    engine: Engine,
    runs: HashMap<RunId, Subscription>,
    /// Runs to look at, in turn: one that is busy does not keep the others waiting.
    due: VecDeque<Ticket>,
    /// One for each run that was read to its end.
    waiting: FuturesUnordered<BoxFuture<'static, News>>,
    /// Told as the next page: the store says nothing any more.
    trouble: Option<EngineError>,
    issued: u64,
}

/// Whose, and what; nothing if it was given up meanwhile.
type News = (Ticket, Option<Result<(), EngineError>>);

struct Subscription {
    follow: Follow,
    last: u64,
    ticket: Ticket,
    given_up: CancellationToken,
    /// Ends what waits for it.
    _on_drop: DropGuard,
}

/// Of a subscription: what still waits for one that was given up is recognised by it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    run: RunId,
    number: u64,
}

/// What a run has to tell.
pub(super) struct Page {
    pub(super) run: RunId,
    pub(super) events: Vec<Event>,
    /// The number of the newest event that was told.
    pub(super) last: u64,
    /// There is nothing more; the subscription is over.
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
        // Before the look, so that nothing falls between.
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

    /// Whether it was followed.
    pub(super) fn unsubscribe(&mut self, run: RunId) -> bool {
        self.runs.remove(&run).is_some()
    }

    /// What the next run that has something to tell has to tell; none if there is nothing at the moment.
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

    /// A run that had something to tell may have more; one that had nothing is waited for.
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

    /// Resolves when some run may have something to tell.
    pub(super) async fn news(&mut self) {
        match self.waiting.next().await {
            Some((ticket, Some(Ok(())))) => self.due.push_back(ticket),
            Some((_, Some(Err(error)))) => self.trouble = Some(error),
            Some((_, None)) => {}
            None => std::future::pending().await,
        }
    }
}

/// Whether the run has ended and was told to its end. One that ended and was retried goes on.
async fn is_over(engine: &Engine, run: RunId, events: &[Event], last: u64) -> Result<bool, EngineError> {
    match events.last().map(|event| &event.kind) {
        Some(EventKind::RunEnded { .. }) | None => {}
        Some(_) => return Ok(false),
    }
    let record = engine.history().run(run).await?;
    Ok(has_ended(&record) && record.last_seq == last)
}
