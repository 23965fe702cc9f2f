//! `llopt layout conflicts`.

use anyhow::{Context, Result};
use clap::Args;
use llopt::Target;
use llopt_view::conflicts;

use super::swizzle::Kind;
use super::{LayoutText, On, print};

/// The arguments of `llopt layout conflicts`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The layout of the registers
    #[arg(long, value_name = "LAYOUT")]
    registers: LayoutText,

    /// The layout of the shared memory
    #[arg(long, value_name = "LAYOUT")]
    memory: LayoutText,

    #[command(flatten)]
    on: On,

    /// Bits of an element
    #[arg(long, value_name = "N")]
    elem_bits: u32,

    /// Whose banks and instructions, such as cuda:90 or hip:gfx950
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,

    /// Which instructions access the memory
    #[arg(long, value_name = "KIND", default_value = "vector")]
    instruction: Kind,

    /// Print the counts as JSON
    #[arg(long)]
    json: bool,
}

/// Counts according to the arguments.
///
/// # Errors
/// A layout is invalid, the layouts do not fit together, or no instruction of the kind fits.
pub fn run(arguments: &Arguments) -> Result<()> {
    let on = &arguments.on;
    let registers = arguments.registers.read(on).context("--registers")?;
    let memory = arguments.memory.read_memory(on).context("--memory")?;
    let conflicts = conflicts(
        &registers,
        &memory,
        arguments.elem_bits,
        arguments.target,
        arguments.instruction.into(),
    )?;
    if arguments.json {
        let text = serde_json::to_string(&conflicts).context("cannot serialise the counts")?;
        return print(&format!("{text}\n"));
    }
    print(&conflicts.text())
}
