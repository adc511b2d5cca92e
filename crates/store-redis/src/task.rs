//! Reads claimed tasks from the answers of `scripts/includes/claim.lua`.

use std::str::FromStr;

use redis::{FromRedisValue, Value};
use switchyard_core::run::{ClaimRef, Reading, Task, TimeLimit};
use switchyard_core::{Hash, Payload, RunId, Timestamp};
use switchyard_store::StoreError;

use crate::graphs::GraphOfRun;
use crate::record::{Kept, state_of};
use crate::scripts;
use crate::store::RedisStore;

/// How often to read a task whose run moves to another graph meanwhile.
const LOOKS_MAX: usize = 10;

impl RedisStore {
    pub(crate) async fn read_task(&self, mut fields: Reply) -> Result<Task, StoreError> {
        let head = fields.text()?;
        let mut head = Head(head.split(' '));
        let (run, node) = (head.next()?, head.word()?);
        let (claim, attempt) = (head.next()?, head.next()?);
        let definition = definition_from(head.word()?)?;
        let run_attempt = head.next()?;
        let accepted_at = head.next::<i64>()?;
        let started_at = Timestamp::from_millis(accepted_at + head.next::<i64>()?);
        let (depth, skip, rounds) = (head.next()?, head.next::<u8>()? == 1, head.next()?);
        let queued_at = Timestamp::from_millis(head.next()?);
        let limit_ends = match head.word()? {
            "-" => None,
            since => Some(Timestamp::from_millis(accepted_at + since.parse::<i64>().map_err(unreadable)?)),
        };
        let priority = match head.word()? {
            "-" => None,
            priority => Some(priority.parse().map_err(unreadable)?),
        };
        let graph = self.graphs.get(definition).await?;
        self.graphs.remember(run, GraphOfRun { definition, priority });
        let ix = graph.ir.find(node).ok_or_else(|| unreadable("a node that its graph does not have"))?;
        let lasts = graph.ir.node(ix).limit.or_default(self.limits.attempt_default);
        let limit = lasts.zip(limit_ends).map(|(lasts, ends)| TimeLimit { lasts, ends });
        let (input, trace) = (fields.payload()?, fields.json()?);
        let children = match fields.json::<Kept>()? {
            Some(Kept::Gathered(children)) => Some(children),
            Some(Kept::Ended { count }) => Some(self.gathered(run, node, count).await?),
            _ => None,
        };
        let checkpoint = fields.json()?;
        let mut reads = Vec::new();
        for read in &graph.ir.node(ix).reads {
            let state =
                state_of(&fields.text()?).ok_or_else(|| unreadable("a state that nodes do not have"))?;
            let (output, error) = (fields.payload()?, fields.json()?);
            reads.push(Reading { node: graph.ir.node(*read).id.clone(), state, output, error });
        }
        Ok(Task {
            run,
            node: graph.ir.node(ix).id.clone(),
            ix,
            claim,
            attempt,
            definition,
            workflow: graph.ir.name.clone(),
            queue: graph.ir.node(ix).queue.clone(),
            queued_at,
            trace,
            checkpoint,
            run_attempt,
            started_at,
            depth,
            skip,
            input,
            reads,
            rounds,
            children,
            limit,
        })
    }

    /// The task of a claim, if the claim is still valid.
    pub(crate) async fn read_held(&self, claim: &ClaimRef) -> Result<Option<Task>, StoreError> {
        let mut on = self.graphs.of_run(claim.run).map(|known| known.definition);
        for _ in 0..LOOKS_MAX {
            let Some(definition) = (match on {
                Some(definition) => Some(definition),
                None => self.definition_of(claim.run).await?,
            }) else {
                return Ok(None);
            };
            let graph = self.graphs.get(definition).await?;
            let Some(ix) = graph.ir.find(&claim.node) else {
                // The cached graph of the run may be outdated.
                let current = self.definition_of(claim.run).await?;
                if current == Some(definition) {
                    return Ok(None);
                }
                on = current;
                continue;
            };
            let hints = graph.hints_of(ix);
            let keys = [self.keys.run(claim.run), self.keys.dag(claim.run), self.keys.context(claim.run)];
            let args = [
                self.keys.begin(),
                &claim.run.to_string(),
                &claim.node,
                &claim.claim.to_string(),
                &graph.hash,
                &hints.reads,
                &hints.needs,
            ];
            let mut answer = Reply::new(self.client.run(&scripts::HELD, &keys, &args).await?);
            match &*answer.text()? {
                "held" => return self.read_task(Reply::new(answer.next()?)).await.map(Some),
                "moved" => on = Some(definition_from(&answer.text()?)?),
                _ => return Ok(None),
            }
        }
        Err(StoreError::unavailable("the graph of the run changes all the time; try again"))
    }

    async fn definition_of(&self, run: RunId) -> Result<Option<Hash>, StoreError> {
        let ask = redis::cmd("HGET").arg(self.keys.run(run)).arg("definition").to_owned();
        let found: Option<String> = self.client.query(&ask).await?;
        found.map(|hex| definition_from(&hex)).transpose()
    }
}

fn definition_from(hex: &str) -> Result<Hash, StoreError> {
    format!("sha256:{hex}").parse().map_err(unreadable)
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than the script says: {error}"))
}

/// The short fields of a task, in order.
struct Head<'a>(std::str::Split<'a, char>);

impl<'a> Head<'a> {
    fn word(&mut self) -> Result<&'a str, StoreError> {
        self.0.next().ok_or_else(|| unreadable("a task without all of its parts"))
    }

    fn next<T: FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T, StoreError> {
        self.word()?.parse().map_err(unreadable)
    }
}

/// The fields of an answer, in order.
pub(crate) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    pub(crate) fn new(fields: Vec<Value>) -> Self {
        Self(fields.into_iter())
    }

    fn next<T: FromRedisValue>(&mut self) -> Result<T, StoreError> {
        redis::from_redis_value(self.0.next().unwrap_or(Value::Nil)).map_err(unreadable)
    }

    fn text(&mut self) -> Result<String, StoreError> {
        self.next()
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.next()?;
        text.map(|text| serde_json::from_str(&text).map_err(unreadable)).transpose()
    }

    fn payload(&mut self) -> Result<Payload, StoreError> {
        Ok(self.json()?.unwrap_or_default())
    }
}
