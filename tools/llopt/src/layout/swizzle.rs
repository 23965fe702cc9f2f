//! `llopt layout swizzle`.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use llopt_view::{
    self, Banks, InstructionKind, PaddedJson, SwizzleJson, SwizzleRequest, View, Window, padding,
    swizzle,
};

use super::{Ends, LayoutText, print};
use crate::output::Output;

/// The arguments of `llopt layout swizzle`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    ends: Ends,

    /// Which instructions store [default: the cheapest]
    #[arg(long, value_name = "KIND")]
    store: Option<Kind>,

    /// Which instructions load [default: the cheapest]
    #[arg(long, value_name = "KIND")]
    load: Option<Kind>,

    /// Keep this order of elements in memory, and find the gaps that are best for it
    #[arg(long, value_name = "LAYOUT", conflicts_with = "svg")]
    pad: Option<LayoutText>,

    /// Print the memory's layout, or its gaps, and the certificate as JSON
    #[arg(long, conflicts_with = "svg")]
    json: bool,

    /// Draw the memory, coloured by banks, into an SVG file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<Output>,
}

/// A kind of instructions that access shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Each lane moves consecutive elements
    Vector,
    /// Rows of matrices spread over lanes: ldmatrix, stmatrix
    Matrix,
    /// Columns of matrices spread over lanes: ldmatrix.trans, stmatrix.trans, ds_read_tr
    Transposed,
}

impl From<Kind> for InstructionKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Vector => Self::Vector,
            Kind::Matrix => Self::Matrix,
            Kind::Transposed => Self::MatrixTransposed,
        }
    }
}

/// Synthesises the swizzle.
///
/// # Errors
/// A layout is invalid, the layouts do not fit together, no instruction of a kind fits, or the picture cannot be
/// written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let ends = &arguments.ends;
    let (from, to) = ends.read()?;
    let request = SwizzleRequest {
        store: arguments.store.map(Into::into),
        load: arguments.load.map(Into::into),
        ..SwizzleRequest::default()
    };
    if let Some(memory) = &arguments.pad {
        let memory = memory.read(&ends.on).context("--pad")?;
        let padded = padding(&memory, &from, &to, ends.elem_bits, ends.target, request)?;
        if arguments.json {
            let text = serde_json::to_string(&PaddedJson::from(&padded))
                .context("cannot serialise the gaps")?;
            return print(&format!("{text}\n"));
        }
        return print(&padded.text());
    }
    let swizzle = swizzle(&from, &to, ends.elem_bits, ends.target, request)?;
    if arguments.json {
        let text = serde_json::to_string(&SwizzleJson::from(&swizzle))
            .context("cannot serialise the swizzle")?;
        return print(&format!("{text}\n"));
    }
    if let Some(output) = &arguments.svg {
        let banks = Some(Banks::of(ends.target, ends.elem_bits));
        let window = Window {
            rows: 128,
            columns: 128,
        };
        let mut grids = llopt_view::grids(swizzle.layout(), View::Tensor, banks, window)?;
        grids.extend(llopt_view::grids(
            swizzle.layout(),
            View::Hardware,
            banks,
            window,
        )?);
        return output.write(llopt_view::svg::draw(&grids).as_bytes());
    }
    print(&swizzle.text())
}
