//! The connection that a saver holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use switchyard_checkpoints::Address;
use switchyard_checkpoints::keys::Keyspace;

use crate::bridge::Bridge;
use crate::errors::to_python;
use crate::live::Live;
use crate::op::Op;

/// The checkpoints of one namespace at one address. It connects at the first call.
#[pyclass(frozen, module = "switchyard._core")]
pub(crate) struct Core {
    address: Address,
    space: Keyspace,
    timeout: Duration,
    /// Only locked while the interpreter is held, and so never during a fork.
    live: Mutex<Option<Arc<Live>>>,
    is_closed: AtomicBool,
}

#[pymethods]
impl Core {
    #[new]
    fn new(py: Python<'_>, url: &str, namespace: &str, timeout_seconds: f64) -> PyResult<Self> {
        let address = Address::parse(url).map_err(|error| to_python(py, error.into()))?;
        let space = Keyspace::new(namespace).map_err(|error| to_python(py, error))?;
        let timeout = Duration::try_from_secs_f64(timeout_seconds).ok().filter(|timeout| !timeout.is_zero());
        let timeout = timeout.ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err(format!("a timeout of {timeout_seconds} s is not one"))
        })?;
        Ok(Self { address, space, timeout, live: Mutex::default(), is_closed: AtomicBool::new(false) })
    }

    /// Without user and password.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Does it on this thread. Other threads go on meanwhile.
    fn wait<'py>(&self, py: Python<'py>, op: &Op) -> PyResult<Bound<'py, PyAny>> {
        let live = self.live()?;
        let task = op.take()?;
        let outcome = py.detach(|| live.wait(task));
        outcome.map_err(|error| to_python(py, error))?.into_python(py)
    }

    /// Begins it, and resolves the future in its loop when it is done. What was begun is not taken back when the future
    /// is cancelled.
    fn start(
        &self,
        op: &Op,
        bridge: &Bound<'_, Bridge>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let live = self.live()?;
        Bridge::begin(bridge, event_loop, op.take()?, live, future)
    }

    /// Connections are let go when their last call is done.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        *self.live.lock() = None;
    }
}

impl Core {
    fn live(&self) -> PyResult<Arc<Live>> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("the saver is closed"));
        }
        let mut live = self.live.lock();
        if let Some(live) = &*live
            && live.pid == std::process::id()
        {
            return Ok(live.clone());
        }
        let (address, space, timeout) = (self.address.clone(), self.space.clone(), self.timeout);
        let made = Arc::new(Live::new(address, space, timeout));
        // After a fork the old value is the parent's: it is not dropped, because closing it would end the parent's
        // connections.
        std::mem::forget(live.replace(made.clone()));
        Ok(made)
    }
}
