//! The format engine: interprets the assembly formats of the `.td` files.
//!
//! The build script parses a format, resolves names, and decides where the printer writes blanks (the rule of MLIR's
//! generator depends on the format alone) and where every operand and result type comes from. The rest, which happens
//! at run time, is in this module: [`parse`] and [`print`](fn@print) walk the elements of a [`Format`].

mod parser;
mod printer;
mod state;

pub use parser::parse;
pub use printer::print;
pub use state::{FormatParser, FormatPrinter};

use crate::tables::relation::{TypeTransform, ValueRef};
use llopt_mlir::dialect::TypeSpec;

/// A parsed assembly format.
pub struct Format {
    /// What is written, in order.
    pub elements: &'static [Element],
    /// Attributes that `attr-dict` leaves out, because they are written elsewhere or follow from
    /// the operands.
    pub elided: &'static [&'static str],
    /// The source of the type of each operand group.
    pub operand_types: &'static [TypeSource],
    /// The source of the type of each result group.
    pub result_types: &'static [TypeSource],
}

/// One element. `space` tells the printer to put a blank in front.
pub enum Element {
    /// A keyword or punctuation.
    Literal {
        /// As written.
        text: &'static str,
        /// Whether a blank is printed first.
        space: bool,
    },
    /// White space for the printer only.
    Space(&'static str),
    /// An operand group.
    Operand {
        /// Which.
        index: usize,
        /// Whether a blank is printed first.
        space: bool,
    },
    /// An attribute.
    Attribute {
        /// Which.
        index: usize,
        /// Whether a blank is printed first.
        space: bool,
    },
    /// `{name = value, …}`; the printer writes its own blank.
    AttrDict {
        /// Whether the keyword `attributes` is in front.
        keyword: bool,
    },
    /// All operands in one list.
    Operands {
        /// Whether a blank is printed first.
        space: bool,
    },
    /// The type of some values.
    Type {
        /// Whose type.
        of: TypeArgument,
        /// For a type of one known kind: written without `!dialect.mnemonic`.
        stripped: Option<&'static TypeSpec>,
        /// Whether a blank is printed first.
        space: bool,
    },
    /// `(inputs) -> results`.
    FunctionalType {
        /// Before the arrow.
        inputs: TypeArgument,
        /// After the arrow.
        results: TypeArgument,
        /// Whether a blank is printed first.
        space: bool,
    },
    /// Written by hand.
    Custom {
        /// The directive.
        directive: Directive,
        /// Its arguments.
        arguments: &'static [CustomArgument],
        /// Whether a blank is printed first.
        space: bool,
    },
    /// Written when the anchor is present.
    Optional {
        /// The condition.
        anchor: Anchor,
        /// When present.
        then: &'static [Element],
        /// When absent.
        otherwise: &'static [Element],
        /// A unit attribute that is set if `then` is written.
        unit: Option<usize>,
    },
    /// Clauses in any order, each at most once.
    OiList(&'static [Clause]),
}

/// A clause of an `oilist`.
pub struct Clause {
    /// The literal that begins it.
    pub keyword: &'static str,
    /// The rest.
    pub elements: &'static [Element],
    /// Printed when any of these is present.
    pub anchors: &'static [Anchor],
    /// Whether a blank is printed first.
    pub space: bool,
}

/// The condition for writing an optional group.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// An operand group that is not empty.
    Operand(usize),
    /// A result group that is not empty.
    Result(usize),
    /// An attribute that is present and differs from its default.
    Attribute(usize),
}

/// The values whose types a directive writes.
#[derive(Clone, Copy, Debug)]
pub enum TypeArgument {
    /// One operand group.
    Operand(usize),
    /// One result group.
    Result(usize),
    /// All operands.
    Operands,
    /// All results.
    Results,
}

/// An argument of a custom directive.
#[derive(Clone, Copy, Debug)]
pub enum CustomArgument {
    /// An operand group.
    Operand(usize),
    /// An attribute.
    Attribute(usize),
    /// The types of a group.
    Type(TypeArgument),
}

/// A directive written in Rust (`crate::text::syntax`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `0, 16`.
    Offsets,
    /// `[]` or `[%token]`.
    Token,
    /// `, %barrier[%predicate]`, any number of times.
    BarriersAndPreds,
    /// `tensor<…>`.
    BufferTensorType,
    /// `local | global_read`.
    AddressSpaces,
}

/// The source of the type of a group.
pub enum TypeSource {
    /// It is written.
    Written,
    /// It is always this one.
    Fixed(FixedType),
    /// It follows from that of another group.
    Derived {
        /// The other group; its type is written.
        from: ValueRef,
        /// From one type to the other.
        transform: TypeTransform,
        /// A description of the relation.
        summary: &'static str,
    },
    /// The operation's own type inference finds it.
    Inferred,
}

/// A type that is always the same.
#[derive(Clone, Copy)]
pub enum FixedType {
    /// A signless integer.
    Integer(u32),
    /// A kind of these dialects without parameters.
    Kind(&'static TypeSpec),
}
