//! The text form of a filter: `status=failed,cancelled label=team=search created_after=24h error="no route"`.
//!
//! A term is a field, `=` and a value, which is quoted if it has blanks. The query of the API and the flags of the CLI
//! have the same fields and values.

use std::fmt::{self, Display};
use std::str::FromStr;

use switchyard_base::{HumanDuration, suggest};
use switchyard_core::labels::check_label_key;
use switchyard_core::run::RunStatus;
use switchyard_core::{RunId, Timestamp};

use super::{RunFilter, RunOrder};

/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 512;

/// Every field of the grammar.
pub const FIELDS: [&str; 14] = [
    "status",
    "workflow",
    "label",
    "created_after",
    "created_before",
    "ended_after",
    "ended_before",
    "parent",
    "schedule",
    "node",
    "code",
    "error",
    "children",
    "order",
];

/// Why a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    #[error("`{term}` is no condition: write a field, `=` and a value, such as `status=failed`")]
    NoField { term: String },
    #[error("a filter has no field `{field}`{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    UnknownField { field: String, hint: Option<String> },
    #[error("`{field}`: {why}")]
    Value { field: String, why: String },
    #[error("a quotation mark in the filter is not closed")]
    Unclosed,
    #[error(
        "`error` searches the text of errors, and needs a time range: add `created_after` or another of `created_before`, \
         `ended_after`, `ended_before`"
    )]
    Unbounded,
}

impl RunFilter {
    /// Parses the text form. Relative times such as `24h` are counted back from `now`.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, BadFilter> {
        let mut filter = Self::default();
        filter.add(text, now)?;
        Ok(filter)
    }

    /// Adds the conditions of a text.
    pub fn add(&mut self, text: &str, now: Timestamp) -> Result<(), BadFilter> {
        for term in terms(text)? {
            let (field, value) =
                term.split_once('=').ok_or_else(|| BadFilter::NoField { term: term.clone() })?;
            self.set(field, value, now)?;
        }
        Ok(())
    }

    /// Adds one condition.
    pub fn set(&mut self, field: &str, value: &str, now: Timestamp) -> Result<(), BadFilter> {
        let bad = |why: String| BadFilter::Value { field: field.to_owned(), why };
        if value.is_empty() || value.len() > VALUE_BYTES_MAX {
            return Err(bad(format!("a value has 1 to {VALUE_BYTES_MAX} bytes, this one {}", value.len())));
        }
        let text = || Some(value.to_owned());
        match field {
            "status" => self.statuses = statuses(value).map_err(bad)?,
            "workflow" => self.workflow = text(),
            "label" => {
                let (key, value) = label(value).map_err(bad)?;
                self.labels.insert(key.into(), value.into());
            }
            "created_after" => self.created.from = Some(moment(value, now).map_err(bad)?),
            "created_before" => self.created.until = Some(moment(value, now).map_err(bad)?),
            "ended_after" => self.ended.from = Some(moment(value, now).map_err(bad)?),
            "ended_before" => self.ended.until = Some(moment(value, now).map_err(bad)?),
            "parent" => self.parent = Some(parsed::<RunId>(value).map_err(bad)?),
            "schedule" => self.schedule = text(),
            "node" => self.node = text(),
            "code" => self.code = text(),
            "error" => self.error = text(),
            "children" => {
                self.include_children = parsed(value).map_err(|_| bad(one_of(value, "true, false")))?
            }
            "order" => self.order = order(value).map_err(bad)?,
            _ => {
                let hint = suggest::hint(field, &FIELDS, "the fields are");
                return Err(BadFilter::UnknownField { field: field.to_owned(), hint });
            }
        }
        Ok(())
    }

    /// The conditions of the filter, as [`RunFilter::set`] takes them; times are absolute.
    pub fn conditions(&self) -> Vec<(&'static str, String)> {
        let mut conditions = Vec::new();
        let mut add = |field, value: Option<String>| conditions.extend(value.map(|value| (field, value)));
        let statuses: Vec<&str> = self.statuses.iter().map(|status| status.as_str()).collect();
        add("status", (!statuses.is_empty()).then(|| statuses.join(",")));
        add("workflow", self.workflow.clone());
        for (key, value) in &self.labels {
            add("label", Some(format!("{key}={value}")));
        }
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        add("created_after", moment(self.created.from));
        add("created_before", moment(self.created.until));
        add("ended_after", moment(self.ended.from));
        add("ended_before", moment(self.ended.until));
        add("parent", self.parent.map(|run| run.to_string()));
        add("schedule", self.schedule.clone());
        add("node", self.node.clone());
        add("code", self.code.clone());
        add("error", self.error.clone());
        add("children", self.include_children.then(|| "true".to_owned()));
        add("order", (self.order == RunOrder::Oldest).then(|| "oldest".to_owned()));
        conditions
    }
}

impl Display for RunFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (field, value)) in self.conditions().into_iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            match value.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\') {
                false => write!(f, "{blank}{field}={value}")?,
                true => {
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(f, "{blank}{field}=\"{value}\"")?;
                }
            }
        }
        Ok(())
    }
}

/// Splits a text into terms at blanks. A quoted part keeps its blanks; in it, a backslash escapes the next character.
fn terms(text: &str) -> Result<Vec<String>, BadFilter> {
    let (mut terms, mut term, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => term.extend(chars.next()),
            c if c.is_whitespace() && !quoted => {
                if !term.is_empty() {
                    terms.push(std::mem::take(&mut term));
                }
            }
            c => term.push(c),
        }
    }
    if quoted {
        return Err(BadFilter::Unclosed);
    }
    terms.extend(Some(term).filter(|term| !term.is_empty()));
    Ok(terms)
}

fn statuses(value: &str) -> Result<Vec<RunStatus>, String> {
    let mut statuses: Vec<RunStatus> = Vec::new();
    for word in value.split(',').map(str::trim) {
        let status = parsed(word)?;
        if !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    Ok(statuses)
}

fn label(value: &str) -> Result<(&str, &str), String> {
    let (key, value) = value.split_once('=').ok_or("write `KEY=VALUE`")?;
    check_label_key(key).map_err(|bad| bad.to_string())?;
    Ok((key, value))
}

fn moment(value: &str, now: Timestamp) -> Result<Timestamp, String> {
    let ago = value.parse::<HumanDuration>().ok().map(|ago| now.minus(ago.0));
    ago.or_else(|| value.parse().ok()).ok_or_else(|| {
        format!("`{value}` is neither a time such as `2026-11-16T08:00:00Z` nor a duration such as `24h`")
    })
}

fn order(value: &str) -> Result<RunOrder, String> {
    match value {
        "newest" => Ok(RunOrder::Newest),
        "oldest" => Ok(RunOrder::Oldest),
        _ => Err(one_of(value, "newest, oldest")),
    }
}

fn one_of(value: &str, choices: &str) -> String {
    format!("`{value}` is not one of {choices}")
}

fn parsed<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn a_filter_is_written_as_it_is_read() {
        let text = r#"status=failed,cancelled workflow=etl label=env=a=b label=team=search created_after=24h
            ended_before=2023-11-14T00:00:00Z parent=run_00000000000000000000000000 schedule=nightly node=fetch
            code=timeout error="no \"route\" \\ here" children=true order=oldest"#;
        let filter = RunFilter::parse(text, NOW).unwrap();
        assert_eq!(filter.statuses, [RunStatus::Failed, RunStatus::Cancelled]);
        assert_eq!(filter.labels["env"], "a=b".into());
        assert_eq!(filter.created.from, Some(Timestamp::from_millis(1_700_000_000_000 - 86_400_000)));
        assert_eq!(filter.error.as_deref(), Some(r#"no "route" \ here"#));
        let again = RunFilter::parse(&filter.to_string(), Timestamp::from_millis(0)).unwrap();
        assert_eq!(again, filter);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |text: &str| RunFilter::parse(text, NOW).unwrap_err().to_string();
        assert!(refused("failed").contains("`failed` is no condition"));
        assert!(refused("statsu=failed").contains("did you mean"), "{}", refused("statsu=failed"));
        assert!(refused("status=fialed").contains("fialed"));
        assert!(refused("created_after=yesterday").contains("neither a time"));
        assert!(refused("label=team").contains("KEY=VALUE"));
        assert!(refused("error=\"x").contains("not closed"));
        assert!(refused("workflow=").contains("1 to 512 bytes"));
        assert_eq!(RunFilter::parse("error=x", NOW).unwrap().check(), Err(BadFilter::Unbounded));
        assert_eq!(RunFilter::parse("error=x ended_after=1h", NOW).unwrap().check(), Ok(()));
    }
}
