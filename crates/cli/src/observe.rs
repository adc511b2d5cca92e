//! Sets up metrics and the export of spans.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use switchyard_observe::Observe;
use switchyard_observe::trace::{Collector, Exporter, Spans};

use crate::errors::Failure;
use crate::settings::Settings;

/// Sets up [`Observe`] from the settings. Must be called within the runtime, because the exporter is a task.
pub(crate) fn observe(settings: &Settings) -> Result<Observe, Failure> {
    let observe = Observe::default();
    let Some(endpoint) = &settings.otlp_endpoint else { return Ok(observe) };
    let collector = Collector {
        endpoint: endpoint.as_str().to_owned(),
        headers: headers(settings)?,
        service: settings.otlp_service.clone(),
    };
    let client = switchyard_runtime::kinds::http_client().build();
    let client =
        client.map_err(|error| Failure::store(format!("the HTTP client cannot be set up: {error}")))?;
    let exporter = Exporter::start(client, collector, observe.metrics().clone());
    Ok(observe.with_spans(Spans::new(exporter, settings.otlp_sample.0)))
}

fn headers(settings: &Settings) -> Result<HeaderMap, Failure> {
    let given = settings.otlp_headers.iter().flat_map(|headers| headers.iter());
    let header = |(name, value): (&str, &str)| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((name.parse::<HeaderName>().ok()?, value))
    };
    let headers: Option<HeaderMap> = given.map(header).collect();
    headers.ok_or_else(|| Failure::usage("otlp.headers has a header that cannot be sent"))
}
