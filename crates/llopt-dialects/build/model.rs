//! The contents of the `.td` files, as plain data.

use crate::type_set::TypeSet;

/// A message about a mistake in a `.td` file.
pub type ModelError = String;

/// All dialects, by the order of their first use.
pub struct Model {
    /// The dialects.
    pub dialects: Vec<Dialect>,
}

/// A dialect.
pub struct Dialect {
    /// The namespace, also the name of the Rust module.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Markdown.
    pub description: String,
    /// Namespaces of dialects to load with it.
    pub dependencies: Vec<String>,
    /// Whether folded values can become constants.
    pub materializes_constants: bool,
    /// Operations.
    pub operations: Vec<Operation>,
    /// Attribute kinds.
    pub attributes: Vec<KindDefinition>,
    /// Type kinds.
    pub types: Vec<KindDefinition>,
    /// Enumerations.
    pub enumerations: Vec<Enumeration>,
}

/// An enumeration of 32-bit values with keywords.
pub struct Enumeration {
    /// Rust name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// (Rust variant, keyword, value).
    pub cases: Vec<(String, String, i64)>,
}

/// An attribute or type kind.
pub struct KindDefinition {
    /// Name of the record.
    pub record: String,
    /// The name after the namespace.
    pub mnemonic: String,
    /// One line.
    pub summary: String,
    /// Markdown.
    pub description: String,
    /// Alias in modules, empty for none.
    pub alias: String,
    /// Parameters in printing order.
    pub parameters: Vec<Parameter>,
    /// How parameters are written.
    pub style: Style,
    /// For an encoding, whether it distributes tensors over threads or is a layout of a memory.
    pub encodes: Option<Encodes>,
}

/// What an encoding describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encodes {
    /// Registers, lanes and warps.
    Threads,
    /// Places in a memory.
    Memory,
}

/// How the parameters of a kind are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    Bare,
    /// `<name = value, …>`
    Named,
    /// `<{name = value, …}>`
    Braced,
    /// `<value, …>`
    Positional,
    /// By hand-written Rust.
    Custom,
}

/// A parameter of a kind.
pub struct Parameter {
    /// The name in the text.
    pub name: String,
    /// `uint`, `bool`, …, or `enum`.
    pub kind: String,
    /// (dialect module, Rust name) of the enumeration.
    pub enumeration: Option<(String, String)>,
    /// The default, as text.
    pub default: Option<String>,
    /// Whether it is printed even when it equals the default.
    pub always_printed: bool,
    /// One line.
    pub summary: String,
}

/// What a value may be.
#[derive(Clone, PartialEq, Eq)]
pub struct TypeConstraint {
    /// No constraint at all.
    pub any: bool,
    /// Scalar classes.
    pub scalar: TypeSet,
    /// Element classes of ranked tensors.
    pub tensor: TypeSet,
    /// Type kinds, as (dialect, mnemonic).
    pub kinds: Vec<(String, String)>,
    /// A description.
    pub summary: String,
}

/// The number of values of an operand or result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Multiplicity {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Variadic,
}

/// An operand or result.
pub struct ValueField {
    /// Name.
    pub name: String,
    /// What it may be.
    pub constraint: TypeConstraint,
    /// The number of values.
    pub multiplicity: Multiplicity,
    /// Effects on it: (effect, resource).
    pub effects: Vec<(String, String)>,
}

/// What an attribute may be.
#[derive(Clone, PartialEq, Eq)]
pub enum AttributeKind {
    /// `true` or `false`.
    Bool,
    /// Present or absent.
    Unit,
    /// A signless integer of this width.
    Integer(u32),
    /// A string.
    String,
    /// A string written as `@name`.
    SymbolName,
    /// A reference to a symbol.
    FlatSymbolRef,
    /// `array<i32: …>`
    DenseI32Array,
    /// `array<i64: …>`
    DenseI64Array,
    /// An enumeration, by (dialect, Rust name).
    Enum(String, String),
    /// A function type.
    FunctionType,
    /// An array of dictionaries.
    DictionaryArray,
    /// An attribute kind of these dialects, by (dialect, mnemonic).
    Kind(String, String),
}

/// Whether an attribute must be there.
#[derive(Clone, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Required,
    /// Not always.
    Optional,
    /// When absent, this value is meant.
    Default(String),
}

/// An inherent attribute.
pub struct AttributeField {
    /// Name.
    pub name: String,
    /// What it may be.
    pub kind: AttributeKind,
    /// Whether it must be there.
    pub presence: Presence,
    /// Bounds of an integer.
    pub range: Option<(i64, i64)>,
}

/// A region.
pub struct RegionField {
    /// Name.
    pub name: String,
    /// Exactly this many blocks.
    pub blocks: Option<u32>,
    /// Whether it must have a block.
    pub at_least_one: bool,
    /// Whether there may be any number of such regions.
    pub variadic: bool,
}

/// An argument in its ODS position.
#[derive(Clone, Copy)]
pub enum Argument {
    /// Index into the operands.
    Operand(usize),
    /// Index into the attributes.
    Attribute(usize),
}

/// A relation of two types: `transform(type(from)) == type(to)`.
pub struct Relation {
    /// A description.
    pub summary: String,
    /// Name of the known value.
    pub from: String,
    /// Name of the derived value.
    pub to: String,
    /// Function of `relation`.
    pub transform: String,
}

/// A fact that passes query: a field of `OpFacts` and the expression of its value.
pub struct Fact {
    /// The field.
    pub question: String,
    /// The expression.
    pub answer: String,
}

impl Fact {
    /// All tensors have one layout.
    pub fn one_layout() -> Self {
        Self {
            question: "layouts".to_owned(),
            answer: "Transfer::Same".to_owned(),
        }
    }
}

/// An operation.
pub struct Operation {
    /// Name of the record.
    pub record: String,
    /// Rust name, e.g. `LoadOp`.
    pub class: String,
    /// The name after the namespace.
    pub mnemonic: String,
    /// One line.
    pub summary: String,
    /// Markdown.
    pub description: String,
    /// One line for the family.
    pub family: String,
    /// Operands.
    pub operands: Vec<ValueField>,
    /// Attributes.
    pub attributes: Vec<AttributeField>,
    /// Operands and attributes in ODS order.
    pub arguments: Vec<Argument>,
    /// Results.
    pub results: Vec<ValueField>,
    /// Regions.
    pub regions: Vec<RegionField>,
    /// Names of native traits and interfaces.
    pub traits: Vec<String>,
    /// Names of operations that may hold this one.
    pub parents: Vec<String>,
    /// The facts that passes query.
    pub facts: Vec<Fact>,
    /// Relations of types.
    pub relations: Vec<Relation>,
    /// Effects on no value in particular: (effect, resource). `None` if nothing is declared.
    pub effects: Option<Vec<(String, String)>>,
    /// The declarative format.
    pub format: Option<String>,
    /// Flags of hooks: `hasVerifier` and so on.
    pub hooks: Vec<&'static str>,
}

impl Operation {
    /// Whether a trait or interface is listed.
    pub fn has_trait(&self, name: &str) -> bool {
        self.traits.iter().any(|known| known == name)
    }
}
