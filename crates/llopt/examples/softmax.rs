//! Builds a softmax kernel from Rust, compiles it for both vendors, runs the result on the simulated machine, and
//! compares it with a softmax written in Rust.
//!
//! ```text
//! cargo run --package llopt --example softmax
//! ```

use std::error::Error;

use llopt::build::{Argument, Axis, Context, Element, KernelBuilder};
use llopt::sim::{self, Machine};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

/// Each program computes one row: `output[row] = softmax(input[row])` for rows of up to `width` columns.
fn softmax_kernel(width: u32) -> Result<Source, llopt::Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "softmax");
    let output = k.argument("output", Argument::pointer(Element::F32).divisible_by(16));
    let input = k.argument("input", Argument::pointer(Element::F32).divisible_by(16));
    let stride = k.argument("stride", Argument::scalar(Element::I32).divisible_by(16));
    let columns = k.argument("columns", Argument::scalar(Element::I32));

    let start = k.program_id(Axis::X) * stride;
    let column = k.range(0..width);
    let mask = column.lt(columns);
    let row = (input + (start + column)).load_where(mask, f64::NEG_INFINITY);

    // The largest becomes zero, so no exponential overflows.
    let exponentials = (row - row.max(0)).exp();
    let result = exponentials / exponentials.sum(0);
    (output + (start + column)).store_where(result, mask);
    k.finish()
}

/// The same in plain Rust.
fn softmax(row: &[f32]) -> Vec<f32> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponentials: Vec<f32> = row.iter().map(|x| (x - largest).exp()).collect();
    let sum: f32 = exponentials.iter().sum();
    exponentials.iter().map(|x| x / sum).collect()
}

/// Runs the kernel on the simulated machine of a target.
fn run(source: &Source, target: Target, rows: u32, columns: u32) -> Result<f32, Box<dyn Error>> {
    let compiler = Compiler::new(Options::new(target));
    let assembly = compiler.compile(source, ArtifactKind::assembly_of(target))?;
    let llvm = compiler.compile(source, ArtifactKind::Llvm)?;

    let values: Vec<f32> = (0..rows * columns)
        .map(|i| (f64::from(i).sin() * 8.0) as f32)
        .collect();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut launch = llvm.metadata.launch(
        [rows, 1, 1],
        vec![
            sim::Argument::Uninitialized(bytes.len()),
            sim::Argument::Buffer(bytes),
            sim::Argument::Int(columns.into()),
            sim::Argument::Int(columns.into()),
        ],
    );
    let machine = Machine::from_ir(llvm.artifact.bytes(), target, None)?;
    let report = machine.run(&mut launch, &sim::Options::default())?;
    if let Some(finding) = report.findings.first() {
        return Err(finding.to_string().into());
    }

    let sim::Argument::Buffer(output) = &launch.arguments[0] else {
        return Err("the output is gone".into());
    };
    let output: Vec<f32> = output
        .chunks_exact(4)
        .map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
        .collect();
    let expected: Vec<f32> = values.chunks(columns as usize).flat_map(softmax).collect();
    let difference = output
        .iter()
        .zip(&expected)
        .map(|(got, wanted)| (got - wanted).abs())
        .fold(0.0, f32::max);
    println!(
        "{target}: {} lines of assembly, {} bytes of shared memory; largest difference {difference:e}",
        assembly.artifact.text().unwrap_or_default().lines().count(),
        assembly.metadata.shared,
    );
    Ok(difference)
}

/// Builds, compiles, runs and compares.
///
/// # Errors
/// A result that differs by more than 1e-6.
pub fn main() -> Result<(), Box<dyn Error>> {
    let source = softmax_kernel(256)?;
    for name in ["cuda:90", "hip:gfx942"] {
        let difference = run(&source, Target::parse(name)?, 5, 208)?;
        if difference > 1e-6 {
            return Err(format!("{name}: the results differ by {difference:e}").into());
        }
    }
    Ok(())
}
