//! Kernels on the simulated machine.

use llopt::Target;
use llopt::sim::{self, Argument, Launch, Machine, Mapping, TensorArgument};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure;

/// A kernel in LLVM IR, prepared for the simulated machine. It may be launched from any thread.
#[pyclass(frozen, module = "triton_llopt._llopt")]
pub(crate) struct Kernel {
    machine: Machine,
}

/// The descriptor object of a tensor in mapped memory, as a kernel takes it by value: extents and strides in
/// elements, outermost first, and numbers as in `tensordesc_meta`.
#[pyfunction]
#[pyo3(signature = (address, shape, strides, *, elem_size, elem_type, swizzle, block_size, fill_nan))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn tensor_descriptor<'py>(
    py: Python<'py>,
    address: u64,
    shape: Vec<u32>,
    strides: Vec<u64>,
    elem_size: u32,
    elem_type: u32,
    swizzle: u32,
    block_size: Vec<u32>,
    fill_nan: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let rank = shape.len();
    if !(1..=5).contains(&rank) || strides.len() != rank || block_size.len() != rank {
        let message =
            "a tensor has one to five dimensions, each with an extent, a stride and a box";
        return Err(PyValueError::new_err(message));
    }
    let tensor = TensorArgument {
        contents: Vec::new(),
        shape,
        strides,
        element_bytes: elem_size,
        element_type: elem_type,
        swizzle_mode: swizzle,
        box_shape: block_size,
        fill_nan,
    };
    Ok(PyBytes::new(py, &tensor.object_at(address)))
}

/// An argument from Python.
#[derive(FromPyObject)]
enum Given {
    /// Uninitialised memory of that many bytes: `("scratch", bytes)`.
    Tagged(String, u64),
    /// The contents of a parameter passed by value.
    Bytes(Vec<u8>),
    Int(i64),
    Real(f64),
}

/// The outcome of a launch.
#[pyclass(frozen, module = "triton_llopt._llopt")]
pub(crate) struct Outcome {
    memory: Vec<Vec<u8>>,
    /// The output of the kernel's prints.
    #[pyo3(get)]
    output: Vec<String>,
    /// The sanitizer's findings, rendered.
    #[pyo3(get)]
    findings: Vec<String>,
    /// The reason why the kernel stopped before its end; `None` if it did not.
    #[pyo3(get)]
    failure: Option<String>,
    /// Counters and findings as JSON.
    #[pyo3(get)]
    report: String,
}

#[pymethods]
impl Outcome {
    /// The mapped memory, in the order given, with the contents that the kernel left.
    fn memory<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.memory
            .iter()
            .map(|bytes| PyBytes::new(py, bytes))
            .collect()
    }
}

#[pymethods]
impl Kernel {
    /// Decodes the kernel of a module in LLVM IR, text or bitcode, for a target (`cuda:90`).
    #[new]
    fn new(py: Python<'_>, ir: Vec<u8>, target: &str, name: Option<&str>) -> PyResult<Self> {
        let target = Target::parse(target)
            .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))?;
        let machine = py
            .detach(|| Machine::from_ir(&ir, target, name))
            .map_err(|error| failure::of_simulation(py, &error))?;
        Ok(Self { machine })
    }

    /// The kind of argument that each parameter takes, in words.
    fn parameters(&self) -> Vec<String> {
        self.machine.parameters()
    }

    /// Runs `grid` blocks of `threads` threads. Pointers among the arguments point into `memory`, pairs of an address
    /// and contents. With
    /// `overlaps` a block may not access `memory` before it has waited for the kernel before. The interpreter lock is
    /// released meanwhile.
    #[pyo3(signature = (grid, threads, dynamic_shared, arguments, memory, *, sanitize=true, overlaps=false, instruction_limit=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        threads: u32,
        dynamic_shared: u64,
        arguments: Vec<Given>,
        memory: Vec<(u64, Vec<u8>)>,
        sanitize: bool,
        overlaps: bool,
        instruction_limit: Option<u64>,
    ) -> PyResult<Outcome> {
        let arguments = arguments
            .into_iter()
            .map(argument)
            .collect::<PyResult<_>>()?;
        let mut launch = Launch::new(grid, threads, arguments);
        launch.dynamic_shared = dynamic_shared;
        launch.overlaps = overlaps;
        launch.mapped = memory
            .into_iter()
            .map(|(address, contents)| Mapping { address, contents })
            .collect();
        let mut options = sim::Options::default();
        options.sanitize = sanitize;
        options.instruction_limit = instruction_limit.unwrap_or(options.instruction_limit);
        let ran = py.detach(|| {
            let options = options;
            self.machine.run(&mut launch, &options)
        });
        let (report, failure) = match ran {
            Ok(report) => (report, None),
            Err(sim::Error::Stopped {
                block: [x, y, z],
                message,
                report,
            }) => (
                *report,
                Some(format!("block ({x}, {y}, {z}) stopped: {message}")),
            ),
            Err(error) => return Err(failure::of_simulation(py, &error)),
        };
        let text = serde_json::to_string(&report)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mapped = launch.mapped.into_iter();
        Ok(Outcome {
            memory: mapped.map(|mapping| mapping.contents).collect(),
            findings: report.findings.iter().map(ToString::to_string).collect(),
            output: report.output,
            failure,
            report: text,
        })
    }
}

fn argument(given: Given) -> PyResult<Argument> {
    Ok(match given {
        Given::Tagged(tag, number) => match tag.as_str() {
            "pointer" if number == 0 => Argument::Null,
            "pointer" => Argument::Address(number),
            "scratch" => Argument::Uninitialized(number as usize),
            _ => return Err(PyValueError::new_err(format!("no argument is a '{tag}'"))),
        },
        Given::Bytes(bytes) => Argument::Bytes(bytes),
        Given::Int(value) => Argument::Int(value),
        Given::Real(value) => Argument::Real(value),
    })
}
