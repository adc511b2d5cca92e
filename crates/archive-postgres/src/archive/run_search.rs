//! The SQL of a filter on runs. The filter names the index that finds its runs in order ([`RunPath`]).

use switchyard_core::run::RunStatus;
use switchyard_store::{Page, RunCount, RunFilter, RunOrder, RunPath, RunRecord, StoreError, TimeRange};

use super::rows::{at_most, millis};
use super::run_index::{COLUMNS, record};
use super::wheres::Wheres;
use crate::pool::Pool;
use crate::text;

pub(super) async fn page(pool: &Pool, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
    // One row more than the limit shows whether there is another page.
    let limit = at_most(filter.limit.saturating_add(1));
    let order = match filter.order {
        RunOrder::Newest => "DESC",
        RunOrder::Oldest => "ASC",
    };
    let mut wheres = Wheres::default();
    let sql = match filter.path() {
        RunPath::Statuses([status]) => one_search(filter, Some(*status), order, limit, &mut wheres),
        RunPath::Statuses(statuses) => merged(filter, statuses, order, limit, &mut wheres),
        _ => one_search(filter, None, order, limit, &mut wheres),
    };
    let rows = pool.rows(&sql, &wheres.params()).await?;
    let mut items = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > filter.limit;
    items.truncate(filter.limit);
    let next = if more { items.last().map(|run| run.run_id) } else { None };
    Ok(Page { items, next })
}

pub(super) async fn count(pool: &Pool, filter: &RunFilter, max: Option<u64>) -> Result<RunCount, StoreError> {
    let mut wheres = Wheres::default();
    let (from, _) = conditions(filter, None, &mut wheres);
    let limit = max.map_or(i64::MAX, |max| i64::try_from(max).unwrap_or(i64::MAX).saturating_add(1));
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {from} {wheres} LIMIT {limit}) AS found");
    let row = pool.row(&sql, &wheres.params()).await?;
    let found = row.map_or(0, |row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0));
    Ok(match max {
        Some(max) if found > max => RunCount { runs: max, more: true },
        _ => RunCount { runs: found, more: false },
    })
}

/// One search per status, merged in order: no index has the runs of several statuses in order.
fn merged(
    filter: &RunFilter,
    statuses: &[RunStatus],
    order: &str,
    limit: i64,
    wheres: &mut Wheres,
) -> String {
    let searches: Vec<String> = statuses
        .iter()
        .map(|status| {
            wheres.clauses.clear();
            format!("({})", one_search(filter, Some(*status), order, limit, wheres))
        })
        .collect();
    format!("{} ORDER BY id {order} LIMIT {limit}", searches.join(" UNION ALL "))
}

fn one_search(
    filter: &RunFilter,
    status: Option<RunStatus>,
    order: &str,
    limit: i64,
    wheres: &mut Wheres,
) -> String {
    let (from, id) = conditions(filter, status, wheres);
    format!("SELECT {COLUMNS} FROM {from} {wheres} ORDER BY {id} {order} LIMIT {limit}")
}

/// The tables, and the column that orders the result. With `status`, the index over statuses is searched for that
/// status alone.
fn conditions(
    filter: &RunFilter,
    status: Option<RunStatus>,
    wheres: &mut Wheres,
) -> (&'static str, &'static str) {
    let mut source = ("runs", "runs.id");
    let stored = |text: &String| text::stored(text).into_owned();
    match filter.path() {
        RunPath::Label { key, value } => {
            source = ("run_labels AS labelled JOIN runs ON runs.id = labelled.run", "labelled.run");
            wheres.add("labelled.key =", Some(text::stored(key).into_owned()));
            wheres.add("labelled.value =", Some(text::stored(value).into_owned()));
        }
        RunPath::Failed => wheres.clauses.push("error IS NOT NULL".to_owned()),
        _ => {}
    }
    let id = source.1;
    wheres.add(&format!("{id} >="), filter.first_id().map(|id| id.to_string()));
    wheres.add(&format!("{id} <"), filter.end_id().map(|id| id.to_string()));
    wheres.add("parent =", filter.parent.map(|run| run.to_string()));
    wheres.add("error_code =", filter.code.as_ref().map(stored));
    wheres.add("error_node =", filter.node.as_ref().map(stored));
    wheres.add("schedule =", filter.schedule.as_ref().map(stored));
    wheres.add("workflow =", filter.workflow.as_ref().map(stored));
    wheres.add_in("strpos(lower(error), lower(", filter.error_in_json(), ")) > 0");
    for (key, value) in filter.labels_to_check() {
        let of_run = "EXISTS (SELECT 1 FROM run_labels AS l WHERE l.run = runs.id AND l.key =";
        wheres.add(of_run, Some(text::stored(key).into_owned()));
        wheres.add_to_last(" AND l.value =", text::stored(value).into_owned(), ")");
    }
    match status {
        Some(status) => wheres.clauses.push(format!("status = '{}'", status.as_str())),
        None if filter.statuses.is_empty() => {}
        None => {
            let words: Vec<String> =
                filter.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
            wheres.clauses.push(format!("status IN ({})", words.join(", ")));
        }
    }
    let TimeRange { from, until } = filter.ended;
    wheres.clauses.extend(millis(from).map(|at| format!("ended_at >= {at}")));
    wheres.clauses.extend(millis(until).map(|at| format!("ended_at < {at}")));
    if !filter.has_children() {
        wheres.clauses.push("parent IS NULL".to_owned());
    }
    source
}
