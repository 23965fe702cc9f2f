//! `llopt layout convert`.

use anyhow::{Context, Result};
use clap::Args;
use llopt_view::{ConversionJson, conversion};

use super::{Ends, print};

/// What `llopt layout convert` is told.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    ends: Ends,

    /// Print the plans as JSON
    #[arg(long)]
    json: bool,
}

/// Plans the conversion as told.
///
/// # Errors
/// A layout is none, they do not fit together, or the target has no way.
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
