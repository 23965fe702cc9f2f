//! Programs: kernels as data that can be made, printed and shrunk.
//!
//! An operation is one or a few lines of IR with holes. Its operands and results are numbers of values, so that a
//! program can be cut without knowledge of operations. Holes are:
//!
//! | hole | filled with |
//! |---|---|
//! | `$r` | the names of the results |
//! | `$0`, `$1`, … | the name of an operand |
//! | `$t0`, `$T0` | the type of an operand, of a result |
//! | `$b`, `$p` | the pointer to the node's buffer, the type of its elements |
//! | `$L7` | the layout of value 7, which exists only for its type |
//! | `$u` | a number of the node, for its own names |
//! | `$B0`, `$A0`, `$Y0` | of a region: the body, the arguments, the yielded values with their types |

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use llopt_dialects::layout::encoding::Encoding;
use llopt_target::Target;
use melior::Context;
use melior::dialect::DialectRegistry;

use crate::element::{Data, Element, Number};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// One element.
    Scalar(Element),
    /// A tensor in registers.
    Tensor {
        /// Extents, powers of two.
        shape: Vec<u32>,
        /// Type of the elements.
        element: Element,
        /// Distributed layout.
        layout: Rc<Encoding>,
    },
    /// A buffer in shared memory, or a view of one.
    Memory {
        /// Extents.
        shape: Vec<u32>,
        /// Type of the elements.
        element: Number,
        /// Layout in memory.
        layout: Rc<Encoding>,
        /// Whether it can be stored to.
        is_mutable: bool,
        /// Extents of the buffer of which this is a part; empty for a whole one.
        whole: Vec<u32>,
    },
}

impl Type {
    /// Extents; none for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        match self {
            Self::Scalar(_) => &[],
            Self::Tensor { shape, .. } | Self::Memory { shape, .. } => shape,
        }
    }

    /// The type of the elements.
    #[must_use]
    pub fn element(&self) -> Element {
        match self {
            Self::Scalar(element) | Self::Tensor { element, .. } => *element,
            Self::Memory { element, .. } => (*element).into(),
        }
    }

    /// The layout; none for a scalar.
    #[must_use]
    pub fn layout(&self) -> Option<&Rc<Encoding>> {
        match self {
            Self::Scalar(_) => None,
            Self::Tensor { layout, .. } | Self::Memory { layout, .. } => Some(layout),
        }
    }

    /// Whether it is a tensor of numbers.
    #[must_use]
    pub fn is_numbers(&self) -> bool {
        matches!(
            self,
            Self::Tensor {
                element: Element::Number(_),
                ..
            }
        )
    }
}

/// The number of a value.
pub type Value = usize;

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The text with holes.
    pub template: String,
    /// Values it uses.
    pub operands: Vec<Value>,
    /// Values it makes.
    pub results: Vec<Value>,
    /// The buffer in global memory that it accesses.
    pub buffer: Option<usize>,
    /// Whether it is needed even if its results are not used.
    pub has_effect: bool,
    /// Its regions.
    pub regions: Vec<Region>,
}

/// The body of a loop or a branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Values at its start.
    pub arguments: Vec<Value>,
    /// The operations.
    pub body: Vec<Node>,
    /// Values at its end.
    pub yields: Vec<Value>,
}

/// A buffer in global memory, an argument of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Type of its elements.
    pub number: Number,
    /// Their number.
    pub length: usize,
    /// The initial contents.
    pub data: Data,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The GPU it is laid out for.
    pub target: Target,
    /// Warps of the block.
    pub warps: u32,
    /// Blocks of the cluster.
    pub blocks: u32,
    /// Whether it is written with its layouts. Without them, conversions are omitted: the compiler chooses layouts.
    pub has_layouts: bool,
    /// Types of all values.
    pub types: Vec<Type>,
    /// Arguments.
    pub buffers: Vec<Buffer>,
    /// The operations.
    pub body: Vec<Node>,
}

/// The template of an operation that only changes the layout.
pub const CONVERSION: &str = "$r = ttg.convert_layout $0";

/// Writes layouts in the IR's syntax.
pub struct Speller {
    context: Context,
}

impl Speller {
    /// With a context that has the dialects.
    ///
    /// # Errors
    /// An error in the dialects' tables.
    pub fn new() -> anyhow::Result<Self> {
        let registry = DialectRegistry::new();
        llopt_dialects::register(&registry)?;
        let context = Context::new();
        context.enable_multi_threading(false);
        context.append_dialect_registry(&registry);
        context.load_all_available_dialects();
        Ok(Self { context })
    }

    fn spell(&self, encoding: &Encoding) -> String {
        encoding.to_attribute(&self.context).to_string()
    }
}

impl Program {
    /// The module as text, and the buffers that are its arguments, in their order.
    #[must_use]
    pub fn text(&self, speller: &Speller) -> (String, Vec<Buffer>) {
        let mut used = Vec::new();
        visit(&self.body, &mut |node| used.extend(node.buffer));
        used.sort_unstable();
        used.dedup();
        let mut printer = Printer {
            program: self,
            speller,
            names: HashMap::new(),
            aliases: Vec::new(),
            converted: HashMap::new(),
            buffers: &used,
            unique: 0,
        };
        let mut body = String::new();
        printer.nodes(&self.body, &mut body, 4);
        let parameters: Vec<String> = used
            .iter()
            .enumerate()
            .map(|(place, &buffer)| {
                let to = self.buffers[buffer].number.name();
                format!("%p{place}: !tt.ptr<{to}> {{tt.divisibility = 16 : i32}}")
            })
            .collect();
        let mut text = String::new();
        for (i, alias) in printer.aliases.iter().enumerate() {
            let _ = writeln!(text, "#l{i} = {alias}");
        }
        let attributes = format!(
            " attributes {{\"ttg.num-ctas\" = {} : i32, \"ttg.num-warps\" = {} : i32, \
             ttg.target = \"{}\", \"ttg.threads-per-warp\" = {} : i32}}",
            self.blocks,
            self.warps,
            self.target,
            self.target.warp_size(),
        );
        let (memory, attributes) = match self.has_layouts {
            true => ("#smem = #ttg.shared_memory\n", attributes.as_str()),
            false => ("", ""),
        };
        let _ = write!(
            text,
            "{memory}module{attributes} {{\n  \
             tt.func public @kernel({}) {{\n{body}    tt.return\n  }}\n}}\n",
            parameters.join(", "),
        );
        (text, used.iter().map(|&i| self.buffers[i]).collect())
    }

    /// Operations, with those in regions.
    #[must_use]
    pub fn size(&self) -> usize {
        let mut count = 0;
        visit(&self.body, &mut |_| count += 1);
        count
    }
}

/// Calls `f` with each node, outer ones first.
pub fn visit(nodes: &[Node], f: &mut impl FnMut(&Node)) {
    for node in nodes {
        f(node);
        for region in &node.regions {
            visit(&region.body, f);
        }
    }
}

struct Printer<'a> {
    program: &'a Program,
    speller: &'a Speller,
    names: HashMap<Rc<Encoding>, usize>,
    aliases: Vec<String>,
    /// Where layouts are not written: the operand of each conversion.
    converted: HashMap<Value, Value>,
    buffers: &'a [usize],
    unique: usize,
}

impl Printer<'_> {
    fn layout(&mut self, encoding: &Rc<Encoding>) -> String {
        if let Some(known) = self.names.get(encoding) {
            return format!("#l{known}");
        }
        let number = self.aliases.len();
        self.aliases.push(self.speller.spell(encoding));
        self.names.insert(encoding.clone(), number);
        format!("#l{number}")
    }

    fn of_type(&mut self, value: Value) -> String {
        let program = self.program;
        let extents =
            |shape: &[u32]| -> String { shape.iter().map(|extent| format!("{extent}x")).collect() };
        match &program.types[value] {
            Type::Scalar(element) => element.name(),
            Type::Tensor { shape, element, .. } if !program.has_layouts => {
                format!("tensor<{}{}>", extents(shape), element.name())
            }
            Type::Tensor {
                shape,
                element,
                layout,
            } => format!(
                "tensor<{}{}, {}>",
                extents(shape),
                element.name(),
                self.layout(layout)
            ),
            Type::Memory {
                shape,
                element,
                layout,
                is_mutable,
                whole,
            } => {
                let layout = self.layout(layout);
                let mut tail = String::new();
                if *is_mutable {
                    tail.push_str(", mutable");
                }
                if !whole.is_empty() {
                    let whole = extents(whole);
                    let _ = write!(tail, ", {}", whole.trim_end_matches('x'));
                }
                format!(
                    "!ttg.memdesc<{}{}, {layout}, #smem{tail}>",
                    extents(shape),
                    element.name()
                )
            }
        }
    }

    fn types(&mut self, values: &[Value]) -> String {
        let types: Vec<String> = values.iter().map(|&value| self.of_type(value)).collect();
        types.join(", ")
    }

    fn nodes(&mut self, nodes: &[Node], out: &mut String, indent: usize) {
        for node in nodes {
            let converts = node.template.starts_with(CONVERSION) && !self.program.has_layouts;
            match (&node.results[..], &node.operands[..]) {
                (&[result], &[operand]) if converts => {
                    self.converted.insert(result, operand);
                }
                _ => self.node(node, out, indent),
            }
        }
    }

    fn name(&self, mut value: Value) -> String {
        while let Some(&same) = self.converted.get(&value) {
            value = same;
        }
        format!("%v{value}")
    }

    fn list(&self, values: &[Value]) -> String {
        let names: Vec<String> = values.iter().map(|&value| self.name(value)).collect();
        names.join(", ")
    }

    fn node(&mut self, node: &Node, out: &mut String, indent: usize) {
        self.unique += 1;
        let unique = self.unique;
        let mut text = String::new();
        let mut rest = node.template.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let kind = after.chars().next().unwrap_or(' ');
            let (kind, after) = if kind.is_ascii_digit() {
                (' ', after)
            } else {
                (kind, &after[kind.len_utf8()..])
            };
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let takes_number = matches!(kind, ' ' | 't' | 'T' | 'L' | 'B' | 'A' | 'Y');
            let (number, after) = if takes_number {
                (after[..digits].parse().unwrap_or(0), &after[digits..])
            } else {
                (0usize, after)
            };
            match kind {
                ' ' => text.push_str(&self.name(node.operands[number])),
                'r' => text.push_str(&self.list(&node.results)),
                't' => text.push_str(&self.of_type(node.operands[number])),
                'T' => text.push_str(&self.of_type(node.results[number])),
                // The type ends at its element.
                'L' if !self.program.has_layouts => {
                    text.truncate(text.trim_end_matches(", ").len())
                }
                'L' => {
                    if let Some(layout) = self.program.types[number].layout().cloned() {
                        text.push_str(&self.layout(&layout));
                    }
                }
                'u' => text.push_str(&unique.to_string()),
                'b' | 'p' => {
                    let buffer = node.buffer.unwrap_or(0);
                    let place = self.buffers.iter().position(|&b| b == buffer);
                    if kind == 'b' {
                        let _ = write!(text, "%p{}", place.unwrap_or(0));
                    } else {
                        text.push_str(self.program.buffers[buffer].number.name());
                    }
                }
                'B' => {
                    let mut body = String::new();
                    self.nodes(&node.regions[number].body, &mut body, indent + 2);
                    text.push_str(body.trim_end());
                }
                'A' => text.push_str(&self.list(&node.regions[number].arguments)),
                'Y' => {
                    let yields = &node.regions[number].yields;
                    let types = self.types(yields);
                    let _ = write!(text, "{} : {types}", self.list(yields));
                }
                other => text.push(other),
            }
            rest = after;
        }
        text.push_str(rest);
        for line in text.lines() {
            let already = line.len() - line.trim_start().len();
            let pad = if already >= indent { 0 } else { indent };
            let _ = writeln!(out, "{:pad$}{line}", "");
        }
    }
}
