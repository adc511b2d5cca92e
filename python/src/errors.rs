//! Errors as exceptions of `switchyard.errors`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use switchyard_checkpoints::Error;

pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let name = match error {
        Error::Invalid(_) => return PyValueError::new_err(error.to_string()),
        Error::Unavailable { .. } => "Unavailable",
        Error::Refused { .. } => "Refused",
        Error::Format { .. } => "UnknownFormat",
        Error::Corrupt { .. } => "Corrupted",
    };
    exception(py, name, &error.to_string()).unwrap_or_else(|missing| missing)
}

fn exception(py: Python<'_>, name: &str, message: &str) -> PyResult<PyErr> {
    let class = py.import("switchyard.errors")?.getattr(name)?;
    Ok(PyErr::from_value(class.call1((message,))?))
}
