//! Conversions to and from Python.

use std::borrow::Cow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use switchyard_checkpoints::{DeltaHistory, Stored, Typed, Write, keys};

use crate::op::Outcome;

/// A Python string as UTF-8. Fails on a lone surrogate.
pub(crate) fn text<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str()
}

/// Passes the result of `dumps_typed` to `take`.
pub(crate) fn typed(value: &Bound<'_, PyTuple>, take: impl FnOnce(&str, &[u8])) -> PyResult<()> {
    let (format, bytes) = (value.get_item(0)?, value.get_item(1)?);
    let format = text(format.cast::<PyString>()?)?;
    if let Ok(bytes) = bytes.cast::<PyBytes>() {
        take(format, bytes.as_bytes());
        return Ok(());
    }
    // A bytearray or a memoryview, which other code could change meanwhile.
    let copied = bytes.py().get_type::<PyBytes>().call1((&bytes,))?;
    take(format, copied.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// A channel's version as a part of a field. Numbers that are equal in Python are the same version.
pub(crate) fn version<'a>(version: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    if let Ok(version) = version.cast::<PyString>() {
        return Ok(keys::version_text(text(version)?));
    }
    let py = version.py();
    let is_whole = version.is_instance_of::<PyBool>()
        || (version.is_instance_of::<PyFloat>()
            && version.call_method0(intern!(py, "is_integer"))?.is_truthy()?);
    let number = if is_whole { version.call_method0(intern!(py, "__int__"))? } else { version.clone() };
    Ok(Cow::Owned(keys::version_number(text(&number.str()?)?)))
}

impl Outcome {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Done => py.None().into_bound(py),
            Self::Whether(is) => PyBool::new(py, is).to_owned().into_any(),
            Self::Count(count) => count.into_pyobject(py)?.into_any(),
            Self::Stored(None) => py.None().into_bound(py),
            Self::Stored(Some(found)) => stored(py, &found)?.into_any(),
            Self::Page(page) => {
                let items = PyList::empty(py);
                for item in &page.items {
                    items.append(stored(py, item)?)?;
                }
                (items, page.next).into_pyobject(py)?.into_any()
            }
            Self::History(histories) => {
                let list = PyList::empty(py);
                for each in &histories {
                    list.append(history(py, each)?)?;
                }
                list.into_any()
            }
            Self::Threads(threads) => threads.into_pyobject(py)?.into_any(),
            Self::ThreadInfo(None) => py.None().into_bound(py),
            Self::ThreadInfo(Some(info)) => {
                let dict = PyDict::new(py);
                dict.set_item("thread_id", info.thread)?;
                dict.set_item("checkpoints", info.checkpoints)?;
                dict.set_item("namespaces", info.namespaces)?;
                dict.set_item("bytes", info.bytes)?;
                dict.set_item("ttl_ms", info.ttl_ms)?;
                dict.set_item("is_ttl_even", info.is_ttl_even)?;
                dict.into_any()
            }
            Self::Stats(stats) => {
                let dict = PyDict::new(py);
                dict.set_item("threads", stats.threads)?;
                dict.set_item("checkpoints", stats.checkpoints)?;
                dict.set_item("values", stats.values)?;
                dict.set_item("tasks", stats.tasks)?;
                dict.set_item("bytes", stats.bytes)?;
                dict.set_item("threads_with_ttl", stats.threads_with_ttl)?;
                dict.set_item("threads_without_ttl", stats.threads_without_ttl)?;
                dict.set_item("threads_with_uneven_ttl", stats.threads_with_uneven_ttl)?;
                dict.into_any()
            }
        })
    }
}

/// Builds `(thread, ns, id, parent, checkpoint, metadata, values, writes)`.
fn stored<'py>(py: Python<'py>, stored: &Stored) -> PyResult<Bound<'py, PyTuple>> {
    let values = PyList::empty(py);
    for (channel, value) in &stored.values {
        values.append((channel, pair(py, value)?))?;
    }
    (
        &stored.thread,
        &stored.ns,
        &stored.id,
        stored.parent.as_deref(),
        pair(py, &stored.checkpoint)?,
        pair(py, &stored.metadata)?,
        values,
        writes(py, &stored.writes)?,
    )
        .into_pyobject(py)
}

/// Builds `(writes, seed or None)`.
fn history<'py>(py: Python<'py>, history: &DeltaHistory) -> PyResult<Bound<'py, PyTuple>> {
    let seed = history.seed.as_ref().map(|seed| pair(py, seed)).transpose()?;
    (writes(py, &history.writes)?, seed).into_pyobject(py)
}

/// Builds a list of `(task, channel, (format, bytes))`.
fn writes<'py>(py: Python<'py>, writes: &[Write]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for write in writes {
        list.append((&write.task, &write.channel, pair(py, &write.value)?))?;
    }
    Ok(list)
}

/// Builds the argument of `loads_typed`.
fn pair<'py>(py: Python<'py>, typed: &Typed) -> PyResult<Bound<'py, PyTuple>> {
    let format = match &*typed.format {
        "msgpack" => intern!(py, "msgpack").clone(),
        other => PyString::new(py, other),
    };
    (format, PyBytes::new(py, &typed.bytes)).into_pyobject(py)
}
