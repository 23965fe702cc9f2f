//! Errors of llopt as Python exceptions.

use llopt::{Error, ErrorClass, Source, sim};
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// The exception of a failed compilation: its class says whose fault it is, its text is llopt's message with the line
/// of source at its location.
pub(crate) fn of_compilation(py: Python<'_>, error: &Error, source: &Source) -> PyErr {
    // Locations are mostly in the user's Python, whose lines the package shows.
    let text = error.with_source(source);
    let places: Vec<(String, String)> = error
        .diagnostics()
        .into_iter()
        .map(|diagnostic| (diagnostic.location, diagnostic.message))
        .collect();
    match error.class() {
        ErrorClass::InvalidInput => raise(py, "InvalidKernelError", (text, places)),
        ErrorClass::Unsupported => {
            let arguments = (text, places, error.op(), error.feature());
            raise(py, "UnsupportedError", arguments)
        }
        ErrorClass::Environment => raise(py, "EnvironmentFailure", (text, places)),
        ErrorClass::Bug => raise(py, "InternalError", (text, places)),
    }
}

/// The exception of a kernel that the simulated machine could not prepare or run.
pub(crate) fn of_simulation(py: Python<'_>, error: &sim::Error) -> PyErr {
    let text = match error {
        sim::Error::Launch(inner) => format!("{error}: {inner}"),
        _ => error.to_string(),
    };
    match error {
        sim::Error::Unsupported { .. } => raise(py, "NotSimulatedError", (text,)),
        _ => raise(py, "SimulationError", (text,)),
    }
}

/// An exception of the module `triton_llopt.errors`.
pub(crate) fn raise<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let made = PyModule::import(py, "triton_llopt.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
