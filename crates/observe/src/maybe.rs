//! A gauge that may have no value: it exposes nothing rather than a stale value.

use std::fmt::{Debug, Error};
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeGaugeValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

#[derive(Clone, Debug)]
pub(crate) struct Maybe<V>(Arc<Mutex<Option<V>>>);

impl<V> Default for Maybe<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V> Maybe<V> {
    pub(crate) fn set(&self, value: V) {
        *self.0.lock() = Some(value);
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }
}

impl<V: EncodeGaugeValue + Copy + Debug + Send + 'static> EncodeMetric for Maybe<V> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let value = *self.0.lock();
        value.map_or(Ok(()), |value| encoder.encode_gauge(&value))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}
