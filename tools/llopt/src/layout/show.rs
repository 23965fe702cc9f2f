//! `llopt layout show`.

use std::str::FromStr;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use llopt::Target;
use llopt_view::{Banks, LayoutJson, Window};

use super::{LayoutText, On};
use crate::output::Output;

/// The arguments of `llopt layout show`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The layout
    #[arg(value_name = "LAYOUT")]
    layout: LayoutText,

    #[command(flatten)]
    on: On,

    /// What to show [default: bases, and tensor in a picture]
    #[arg(long, value_name = "VIEW", value_delimiter = ',')]
    view: Vec<View>,

    /// Print the layout as JSON and nothing else
    #[arg(long, conflicts_with_all = ["view", "svg"])]
    json: bool,

    /// Draw the views into an SVG file instead of printing them; `-` is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<Output>,

    /// Rows and columns of a table at most, such as 16x32, or all [default: 32x32; 128x128 in a
    /// picture]
    #[arg(long, value_name = "ROWSxCOLUMNS")]
    window: Option<WindowSize>,

    /// Bits of an element, to colour a memory by its banks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    elem_bits: Option<u32>,

    /// Whose banks: such as cuda:90 or hip:gfx950 [default: 32 banks of 4 bytes]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Option<Target>,
}

/// What can be shown of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum View {
    /// The basis vectors
    Bases,
    /// For each element where it lies
    Tensor,
    /// For each place which element it holds
    Hardware,
    /// The matrix over F2
    Matrix,
}

impl View {
    /// The view as cells; `None` for bases, which are not a picture.
    fn grid(self) -> Option<llopt_view::View> {
        match self {
            Self::Bases => None,
            Self::Tensor => Some(llopt_view::View::Tensor),
            Self::Hardware => Some(llopt_view::View::Hardware),
            Self::Matrix => Some(llopt_view::View::Matrix),
        }
    }
}

/// `16x32` or `all`.
#[derive(Clone, Copy, Debug)]
struct WindowSize(Window);

impl FromStr for WindowSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Window::ALL));
        }
        let sizes = text
            .split_once('x')
            .and_then(|(rows, columns)| Some((rows.parse().ok()?, columns.parse().ok()?)));
        match sizes {
            Some((rows, columns)) if rows > 0 && columns > 0 => Ok(Self(Window { rows, columns })),
            _ => Err("a window is written like 16x32, or all".to_owned()),
        }
    }
}

/// Shows the layout according to the arguments.
///
/// # Errors
/// The layout is invalid, is too large for a table, or the picture cannot be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let layout = arguments.layout.read(&arguments.on)?;
    if arguments.json {
        let text = serde_json::to_string(&LayoutJson::from(&layout))
            .context("cannot serialise the layout")?;
        return Output::Standard.write(format!("{text}\n").as_bytes());
    }
    let banks = arguments.elem_bits.map(|bits| match arguments.target {
        Some(target) => Banks::of(target, bits),
        None => Banks {
            count: 32,
            bits: 32,
            element_bits: u64::from(bits),
        },
    });
    let views = match (&arguments.view[..], &arguments.svg) {
        ([], None) => &[View::Bases],
        ([], Some(_)) => &[View::Tensor],
        (views, _) => views,
    };
    let default_window = match arguments.svg {
        None => Window {
            rows: 32,
            columns: 32,
        },
        Some(_) => Window {
            rows: 128,
            columns: 128,
        },
    };
    let window = arguments.window.map_or(default_window, |window| window.0);
    if let Some(output) = &arguments.svg {
        let mut grids = Vec::new();
        for view in views.iter().filter_map(|view| view.grid()) {
            grids.extend(llopt_view::grids(&layout, view, banks, window)?);
        }
        return output.write(llopt_view::svg::draw(&grids).as_bytes());
    }
    let mut parts = Vec::new();
    for view in views {
        match view.grid() {
            None => parts.push(llopt_view::text::bases(&layout)),
            Some(view) => {
                let grids = llopt_view::grids(&layout, view, banks, window)?;
                parts.extend(grids.iter().map(llopt_view::text::grid));
            }
        }
    }
    Output::Standard.write(parts.join("\n").as_bytes())
}
