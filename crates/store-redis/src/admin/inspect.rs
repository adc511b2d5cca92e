//! Reads and decodes every key of a run. The names of keys follow from the content of others: nothing is scanned.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use switchyard_core::in_flight::band;
use switchyard_core::ir::Ir;
use switchyard_core::run::WaitFor;
use switchyard_core::{Hash, RunId};
use switchyard_store::StoreError;

use super::{RedisAdmin, unreadable};
use crate::keys::GROUP;
use crate::record::{ENTRY, Kept, WORDS, state_of};

type Fields = BTreeMap<String, String>;

/// How many entries of the outbox are read.
const OUTBOX_MAX: usize = 1_000;

/// A key of a run, or the part of a shared key that is about the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InspectedKey {
    pub key: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The content, by field or member.
    pub value: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
}

/// The meaning of each letter of `flags`.
const FLAGS: [(char, &str); 7] = [
    ('c', "cap on parallelism"),
    ('k', "concurrency key"),
    ('l', "locked while it is read in pieces"),
    ('m', "paused, asks people, retried, or below another run"),
    ('p', "has a parent"),
    ('s', "asks what runs to stop"),
    ('t', "has timers"),
];

impl RedisAdmin {
    /// The keys of a run; empty if Redis does not have the run.
    pub async fn inspect(&self, run: RunId) -> Result<Vec<InspectedKey>, StoreError> {
        let (state, dag) = (self.fields(&self.keys.run(run)).await?, self.fields(&self.keys.dag(run)).await?);
        let context = self.fields(&self.keys.context(run)).await?;
        let mut shown = Vec::new();
        shown.extend(self.hash(self.keys.run(run), state.iter().map(run_field).collect()).await?);
        shown.extend(self.hash(self.keys.dag(run), dag.iter().map(node_line).collect()).await?);
        shown.extend(self.hash(self.keys.context(run), context.iter().map(json_field).collect()).await?);
        let graph = self.graph(&state, &mut shown).await?;
        self.shared(run, &state, &mut shown).await?;
        self.approvals(&context, &mut shown).await?;
        self.moments(run, &state, &dag, &mut shown).await?;
        if let Some(graph) = graph {
            self.entries(&graph, &state, &dag, &mut shown).await?;
        }
        self.outbox(run, &mut shown).await?;
        Ok(shown)
    }

    async fn fields(&self, key: &str) -> Result<Fields, StoreError> {
        self.client.query(redis::cmd("HGETALL").arg(key)).await
    }

    async fn hash(&self, key: String, value: Map<String, Value>) -> Result<Option<InspectedKey>, StoreError> {
        if value.is_empty() {
            return Ok(None);
        }
        let ttl: i64 = self.client.query(redis::cmd("PTTL").arg(&key)).await?;
        Ok(Some(InspectedKey { key, kind: "hash", value, ttl_ms: (ttl >= 0).then_some(ttl) }))
    }

    async fn graph(&self, state: &Fields, shown: &mut Vec<InspectedKey>) -> Result<Option<Ir>, StoreError> {
        let hash = state.get("definition").map(|hex| format!("sha256:{hex}").parse::<Hash>());
        let Some(Ok(hash)) = hash else { return Ok(None) };
        let key = self.keys.ir(hash);
        let text: Option<String> = self.client.query(redis::cmd("GET").arg(&key)).await?;
        let Some(text) = text else { return Ok(None) };
        let value = match serde_json::from_str(&text).map_err(unreadable)? {
            Value::Object(fields) => fields,
            other => Map::from_iter([("graph".to_owned(), other)]),
        };
        shown.push(InspectedKey { key, kind: "string", value, ttl_ms: None });
        Ok(Ir::from_json(&text).ok())
    }

    /// Adds the run's part of shared keys: the set of runs, its concurrency key, its idempotency key.
    async fn shared(
        &self,
        run: RunId,
        state: &Fields,
        shown: &mut Vec<InspectedKey>,
    ) -> Result<(), StoreError> {
        let (runs, forgotten) = (self.keys.runs(), self.keys.forgotten());
        let listed: bool = self.client.query(redis::cmd("SISMEMBER").arg(&runs).arg(run.to_string())).await?;
        if listed {
            shown.push(member(runs, "set", run.to_string(), json!(true)));
        }
        for (field, value) in self.fields(&forgotten).await? {
            if field.starts_with(&run.to_string()) {
                shown.push(member(forgotten.clone(), "hash", field, scalar(&value)));
            }
        }
        if let Some(key) = state.get("idem") {
            let key = self.keys.idempotency(key);
            let fields = self.fields(&key).await?;
            shown.extend(self.hash(key, fields.iter().map(plain_field).collect()).await?);
        }
        if let Some(concurrency_key) = state.get("gate") {
            let (key, line) =
                (self.keys.concurrency_key(concurrency_key), self.keys.concurrency_line(concurrency_key));
            let fields = self.fields(&key).await?;
            shown.extend(self.hash(key, fields.iter().map(plain_field).collect()).await?);
            self.score(line, run.to_string(), shown).await?;
        }
        Ok(())
    }

    async fn approvals(&self, context: &Fields, shown: &mut Vec<InspectedKey>) -> Result<(), StoreError> {
        let waits = context.iter().filter(|(field, _)| field.ends_with(":wait"));
        for wait in waits.filter_map(|(_, text)| serde_json::from_str::<Kept>(text).ok()) {
            if let Kept::For(WaitFor::Approval(request)) = wait {
                let key = self.keys.approval(&request.approval);
                let fields = self.fields(&key).await?;
                shown.extend(self.hash(key, fields.iter().map(plain_field).collect()).await?);
            }
        }
        Ok(())
    }

    async fn moments(
        &self,
        run: RunId,
        state: &Fields,
        dag: &Fields,
        shown: &mut Vec<InspectedKey>,
    ) -> Result<(), StoreError> {
        let timers: Vec<(i64, String)> =
            state.get("timers").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        for (_, name) in timers {
            self.score(self.keys.timers(), format!("{run} {name}"), shown).await?;
        }
        for (node, line) in dag {
            let mut words = line.split(' ');
            if words.next() == Some("R") {
                let claim = words.nth(1).unwrap_or_default();
                self.score(self.keys.leases(), format!("{run} {claim} {node}"), shown).await?;
            }
        }
        Ok(())
    }

    /// Adds the streams of a run: the entries of its claims, and how many tasks wait in the streams in which it waits.
    async fn entries(
        &self,
        graph: &Ir,
        state: &Fields,
        dag: &Fields,
        shown: &mut Vec<InspectedKey>,
    ) -> Result<(), StoreError> {
        let priority = state.get("priority").and_then(|priority| priority.parse().ok());
        for (node, line) in dag {
            let Some(ix) = graph.find(node) else { continue };
            let words: Vec<&str> = line.split(' ').collect();
            let spec = graph.node(ix);
            let stream = self.keys.tasks(&spec.queue, band(spec.priority_in(priority)));
            match (words[0], words.get(ENTRY)) {
                ("R", Some(&entry)) if entry != "-" => {
                    shown.extend(self.entry(stream, node, entry).await?);
                }
                ("Q", _) => {
                    let queued: Option<u64> =
                        self.client.query(redis::cmd("HGET").arg(self.keys.queued()).arg(&stream)).await?;
                    let value = json!({ "node": node, "queued_with_it": queued.unwrap_or(0) });
                    shown.push(member(stream, "stream", "queued".to_owned(), value));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn entry(&self, stream: String, node: &str, id: &str) -> Result<Option<InspectedKey>, StoreError> {
        type Entries = Vec<(String, BTreeMap<String, String>)>;
        type Held = Vec<(String, String, u64, u64)>;
        let found: Entries = self.client.query(redis::cmd("XRANGE").arg(&stream).arg(id).arg(id)).await?;
        let pending: Held =
            self.client.query(redis::cmd("XPENDING").arg(&stream).arg(GROUP).arg(id).arg(id).arg(1)).await?;
        let fields = found.into_iter().next().map(|(_, fields)| fields);
        let mut value = json!({ "node": node, "fields": fields });
        if let Some((_, consumer, idle_ms, deliveries)) = pending.into_iter().next() {
            value["consumer"] = consumer.into();
            value["idle_ms"] = idle_ms.into();
            value["deliveries"] = deliveries.into();
        }
        Ok(Some(member(stream, "stream", id.to_owned(), value)))
    }

    /// Adds the run's events that the archive does not have yet.
    async fn outbox(&self, run: RunId, shown: &mut Vec<InspectedKey>) -> Result<(), StoreError> {
        type Entries = Vec<(String, Vec<(String, String)>)>;
        let key = self.keys.outbox();
        let entries: Entries = self
            .client
            .query(redis::cmd("XRANGE").arg(&key).arg("-").arg("+").arg("COUNT").arg(OUTBOX_MAX))
            .await?;
        let (begin, mut value) = (format!("{run} "), Map::new());
        for (id, fields) in entries {
            let events = fields.iter().filter(|(header, _)| header.starts_with(&begin));
            let events: Vec<Value> = events.map(|(_, body)| parsed(body)).collect();
            if !events.is_empty() {
                value.insert(id, Value::Array(events));
            }
        }
        if !value.is_empty() {
            shown.push(InspectedKey { key, kind: "stream", value, ttl_ms: None });
        }
        Ok(())
    }

    async fn score(
        &self,
        key: String,
        name: String,
        shown: &mut Vec<InspectedKey>,
    ) -> Result<(), StoreError> {
        let score: Option<f64> = self.client.query(redis::cmd("ZSCORE").arg(&key).arg(&name)).await?;
        if let Some(score) = score {
            shown.push(member(key, "zset", name, json!(score as i64)));
        }
        Ok(())
    }
}

fn member(key: String, kind: &'static str, name: String, value: Value) -> InspectedKey {
    InspectedKey { key, kind, value: Map::from_iter([(name, value)]), ttl_ms: None }
}

/// A JSON number if the text is an integer, else a JSON string.
fn scalar(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn plain_field((field, text): (&String, &String)) -> (String, Value) {
    (field.clone(), scalar(text))
}

fn json_field((field, text): (&String, &String)) -> (String, Value) {
    (field.clone(), parsed(text))
}

fn run_field((field, text): (&String, &String)) -> (String, Value) {
    let value = match field.as_str() {
        "timers" | "play" => parsed(text),
        "paused" => json!(text == "1"),
        "flags" => {
            text.chars().filter_map(|c| Some(FLAGS.iter().find(|(letter, _)| *letter == c)?.1)).collect()
        }
        "definition" | "gate" | "idem" => text.as_str().into(),
        _ => scalar(text),
    };
    (field.clone(), value)
}

/// Decodes the line of a node. A malformed line is shown as text.
fn node_line((node, line): (&String, &String)) -> (String, Value) {
    let words: Vec<&str> = line.split(' ').collect();
    let state = words.first().and_then(|letter| state_of(letter));
    let value = match state {
        Some(state) if words.len() >= ENTRY && words.len() <= WORDS.len() => {
            let mut value: Map<String, Value> = WORDS
                .iter()
                .zip(&words)
                .filter(|(_, word)| **word != "-")
                .map(|(name, word)| ((*name).to_owned(), scalar(word)))
                .collect();
            value.insert("state".to_owned(), json!(state));
            Value::Object(value)
        }
        _ => line.as_str().into(),
    };
    (node.clone(), value)
}
