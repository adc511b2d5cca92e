//! The SQL of a filter on runs.
//!
//! The filter names the index that finds its runs in order ([`RunPath`]). The planner has no statistics, so the other
//! conditions are written with a `+` before their column: SQLite checks them on the rows that the index finds, and
//! uses no other index for them.

use rusqlite::Connection;
use rusqlite::types::ToSql;
use switchyard_core::run::RunStatus;
use switchyard_store::{Page, RunCount, RunFilter, RunOrder, RunPath, RunRecord, TimeRange};

use super::readers::{Answer, at_most, list};
use super::run_index::{COLUMNS, record};
use super::wheres::Wheres;

pub(super) fn page(conn: &Connection, filter: &RunFilter) -> Answer<Page<RunRecord>> {
    // One row more than the limit shows whether there is another page.
    let limit = at_most(filter.limit.saturating_add(1));
    let order = match filter.order {
        RunOrder::Newest => "DESC",
        RunOrder::Oldest => "ASC",
    };
    let (sql, values) = match filter.path() {
        RunPath::Statuses([status]) => one_search(filter, Some(*status), order, limit),
        RunPath::Statuses(statuses) => merged(filter, statuses, order, limit),
        _ => one_search(filter, None, order, limit),
    };
    let params = rusqlite::params_from_iter(values.iter().map(AsRef::as_ref));
    let mut items = list(conn, &sql, params, record)?;
    let more = items.len() > filter.limit;
    items.truncate(filter.limit);
    let next = if more { items.last().map(|run| run.run_id) } else { None };
    Ok(Page { items, next })
}

pub(super) fn count(conn: &Connection, filter: &RunFilter, max: Option<u64>) -> Answer<RunCount> {
    let search = Search::new(filter, None);
    let limit = max.map_or(i64::MAX, |max| i64::try_from(max).unwrap_or(i64::MAX).saturating_add(1));
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {} {} LIMIT {limit})", search.from, search.wheres);
    let found: i64 = conn.prepare_cached(&sql)?.query_row(search.wheres.params(), |row| row.get(0))?;
    let found = u64::try_from(found).unwrap_or(0);
    Ok(match max {
        Some(max) if found > max => RunCount { runs: max, more: true },
        _ => RunCount { runs: found, more: false },
    })
}

type Values = Vec<Box<dyn ToSql>>;

/// One search per status, merged in order: no index has the runs of several statuses in order.
fn merged(filter: &RunFilter, statuses: &[RunStatus], order: &str, limit: i64) -> (String, Values) {
    let mut values = Values::new();
    let searches: Vec<String> = statuses
        .iter()
        .map(|status| {
            let (sql, of_status) = one_search(filter, Some(*status), order, limit);
            values.extend(of_status);
            format!("SELECT * FROM ({sql})")
        })
        .collect();
    (format!("{} ORDER BY id {order} LIMIT {limit}", searches.join(" UNION ALL ")), values)
}

fn one_search(filter: &RunFilter, status: Option<RunStatus>, order: &str, limit: i64) -> (String, Values) {
    let Search { from, id, wheres } = Search::new(filter, status);
    let sql = format!("SELECT {COLUMNS} FROM {from} {wheres} ORDER BY {id} {order} LIMIT {limit}");
    (sql, wheres.into_values())
}

/// The parts of a statement.
struct Search {
    from: &'static str,
    /// The column that the index is ordered by.
    id: &'static str,
    wheres: Wheres,
}

impl Search {
    /// With `status`, the index over statuses is searched for that status alone.
    fn new(filter: &RunFilter, status: Option<RunStatus>) -> Self {
        let mut search = Self { from: "runs", id: "runs.id", wheres: Wheres::default() };
        search.take_path(filter, status);
        let first = filter.first_id().map(|id| id.to_string());
        let end = filter.end_id().map(|id| id.to_string());
        let id = search.id;
        search.wheres.compare(&format!("{id} >= ?"), first);
        search.wheres.compare(&format!("{id} < ?"), end);
        search.check_rest(filter, status);
        search
    }

    fn take_path(&mut self, filter: &RunFilter, status: Option<RunStatus>) {
        let wheres = &mut self.wheres;
        match filter.path() {
            RunPath::Label { key, value } => {
                // SQLite executes a cross join in the order in which it is written.
                self.from = "run_labels AS labelled CROSS JOIN runs ON runs.id = labelled.run";
                self.id = "labelled.run";
                wheres.compare("labelled.key = ?", Some(key.to_owned()));
                wheres.compare("labelled.value = ?", Some(value.to_owned()));
            }
            RunPath::Parent(run) => wheres.compare("parent = ?", Some(run.to_string())),
            RunPath::Code(code) => wheres.compare("error_code = ?", Some(code.to_owned())),
            RunPath::Node(node) => wheres.compare("error_node = ?", Some(node.to_owned())),
            RunPath::Schedule(name) => wheres.compare("schedule = ?", Some(name.to_owned())),
            RunPath::Failed => {
                self.from = "runs INDEXED BY runs_with_error";
                wheres.clauses.push("error IS NOT NULL".to_owned());
            }
            RunPath::Workflow(name) => wheres.compare("workflow = ?", Some(name.to_owned())),
            RunPath::Statuses(_) => {
                wheres.compare("status = ?", status.map(|status| status.as_str().to_owned()));
            }
            RunPath::All => {}
        }
    }

    /// Adds every condition, including those that the index already guarantees.
    fn check_rest(&mut self, filter: &RunFilter, status: Option<RunStatus>) {
        let wheres = &mut self.wheres;
        for (key, value) in filter.labels_to_check() {
            wheres.push(
                "EXISTS (SELECT 1 FROM run_labels AS l WHERE l.run = runs.id AND l.key = ? AND +l.value = ?)",
                Box::new(key.to_string()),
            );
            wheres.value(Box::new(value.to_string()));
        }
        wheres.compare("+error_code = ?", filter.code.clone());
        wheres.compare("+error_node = ?", filter.node.clone());
        wheres.compare("+schedule = ?", filter.schedule.clone());
        wheres.compare("+workflow = ?", filter.workflow.clone());
        wheres.compare("instr(lower(error), lower(?)) > 0", filter.error_in_json());
        if status.is_none() && !filter.statuses.is_empty() {
            let words: Vec<String> =
                filter.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
            wheres.clauses.push(format!("+status IN ({})", words.join(", ")));
        }
        let TimeRange { from, until } = filter.ended;
        wheres.number("+ended_at >= ?", from.map(|at| at.as_millis()));
        wheres.number("+ended_at < ?", until.map(|at| at.as_millis()));
        if !filter.has_children() {
            wheres.clauses.push("+parent IS NULL".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::Timestamp;

    use super::*;
    use crate::sqlite::migrations;

    /// The lines of SQLite's query plan for a filter, without the lookups per found row.
    fn plan(text: &str) -> Vec<String> {
        let mut conn = Connection::open_in_memory().unwrap();
        migrations::migrate(&mut conn, std::path::Path::new("memory")).unwrap();
        let filter = RunFilter::parse(text, Timestamp::from_millis(1_700_000_000_000)).unwrap();
        let (sql, values) = one_search(&filter, filter.statuses.first().copied(), "DESC", 51);
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let params = rusqlite::params_from_iter(values.iter().map(AsRef::as_ref));
        let lines = explain.query_map(params, |row| row.get::<_, String>("detail")).unwrap();
        lines.map(Result::unwrap).take_while(|line| !line.starts_with("CORRELATED")).collect()
    }

    #[test]
    fn an_index_answers_each_condition_with_a_time_range_in_order() {
        let parent = "parent=run_00000000000000000000000000";
        for (text, expected) in [
            ("", "runs USING INDEX sqlite_autoindex_runs_1 (id>? AND id<?)"),
            ("status=failed", "runs USING INDEX runs_by_status (status=? AND id>? AND id<?)"),
            ("workflow=etl", "runs USING INDEX runs_by_workflow (workflow=? AND id>? AND id<?)"),
            ("schedule=nightly", "runs USING INDEX runs_by_schedule (schedule=? AND id>? AND id<?)"),
            ("code=timeout", "runs USING INDEX runs_by_error_code (error_code=? AND id>? AND id<?)"),
            ("node=fetch", "runs USING INDEX runs_by_error_node (error_node=? AND id>? AND id<?)"),
            ("error=gateway", "runs USING INDEX runs_with_error (id>? AND id<?)"),
            (parent, "runs USING INDEX runs_by_parent (parent=? AND id>? AND id<?)"),
            (
                "label=team=search workflow=etl",
                "labelled USING COVERING INDEX run_labels_by_value (key=? AND value=? AND run>? AND run<?)",
            ),
        ] {
            let plan = plan(&format!("{text} created_after=2d created_before=1d"));
            assert_eq!(plan[0], format!("SEARCH {expected}"), "{text}: {plan:?}");
            assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{text}: {plan:?}");
        }
    }
}
