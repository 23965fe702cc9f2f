//! `llopt layout`: the algebra of layouts on the command line.

mod conflicts;
mod convert;
mod show;
mod swizzle;

use std::{fs, io};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use llopt::Target;
use llopt_view::{LinearLayout, Memory, Reader};

use crate::output::Output;

const FORMS: &str = "\
A layout is written in one of these forms; @FILE reads it from a file, - from standard input:

  an encoding        '#ttg.blocked<{sizePerThread = [1, 4], …}>' with --shape 128x64
  a type with one    'tensor<128x64xf16, #blocked>', where --aliases kernel.ttgir says what #blocked is
  bases              '{\"in\":[{\"name\":\"lane\",\"bases\":[[0,1],[1,0]]}],\"out\":[{\"name\":\"dim0\",\"size\":2},…]}'
  a CuTe layout      '(8,64):(64,1)', 'Sw<3,3,3> o (8,64):(64,1)'

Examples:
  llopt layout show '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>' --shape 32x32
  llopt layout show 'Sw<3,3,3> o (8,64):(64,1)' --view tensor --elem-bits 16 --svg swizzle.svg
  llopt layout convert --from '#ttg.blocked<{…}>' --to '#ttg.dot_op<{…}>' --shape 128x64 --elem-bits 16 --target cuda:90
  llopt layout swizzle --from @a.json --to @b.json --elem-bits 32 --target hip:gfx942
  llopt layout conflicts --registers '#ttg.blocked<{…}>' --memory '#ttg.swizzled_shared<{…}>' --shape 64x64 --elem-bits 16 --target cuda:80";

/// The arguments of `llopt layout`.
#[derive(Args, Debug)]
#[command(after_help = FORMS)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show a layout: its bases, where each element is, what each place holds, its matrix
    #[command(after_help = FORMS)]
    Show(show::Arguments),
    /// All plans to convert a tensor between two layouts, with counts and costs, cheapest first
    #[command(after_help = FORMS)]
    Convert(convert::Arguments),
    /// The best shared-memory layout for a conversion, with the remaining conflicts
    #[command(after_help = FORMS)]
    Swizzle(swizzle::Arguments),
    /// The bank conflicts of loads and stores between registers and shared memory
    #[command(after_help = FORMS)]
    Conflicts(conflicts::Arguments),
}

/// Executes the subcommand.
///
/// # Errors
/// An error in the layouts or the files, with dimension and basis vector where one is wrong.
pub fn run(arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::Show(arguments) => show::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Swizzle(arguments) => swizzle::run(&arguments),
        Command::Conflicts(arguments) => conflicts::run(&arguments),
    }
}

/// Prints to standard output.
fn print(text: &str) -> Result<()> {
    Output::Standard.write(text.as_bytes())
}

/// The two ends of a conversion.
#[derive(Args, Debug)]
struct Ends {
    /// The layout that the tensor has
    #[arg(long, value_name = "LAYOUT")]
    from: LayoutText,

    /// The layout that it shall have
    #[arg(long, value_name = "LAYOUT")]
    to: LayoutText,

    #[command(flatten)]
    on: On,

    /// Bits of an element
    #[arg(long, value_name = "N")]
    elem_bits: u32,

    /// The GPU, such as cuda:90 or hip:gfx950
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Target,
}

impl Ends {
    /// Both layouts.
    fn read(&self) -> Result<(LinearLayout, LinearLayout)> {
        let from = self.from.read(&self.on).context("--from")?;
        let to = self.to.read(&self.on).context("--to")?;
        Ok((from, to))
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
    /// The layout for a shape.
    ///
    /// # Errors
    /// An error in it, or in its file.
    fn read(&self, on: &On) -> Result<LinearLayout> {
        Ok(self.read_memory(on)?.layout)
    }

    /// The layout for a shape, with its padding.
    ///
    /// # Errors
    /// As `read`.
    fn read_memory(&self, on: &On) -> Result<Memory> {
        let text = if self.0 == "-" {
            io::read_to_string(io::stdin()).context("cannot read standard input")?
        } else if let Some(path) = self.0.strip_prefix('@') {
            read_file(path)?
        } else {
            self.0.clone()
        };
        let mut reader = Reader::new(on.shape.as_deref().map(str::parse).transpose()?);
        if let Some(path) = &on.aliases {
            reader = reader.with_aliases_of(&read_file(path)?);
        }
        Ok(reader.read_memory(&text)?)
    }
}

fn read_file(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read '{path}'"))
}

/// The context of the layouts of a command line.
#[derive(Args, Debug)]
struct On {
    /// The tensor's shape, such as 128x64
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,

    /// A module whose aliases layouts may use, such as #mma
    #[arg(long, value_name = "FILE")]
    aliases: Option<String>,
}
