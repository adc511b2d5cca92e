//! A claimed task, as `scripts/includes/claim.lua` answers it.

use std::str::FromStr;

use redis::{FromRedisValue, Value};
use switchyard_core::run::{Reading, Task, Waiting};
use switchyard_core::{Hash, Payload, Timestamp};
use switchyard_store::StoreError;

use crate::record::state_of;
use crate::store::RedisStore;

impl RedisStore {
    pub(crate) async fn read_task(&self, mut fields: Reply) -> Result<Task, StoreError> {
        let head = fields.text()?;
        let mut head = Head(head.split(' '));
        let (run, node) = (head.next()?, head.word()?);
        let (claim, attempt) = (head.next()?, head.next()?);
        let definition: Hash = format!("sha256:{}", head.word()?).parse().map_err(unreadable)?;
        let run_attempt = head.next()?;
        let started_at = Timestamp::from_millis(head.next::<i64>()? + head.next::<i64>()?);
        let (depth, skip, rounds) = (head.next()?, head.next::<u8>()? == 1, head.next()?);
        let queued_at = Timestamp::from_millis(head.next()?);
        let graph = self.graphs.get(definition).await?;
        self.remember(run, definition);
        let ix = graph.ir.find(node).ok_or_else(|| unreadable("a node that its graph does not have"))?;
        let (input, trace) = (fields.payload()?, fields.json()?);
        let children = match fields.json::<Waiting>()? {
            Some(Waiting::Gathered(children)) => Some(children),
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
        })
    }
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than the script says: {error}"))
}

/// What is short of a task, in order.
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
