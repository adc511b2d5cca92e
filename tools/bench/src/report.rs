//! The results, as a table or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::{Args, Store};

/// The results of one workload; the names carry their units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<String, f64>);

impl Figures {
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// Adds the 50th and the 99th percentile, in milliseconds.
    pub(crate) fn with_times(self, of: &str, times: &[Duration]) -> Self {
        let mut histogram = Histogram::<u64>::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
        for time in times {
            // Fails only beyond 64 bits of nanoseconds.
            let _ = histogram.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
        self.with(&format!("{of}_p50_ms"), at(0.50)).with(&format!("{of}_p99_ms"), at(0.99))
    }

    /// The median of each value over the rounds.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        let names =
            rounds.first().map(|first| first.0.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let median = |name: &String| {
            let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.0.get(name).copied()).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self(names.into_iter().map(|name| (name.clone(), median(&name))).collect())
    }
}

/// The results of one invocation.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub store: String,
    pub cores: usize,
    pub repeat: u32,
    pub sizes: BTreeMap<&'static str, usize>,
    pub workloads: Vec<(String, Figures)>,
}

impl Report {
    pub(crate) fn new(args: &Args) -> Self {
        let store = match (&args.store, &args.archive) {
            (Store::Embedded(_), _) => "embedded".to_owned(),
            (Store::Redis(redis), None) => format!("{redis}, archive SQLite in a temporary folder"),
            (Store::Redis(redis), Some(_)) => format!("{redis}, archive Postgres"),
        };
        Self {
            store,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            repeat: args.repeat,
            sizes: BTreeMap::from([
                ("slots", args.slots),
                ("chain_runs", args.chain_runs),
                ("chain_steps", args.chain_steps),
                ("chain_in_flight", args.chain_in_flight),
                ("latency_runs", args.latency_runs),
                ("latency_steps", args.latency_steps),
                ("fan_runs", args.fan_runs),
                ("fan_width", args.fan_width),
                ("fan_in_flight", args.fan_in_flight),
                ("queue_runs", args.queue_runs),
                ("queue_submitters", args.queue_submitters),
                ("memory_runs", args.memory_runs),
                ("memory_steps", args.memory_steps),
                ("decisions", args.decisions),
                ("waiting_runs", args.waiting_runs),
                ("http_requests", args.http_requests),
                ("http_subscribers", args.http_subscribers),
                ("http_steps", args.http_steps),
            ]),
            workloads: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, workload: &str, figures: Figures) {
        self.workloads.push((workload.to_owned(), figures));
    }

    /// The report as `{"store", "cores", "repeat", "sizes", "workloads": {"chain": {"steps_per_s": …}}}`.
    pub fn to_json(&self) -> serde_json::Value {
        let workloads: serde_json::Map<_, _> =
            self.workloads.iter().map(|(name, figures)| (name.clone(), serde_json::json!(figures))).collect();
        serde_json::json!({
            "store": self.store,
            "cores": self.cores,
            "repeat": self.repeat,
            "sizes": self.sizes,
            "workloads": workloads,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["workload", "figure", "median"]);
        for (workload, figures) in &self.workloads {
            for (name, value) in &figures.0 {
                table.add_row([workload.clone(), name.clone(), readable(*value)]);
            }
        }
        writeln!(f, "store {}, {} cores, median of {}", self.store, self.cores, self.repeat)?;
        write!(f, "{table}")
    }
}

fn readable(value: f64) -> String {
    match value {
        v if v >= 1_000.0 => {
            let digits = format!("{v:.0}");
            let groups: Vec<&str> = digits
                .as_bytes()
                .rchunks(3)
                .rev()
                .filter_map(|group| std::str::from_utf8(group).ok())
                .collect();
            groups.join(",")
        }
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_taken_for_each_figure() {
        let round = |a: f64, b: f64| Figures::default().with("a", a).with("b", b);
        let median = Figures::median(&[round(1.0, 9.0), round(5.0, 7.0), round(3.0, 8.0)]);
        assert_eq!(median, round(3.0, 8.0));
    }

    #[test]
    fn large_figures_are_grouped() {
        assert_eq!(readable(1_234_567.8), "1,234,568");
        assert_eq!(readable(12.345), "12.3");
        assert_eq!(readable(0.16), "0.160");
    }
}
