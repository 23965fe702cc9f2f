//! A program with its inputs, as a file that can be run again.
//!
//! The file is a module in tile IR after comment lines with the information that the module lacks: the target; for
//! each parameter of the kernel the type, the number and the initial values of its elements; and, for a module
//! without layouts, the warps of a block and the blocks of a cluster for which layouts are chosen.
//!
//! ```text
//! // target: cuda:90
//! // layouts are chosen for: 4 1
//! // buffer: i32 64 bits 1234567
//! // buffer: f16 64 small 3 7654321
//! // buffer: f16 128 zero
//! ```

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use llopt_target::Target;

use crate::element::{Data, Number};
use crate::program::{Buffer, Program, Speller};

/// The beginning of the line that gives the warps and blocks for which layouts are chosen.
const GRID: &str = "layouts are chosen for: ";

/// A kernel and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The GPU it is for.
    pub target: Target,
    /// Warps of a block and blocks of a cluster, of a module that does not specify them.
    pub grid: Option<[u32; 2]>,
    /// The buffers that its parameters point to.
    pub buffers: Vec<Buffer>,
    /// The module.
    pub text: String,
}

impl Case {
    /// A program as a case.
    #[must_use]
    pub fn of(program: &Program, speller: &Speller) -> Self {
        let (text, buffers) = program.text(speller);
        Self {
            target: program.target,
            grid: (!program.has_layouts).then_some([program.warps, program.blocks]),
            buffers,
            text,
        }
    }

    /// Reads a file's contents.
    ///
    /// # Errors
    /// A comment line that does not have this form, or none with the target.
    pub fn parse(contents: &str) -> Result<Self> {
        let mut target = None;
        let mut grid = None;
        let mut buffers = Vec::new();
        for line in contents.lines() {
            let Some(comment) = line.strip_prefix("// ") else {
                continue;
            };
            if let Some(name) = comment.strip_prefix("target: ") {
                target = Some(Target::parse(name.trim())?);
            } else if let Some(numbers) = comment.strip_prefix(GRID) {
                let (warps, blocks) = numbers
                    .trim()
                    .split_once(' ')
                    .context("layouts are chosen for warps and blocks")?;
                grid = Some([warps.parse()?, blocks.parse()?]);
            } else if let Some(words) = comment.strip_prefix("buffer: ") {
                buffers.push(buffer(words).with_context(|| format!("in '{line}'"))?);
            }
        }
        Ok(Self {
            target: target.context("no line says what the target is")?,
            grid,
            buffers,
            text: contents.to_owned(),
        })
    }

    /// As a file's contents, after comment lines of the caller.
    #[must_use]
    pub fn file(&self, comment: &str) -> String {
        let mut text = String::new();
        for line in comment.lines() {
            let _ = writeln!(text, "// {line}");
        }
        let _ = writeln!(text, "// target: {}", self.target);
        if let Some([warps, blocks]) = self.grid {
            let _ = writeln!(text, "// {GRID}{warps} {blocks}");
        }
        for buffer in &self.buffers {
            let data = match buffer.data {
                Data::Zero => "zero".to_owned(),
                Data::Bits(seed) => format!("bits {seed}"),
                Data::Small(bound, seed) => format!("small {bound} {seed}"),
            };
            let _ = writeln!(
                text,
                "// buffer: {} {} {data}",
                buffer.number.name(),
                buffer.length
            );
        }
        text.push_str(&self.text);
        text
    }
}

fn buffer(words: &str) -> Result<Buffer> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (data, number, length) = match words[..] {
        [number, length, "zero"] => (Data::Zero, number, length),
        [number, length, "bits", seed] => (Data::Bits(seed.parse()?), number, length),
        [number, length, "small", bound, seed] => {
            (Data::Small(bound.parse()?, seed.parse()?), number, length)
        }
        _ => bail!("a buffer is a type, a length, and zero, bits or small"),
    };
    Ok(Buffer {
        number: Number::parse(number).with_context(|| format!("no type is called '{number}'"))?,
        length: length.parse()?,
        data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_survives_its_file() {
        let buffer = |number, data| Buffer {
            number,
            length: 8,
            data,
        };
        let case = Case {
            target: Target::parse("hip:gfx942").unwrap(),
            grid: Some([4, 1]),
            buffers: vec![
                buffer(Number::F16, Data::Zero),
                buffer(Number::I64, Data::Bits(7)),
                buffer(Number::BF16, Data::Small(3, 9)),
            ],
            text: "module {}\n".to_owned(),
        };
        let read = Case::parse(&case.file("about it")).unwrap();
        assert_eq!(
            (read.target, read.grid, read.buffers),
            (case.target, case.grid, case.buffers)
        );
        assert!(Case::parse("// buffer: f12 8 zero").is_err());
        assert!(Case::parse("module {}").is_err());
    }
}
