//! What is counted about requests and tasks, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds in seconds: from an answer out of memory to a slow disk; long polls are beyond.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Counted since the process started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    // One for all of it: held for a few additions, never across an await.
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<(String, &'static str, u16), u64>,
    durations: BTreeMap<(String, &'static str), Histogram>,
    claimed: u64,
    settled: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Default)]
struct Histogram {
    /// The last is for everything above the bounds.
    buckets: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Metrics {
    /// `route` is the pattern and not the path, so that there are few of them.
    pub(crate) fn request(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let mut counts = self.counts.lock();
        *counts.requests.entry((route.to_owned(), method, status)).or_default() += 1;
        counts.durations.entry((route.to_owned(), method)).or_default().add(took);
    }

    pub(crate) fn claimed(&self, tasks: usize) {
        self.counts.lock().claimed += tasks as u64;
    }

    pub(crate) fn settled(&self, outcome: &'static str) {
        *self.counts.lock().settled.entry(outcome).or_default() += 1;
    }

    pub(crate) fn write(&self, page: &mut Page) {
        let counts = self.counts.lock();
        page.about("switchyard_http_requests_total", "counter", "Requests answered");
        for ((route, method, status), count) in &counts.requests {
            let status = status.to_string();
            let labels = [("route", route.as_str()), ("method", method), ("status", &status)];
            page.sample("switchyard_http_requests_total", &labels, *count as f64);
        }
        page.about(
            "switchyard_http_request_duration_seconds",
            "histogram",
            "From request to the head of its answer",
        );
        for ((route, method), histogram) in &counts.durations {
            histogram.write(page, &[("route", route.as_str()), ("method", method)]);
        }
        page.about("switchyard_tasks_claimed_total", "counter", "Tasks handed to workers over HTTP");
        page.sample("switchyard_tasks_claimed_total", &[], counts.claimed as f64);
        page.about(
            "switchyard_tasks_settled_total",
            "counter",
            "What workers over HTTP said, and whether it counted",
        );
        for (outcome, count) in &counts.settled {
            page.sample("switchyard_tasks_settled_total", &[("outcome", outcome)], *count as f64);
        }
    }
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket] += 1;
        self.sum += seconds;
    }

    fn write(&self, page: &mut Page, labels: &[(&str, &str)]) {
        let name = "switchyard_http_request_duration_seconds";
        let mut below = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            below += count;
            let bound = BOUNDS.get(at).map_or("+Inf".to_owned(), ToString::to_string);
            let with_bound: Vec<(&str, &str)> =
                labels.iter().copied().chain([("le", bound.as_str())]).collect();
            page.sample(&format!("{name}_bucket"), &with_bound, below as f64);
        }
        page.sample(&format!("{name}_sum"), labels, self.sum);
        page.sample(&format!("{name}_count"), labels, below as f64);
    }
}

/// A page of metrics as Prometheus reads it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    pub(crate) fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{before}{label}=\"{value}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_up_and_labels_are_escaped() {
        let metrics = Metrics::default();
        metrics.request("/v1/runs", "GET", 200, Duration::from_micros(700));
        metrics.request("/v1/runs", "GET", 200, Duration::from_secs(9));
        let mut page = Page::default();
        metrics.write(&mut page);
        page.sample("x", &[("a", "\"\\\n")], 1.0);
        let text = page.finish();
        let labels = "route=\"/v1/runs\",method=\"GET\"";
        for line in [
            format!("switchyard_http_requests_total{{{labels},status=\"200\"}} 2"),
            format!("switchyard_http_request_duration_seconds_bucket{{{labels},le=\"0.0005\"}} 0"),
            format!("switchyard_http_request_duration_seconds_bucket{{{labels},le=\"0.001\"}} 1"),
            format!("switchyard_http_request_duration_seconds_bucket{{{labels},le=\"5\"}} 1"),
            format!("switchyard_http_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("switchyard_http_request_duration_seconds_count{{{labels}}} 2"),
            "x{a=\"\\\"\\\\\\n\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
