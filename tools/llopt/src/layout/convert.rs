//! `llopt layout convert`.

use anyhow::{Context, Result};
use clap::Args;
use llopt_view::{ConversionJson, conversion};

use super::{Ends, print};

/// The arguments of `llopt layout convert`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    ends: Ends,

    /// Print the plans as JSON
    #[arg(long)]
    json: bool,
}

/// Plans the conversion.
///
/// # Errors
/// A layout is invalid, the layouts do not fit together, or the target has no plan.
pub fn run(arguments: &Arguments) -> Result<()> {
    let ends = &arguments.ends;
    let (from, to) = ends.read()?;
    let conversion = conversion(&from, &to, ends.elem_bits, ends.target)?;
    if arguments.json {
        let text = serde_json::to_string(&ConversionJson::from(&conversion))
            .context("cannot serialise the plans")?;
        return print(&format!("{text}\n"));
    }
    print(&conversion.text())
}
