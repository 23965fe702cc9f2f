//! How the type of one value of an operation follows from that of another.

use melior::ir::Type;

/// A value of an operation, by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRef {
    /// An operand group.
    Operand(usize),
    /// A result group.
    Result(usize),
}

/// Derives one type from another; `None` when the first is not what it should be.
pub type TypeTransform = for<'c> fn(Type<'c>) -> Option<Type<'c>>;

/// `transform(type(from)) == type(to)`, where both are present.
pub struct Relation {
    /// In words.
    pub summary: &'static str,
    /// The known value.
    pub from: ValueRef,
    /// The derived value.
    pub to: ValueRef,
    /// From one type to the other.
    pub transform: TypeTransform,
}
