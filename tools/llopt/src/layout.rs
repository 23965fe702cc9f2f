//! `llopt layout`: the algebra of layouts on the command line.

mod show;

use std::{fs, io};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use llopt::layout::{LinearLayout, Shape};

const FORMS: &str = "\
A layout is written in one of these forms; @FILE reads it from a file, - from standard input:

  an encoding        '#ttg.blocked<{sizePerThread = [1, 4], …}>' with --shape 128x64
  bases              '{\"in\":[{\"name\":\"lane\",\"bases\":[[0,1],[1,0]]}],\"out\":[{\"name\":\"dim0\",\"size\":2},…]}'
  a CuTe layout      '(8,64):(64,1)', 'Sw<3,3,3> o (8,64):(64,1)'

Examples:
  llopt layout show '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>' --shape 32x32
  llopt layout show 'Sw<3,3,3> o (8,64):(64,1)' --view tensor --elem-bits 16 --svg swizzle.svg";

/// What `llopt layout` is told.
#[derive(Args, Debug)]
#[command(after_help = FORMS)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show a layout: its bases, which place holds an element, which element a place holds, its matrix
    #[command(after_help = FORMS)]
    Show(show::Arguments),
}

/// Does what the subcommand says.
///
/// # Errors
/// What is wrong with the layouts or the files, with dimension and basis vector where one is at
/// fault.
pub fn run(arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::Show(arguments) => show::run(&arguments),
    }
}

/// A layout's text, given on the command line, in a file (`@FILE`), or on standard input (`-`).
#[derive(Clone, Debug)]
pub struct LayoutText(String);

impl From<&str> for LayoutText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl LayoutText {
    /// The layout on a shape, written `128x64`.
    ///
    /// # Errors
    /// What is wrong with it, or with the file that it is in.
    fn read(&self, shape: Option<&str>) -> Result<LinearLayout> {
        let text = if self.0 == "-" {
            io::read_to_string(io::stdin()).context("cannot read standard input")?
        } else if let Some(path) = self.0.strip_prefix('@') {
            fs::read_to_string(path).with_context(|| format!("cannot read '{path}'"))?
        } else {
            self.0.clone()
        };
        let shape: Option<Shape> = shape.map(str::parse).transpose()?;
        Ok(llopt::layout::read(&text, shape.as_ref())?)
    }
}
