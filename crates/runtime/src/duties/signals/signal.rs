//! Parses signals of plain workers: JSON that they pushed to a list.

use std::sync::Arc;

use crate::engine::SentLine;
use serde_json::{Map, Value};
use switchyard_core::{Hash, NodeError, RunId};
use switchyard_store::plain::{About, SIGNAL_BYTES_MAX, oversized};

/// The error code of a failure for which the worker gave no code.
const FAILED: &str = "failed";
/// The name of a worker that gives no name.
const NAMELESS: &str = "plain";

#[derive(Debug)]
pub(super) struct Signal {
    pub(super) about: About,
    /// The claim that the signal is about, if the worker asked for one.
    pub(super) claim: Option<u32>,
    pub(super) says: Says,
}

#[derive(Debug, PartialEq)]
pub(super) enum Says {
    /// The worker has read the task, and asks for its content.
    Started,
    /// The worker still executes the task.
    Heartbeat,
    /// Log lines of the worker.
    Logged(Vec<SentLine>),
    Completed(Output),
    Failed(NodeError),
}

#[derive(Debug, PartialEq)]
pub(super) enum Output {
    Json(Value),
    /// The output is in the CAS under this hash.
    Kept(Hash),
}

impl Signal {
    /// Parses a signal, or explains what is wrong with it. Unknown fields are ignored.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if let Some(bytes) = oversized(text) {
            return Err(format!(
                "the signal has {bytes} bytes, and may have {SIGNAL_BYTES_MAX}; put the output into the CAS and send \
                 `result_ref`"
            ));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(fields) = value else {
            return Err(format!("a JSON object is expected, and this is {}", kind(&value)));
        };
        let fields = Fields(fields);
        let run = fields.text("run_id")?.ok_or("`run_id` is missing")?;
        let run: RunId = run.parse().map_err(|error| format!("`run_id`: {error}"))?;
        let node = fields.text("node_id")?.ok_or("`node_id` is missing")?;
        let about = About {
            run,
            node: node.into(),
            delivery: fields.delivery()?,
            worker: fields.text("worker")?.unwrap_or(NAMELESS).into(),
        };
        let claim = fields.claim()?;
        let says = match fields.text("status")? {
            None if fields.given("error") => Says::Failed(fields.error()?),
            None | Some("completed" | "succeeded" | "success" | "ok") => Says::Completed(fields.output()?),
            Some("failed" | "error") => Says::Failed(fields.error()?),
            Some("started") if about.delivery.is_none() => {
                return Err("`started` needs `entry_id`, under which it is answered".to_owned());
            }
            Some("started") => Says::Started,
            Some("heartbeat") => Says::Heartbeat,
            Some("log") => Says::Logged(fields.lines()?),
            Some(other) => {
                return Err(format!(
                    "`status` is `{other}`, and may be `completed`, `failed`, `started`, `heartbeat` or `log`"
                ));
            }
        };
        Ok(Self { about, claim, says })
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    /// The value of a field; `null` counts as absent.
    fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn given(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{name}` has to be text, and is {}", kind(other))),
        }
    }

    fn claim(&self) -> Result<Option<u32>, String> {
        let Some(value) = self.value("claim") else { return Ok(None) };
        let claim = value.as_u64().and_then(|claim| u32::try_from(claim).ok());
        claim.map(Some).ok_or_else(|| format!("`claim` has to be the number of a claim, and is {value}"))
    }

    fn delivery(&self) -> Result<Option<String>, String> {
        let Some(id) = self.text("entry_id")? else { return Ok(None) };
        let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match id.split_once('-') {
            Some((ms, n)) if number(ms) && number(n) => Ok(Some(id.to_owned())),
            _ => Err(format!(
                "`entry_id` is `{id}`, and has to be that of a stream entry, such as 1700000000000-0"
            )),
        }
    }

    /// The log lines; each is text or `{"message", "level", "at"}`.
    fn lines(&self) -> Result<Vec<SentLine>, String> {
        let lines = self.value("lines").ok_or("`log` needs `lines`, a list")?;
        serde_json::from_value(lines.clone()).map_err(|error| format!("`lines`: {error}"))
    }

    fn output(&self) -> Result<Output, String> {
        let given: Vec<&str> = ["output", "result", "result_ref"]
            .into_iter()
            .filter(|name| self.0.contains_key(*name))
            .collect();
        match given[..] {
            [] => Ok(Output::Json(Value::Null)),
            ["result_ref"] => self.kept(),
            [name] => Ok(Output::Json(self.0[name].clone())),
            _ => Err(format!("one of `{}` is enough", given.join("`, `"))),
        }
    }

    fn kept(&self) -> Result<Output, String> {
        let Some(reference) = self.text("result_ref")? else { return Ok(Output::Json(Value::Null)) };
        let hash = reference.strip_prefix("cas://").and_then(|hash| hash.parse().ok());
        hash.map(Output::Kept).ok_or_else(|| {
            format!("`result_ref` is `{reference}`, and has to be cas://sha256: and 64 digits")
        })
    }

    /// The error: a sentence, or `{"code", "message", "retryable"}`.
    fn error(&self) -> Result<NodeError, String> {
        match self.value("error") {
            None => Ok(NodeError::retryable(FAILED, "the worker gave no reason")),
            Some(Value::String(message)) => Ok(NodeError::retryable(FAILED, message.as_str())),
            Some(Value::Object(about)) => {
                let about = Fields(about.clone());
                let wrong = |what: String| format!("`error`: {what}");
                let message = about.text("message").map_err(wrong)?.unwrap_or("the worker gave no reason");
                let code: Arc<str> = about.text("code").map_err(wrong)?.unwrap_or(FAILED).into();
                let retryable = match about.value("retryable") {
                    None => true,
                    Some(Value::Bool(retryable)) => *retryable,
                    Some(other) => {
                        return Err(format!("`error`: `retryable` is true or false, and not {other}"));
                    }
                };
                Ok(NodeError { code, message: message.into(), retryable, retry_after: None })
            }
            Some(other) => Err(format!("`error` has to be text or an object, and is {}", kind(other))),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RUN: &str = "run_01h0000000000000000000000g";

    fn read(more: &Value) -> Result<Signal, String> {
        let mut signal = json!({ "run_id": RUN, "node_id": "fetch" });
        if let (Some(signal), Some(more)) = (signal.as_object_mut(), more.as_object()) {
            signal.extend(more.clone());
        }
        Signal::read(&signal.to_string())
    }

    #[test]
    fn signals_as_the_contract_has_them() {
        let plain = read(&json!({})).unwrap();
        assert_eq!(plain.says, Says::Completed(Output::Json(Value::Null)));
        assert_eq!((&*plain.about.node, &*plain.about.worker, plain.claim), ("fetch", "plain", None));
        let hash = Hash::of(b"x");
        let kept = read(&json!({ "result_ref": format!("cas://{hash}"), "duration_ms": 3 })).unwrap();
        assert_eq!(kept.says, Says::Completed(Output::Kept(hash)));
    }

    #[test]
    fn what_a_worker_can_say() {
        let says = |more: Value| read(&more).unwrap().says;
        assert_eq!(says(json!({ "output": [1] })), Says::Completed(Output::Json(json!([1]))));
        assert_eq!(
            says(json!({ "status": "ok", "result": null })),
            Says::Completed(Output::Json(Value::Null))
        );
        assert_eq!(says(json!({ "status": "started", "entry_id": "1-0" })), Says::Started);
        assert_eq!(says(json!({ "status": "heartbeat", "claim": 1 })), Says::Heartbeat);
        let Says::Logged(lines) =
            says(json!({ "status": "log", "lines": ["one", { "message": "two", "level": "warn" }] }))
        else {
            panic!("it logs")
        };
        assert_eq!(lines[0], SentLine::Text("one".to_owned()));
        assert_eq!(lines.len(), 2);
        let failed = |code: &str, message: &str, retryable| {
            Says::Failed(NodeError {
                code: code.into(),
                message: message.into(),
                retryable,
                retry_after: None,
            })
        };
        assert_eq!(says(json!({ "status": "failed" })), failed("failed", "the worker gave no reason", true));
        assert_eq!(says(json!({ "error": "no luck" })), failed("failed", "no luck", true));
        let error = json!({ "code": "E1", "message": "no", "retryable": false });
        assert_eq!(says(json!({ "status": "error", "error": error })), failed("E1", "no", false));
    }

    #[test]
    fn a_signal_that_was_too_large_is_refused_with_its_size() {
        let why = Signal::read(r#"oversized:20971520:{"run_id": "run_"#).unwrap_err();
        assert!(why.starts_with("the signal has 20971520 bytes, and may have 16777216"), "{why}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |more: Value| read(&more).unwrap_err();
        for (signal, why) in [
            ("", "not JSON: EOF while parsing"),
            ("{", "not JSON: EOF while parsing"),
            ("[1]", "a JSON object is expected, and this is a list"),
            ("{}", "`run_id` is missing"),
            (r#"{"run_id": 7}"#, "`run_id` has to be text, and is a number"),
            (r#"{"run_id": "run_7f3e4a"}"#, "`run_id`: `run_7f3e4a` is not a run id"),
        ] {
            let said = Signal::read(signal).unwrap_err();
            assert!(said.starts_with(why), "{signal}: {said}");
        }
        assert_eq!(wrong(json!({ "node_id": ["a"] })), "`node_id` has to be text, and is a list");
        assert!(wrong(json!({ "status": "done?" })).starts_with("`status` is `done?`, and may be"));
        assert!(wrong(json!({ "status": "started" })).starts_with("`started` needs `entry_id`"));
        assert!(wrong(json!({ "entry_id": "17" })).starts_with("`entry_id` is `17`"));
        assert!(wrong(json!({ "claim": -1 })).starts_with("`claim` has to be the number of a claim"));
        assert!(wrong(json!({ "result_ref": "s3://x" })).starts_with("`result_ref` is `s3://x`"));
        assert_eq!(
            wrong(json!({ "result_ref": "cas://x", "output": 1 })),
            "one of `output`, `result_ref` is enough"
        );
        assert!(wrong(json!({ "status": "log" })).starts_with("`log` needs `lines`"));
        assert!(wrong(json!({ "status": "log", "lines": [5] })).starts_with("`lines`: a line is text"));
        assert_eq!(wrong(json!({ "error": 5 })), "`error` has to be text or an object, and is a number");
    }
}
