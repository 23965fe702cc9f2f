//! A layout as a person writes it: an encoding in IR syntax, bases as JSON, or a CuTe layout.

use std::fmt;
use std::str::FromStr;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::{MemDesc, RankedTensor};
use llopt_layout::LinearLayout;
use llopt_mlir::ir::OperationExt;
use llopt_mlir::parse_module;
use melior::Context;
use melior::ir::attribute::TypeAttribute;
use melior::ir::{Attribute, Type};

use crate::error::ReadError;
use crate::{Memory, cute, json};

/// A tensor's shape, written `128x64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

impl FromStr for Shape {
    type Err = ReadError;

    fn from_str(text: &str) -> Result<Self, ReadError> {
        let size = |size: &str| size.parse().map_err(|_| ReadError::Shape(size.to_owned()));
        text.split('x')
            .map(size)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}

/// Reads a layout; [`Reader`] without aliases.
///
/// # Errors
/// As [`Reader::read`].
pub fn read(text: &str, shape: Option<&Shape>) -> Result<LinearLayout, ReadError> {
    Reader::new(shape.cloned()).read(text)
}

/// Reads layouts, which may need a shape and refer to the aliases of a module.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    shape: Option<Shape>,
    aliases: String,
}

impl Reader {
    /// A reader for tensors of this shape; without one, layouts must contain their own.
    #[must_use]
    pub fn new(shape: Option<Shape>) -> Self {
        Self {
            shape,
            aliases: String::new(),
        }
    }

    /// Lets layouts use the aliases that a module's text defines, such as `#mma`.
    #[must_use]
    pub fn with_aliases_of(mut self, module: &str) -> Self {
        let is_definition = |line: &&str| {
            line.starts_with(['#', '!']) && !line.starts_with("#loc") && line.contains(" = ")
        };
        for line in module.lines().filter(is_definition) {
            self.aliases.push_str(line);
            self.aliases.push('\n');
        }
        self
    }

    /// Reads a layout.
    ///
    /// `#ttg.blocked<{…}>` and similar encodings need the shape; `tensor<128x64xf16, #ttg.blocked<{…}>>`,
    /// `!ttg.memdesc<…>`, `{"in": …, "out": …}` and `shape:stride` contain their own, which must be equal to the
    /// given one if there is one. Padding is not counted in a layout.
    ///
    /// # Errors
    /// An error in the text, with dimension and basis vector where one is wrong.
    pub fn read(&self, text: &str) -> Result<LinearLayout, ReadError> {
        self.read_memory(text).map(|memory| memory.layout)
    }

    /// Reads a layout with its padding, which only `#ttg.padded_shared` has.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_memory(&self, text: &str) -> Result<Memory, ReadError> {
        let text = text.trim();
        let layout = match text.chars().next() {
            Some('#' | '!' | 't') => return self.read_ir(text),
            Some('{') => json::read(text)?,
            Some('(' | '_' | 'S' | '0'..='9') => cute::read(text)?,
            _ => return Err(ReadError::Unknown(text.chars().take(20).collect())),
        };
        let names = layout.out_dims().iter();
        let sizes: Vec<u64> = names.map(|&dim| layout.out_dim_size(dim)).collect();
        self.require_shape(&sizes)?;
        let pads = Vec::new();
        Ok(Memory { layout, pads })
    }

    /// Whether a layout's own shape is the one that was given, if one was.
    fn require_shape(&self, own: &[u64]) -> Result<(), ReadError> {
        let Some(Shape(given)) = &self.shape else {
            return Ok(());
        };
        let (found, expected) = (own.len(), given.len());
        if found != expected {
            return Err(ReadError::RankMismatch { found, expected });
        }
        for (dim, (&found, &expected)) in own.iter().zip(given).enumerate() {
            if found != expected {
                return Err(ReadError::ShapeMismatch {
                    dim,
                    found,
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Reads an encoding, or a type that has one, with the IR's own parser.
    fn read_ir(&self, text: &str) -> Result<Memory, ReadError> {
        let (reader, text) = (self.clone(), text.to_owned());
        llopt::with_context(move |context| reader.parse(context, &text))?
    }

    fn parse(&self, context: &Context, text: &str) -> Result<Memory, ReadError> {
        // As an attribute of a module, which may also contain aliases and types.
        let source = format!(
            "{}module attributes {{llopt.layout = {text}\n}} {{}}\n",
            self.aliases
        );
        let module = parse_module(context, source.as_bytes(), "layout").map_err(|diagnostics| {
            let messages = diagnostics.into_iter().map(|said| said.message);
            ReadError::Syntax(messages.collect::<Vec<_>>().join("; "))
        })?;
        let Some(attribute) = module.as_operation().attr("llopt.layout") else {
            return Err(ReadError::Unknown(text.chars().take(20).collect()));
        };
        let (attribute, own_shape) = match TypeAttribute::try_from(attribute) {
            Ok(r#type) => encoding_of(r#type.value())
                .ok_or_else(|| ReadError::NoEncoding(r#type.value().to_string()))?,
            Err(_) => (attribute, None),
        };
        let encoding = Encoding::from_attribute(attribute)?;
        let own_shape = own_shape.map(|shape| {
            // A memory of several buffers has the layout of one.
            let leading = shape.len().saturating_sub(encoding.rank());
            match encoding.is_distributed() {
                true => shape,
                false => shape[leading..].to_vec(),
            }
        });
        if let Some(own) = &own_shape {
            self.require_shape(own)?;
        }
        let layout = match own_shape
            .as_ref()
            .or(self.shape.as_ref().map(|shape| &shape.0))
        {
            Some(shape) => encoding.linear_layout(shape)?,
            // Explicit bases determine their shape.
            None => encoding.spelled_layout().ok_or(ReadError::NoShape)?.clone(),
        };
        let pads = encoding.pads().to_vec();
        Ok(Memory { layout, pads })
    }
}

/// The encoding of a tensor or of a memory descriptor, and the shape that it is for.
fn encoding_of(r#type: Type<'_>) -> Option<(Attribute<'_>, Option<Vec<u64>>)> {
    let (encoding, shape) = if let Some(tensor) = RankedTensor::of(r#type) {
        (tensor.encoding()?, tensor.shape())
    } else {
        let buffer = MemDesc::of(r#type)?;
        (buffer.encoding()?, buffer.alloc_shape())
    };
    // A dynamic size is negative, and no size that a layout can have.
    let size = |size: i64| u64::try_from(size).unwrap_or(0);
    Some((encoding, Some(shape.into_iter().map(size).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{View, Window, grids, svg, text};

    /// Pieces of the three forms, in any order.
    const PIECES: &[&str] = &[
        "(",
        ")",
        ",",
        ":",
        "8",
        "3",
        "0",
        "4294967296",
        "Sw<",
        ">",
        " o ",
        "{",
        "}",
        "\"in\"",
        "\"out\"",
        "[",
        "]",
        "\"name\"",
        "\"bases\"",
        "\"size\"",
        "\"lane\"",
        "\"dim0\"",
        "-1",
        "é",
        "16:1",
        "(2,4):(4,1)",
        "S<1,0,1>",
        "[[1],[2]]",
        "\0",
    ];

    #[test]
    fn no_text_makes_reading_or_showing_panic() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % limit as u64) as usize
        };
        let mut read_some = 0;
        for _ in 0..20_000 {
            let pieces = 1 + next(8);
            let source: String = (0..pieces).map(|_| PIECES[next(PIECES.len())]).collect();
            let Ok(layout) = read(&source, None) else {
                continue;
            };
            read_some += 1;
            let _ = text::bases(&layout);
            for view in [View::Tensor, View::Hardware, View::Matrix] {
                let window = Window {
                    rows: 4,
                    columns: 4,
                };
                if let Ok(grids) = grids(&layout, view, None, window) {
                    let _ = svg::draw(&grids);
                }
            }
        }
        assert!(read_some > 0);
    }

    #[test]
    fn odd_layouts_are_shown() {
        let cases = [
            r#"{"in":[],"out":[]}"#,
            r#"{"in":[{"name":"x","bases":[]}],"out":[{"name":"dim0","size":1}]}"#,
            r#"{"in":[{"name":"x","bases":[[0]]}],"out":[{"name":"y","size":4294967295}]}"#,
            r#"{"in":[{"name":"warp","bases":[[1]]},{"name":"offset","bases":[[2]]}],"out":[{"name":"dim0","size":4}]}"#,
        ];
        for source in cases {
            let Ok(layout) = read(source, None) else {
                continue;
            };
            for view in [View::Tensor, View::Hardware, View::Matrix] {
                let grids = grids(&layout, view, None, Window::ALL).unwrap();
                assert!(svg::draw(&grids).ends_with("</svg>\n"));
                for grid in &grids {
                    assert!(text::grid(grid).starts_with(&grid.title));
                }
            }
        }
    }
}
