//! The state of an operation while its text is read or written, shared by both halves of the engine and the
//! directives.

use super::{CustomArgument, TypeArgument};
use crate::{
    tables::access,
    tables::definition::{Multiplicity, OpDefinition},
};
use llopt_mlir::{
    asm::{OpParser, OpPrinter, Parsed, SourceLoc, Token, UnresolvedOperand},
    dialect::OpSpec,
};
use melior::ir::{Attribute, OperationRef, Type, Value, ValueLike, operation::OperationLike};

/// The state of parsing one operation.
pub struct FormatParser<'f, 'c, 'p> {
    /// The parser of MLIR.
    pub parser: &'f mut OpParser<'c, 'p>,
    pub(super) definition: &'static OpDefinition,
    pub(super) location: SourceLoc,
    pub(super) operands: Vec<Vec<UnresolvedOperand<'p>>>,
    pub(super) all_operands: Option<Vec<UnresolvedOperand<'p>>>,
    pub(super) operand_types: Vec<Option<Vec<Type<'c>>>>,
    pub(super) all_operand_types: Option<Vec<Type<'c>>>,
    pub(super) result_types: Vec<Option<Vec<Type<'c>>>>,
    pub(super) all_result_types: Option<Vec<Type<'c>>>,
}

impl<'c, 'p> FormatParser<'_, 'c, 'p> {
    /// The definition of the operation in the `.td` file.
    pub fn definition(&self) -> &'static OpDefinition {
        self.definition
    }

    /// Appends an operand to the group that an argument of a custom directive names; other
    /// arguments are ignored.
    pub fn push_operand(&mut self, argument: CustomArgument, operand: UnresolvedOperand<'p>) {
        if let CustomArgument::Operand(index) = argument {
            self.operands[index].push(operand);
        }
    }

    /// Sets the attribute that an argument of a custom directive names; other arguments are
    /// ignored.
    pub fn set_attribute(&mut self, argument: CustomArgument, attribute: Attribute<'c>) {
        if let CustomArgument::Attribute(index) = argument {
            self.parser
                .add_attribute(self.definition.attributes[index].name, attribute);
        }
    }

    /// Sets the types that an argument of a custom directive names; other arguments are ignored.
    pub fn set_types(&mut self, argument: CustomArgument, types: Vec<Type<'c>>) {
        if let CustomArgument::Type(argument) = argument {
            self.assign_types(argument, types);
        }
    }

    /// Parses the types of an argument of a custom directive, as `type(…)` does.
    ///
    /// # Errors
    /// When no type is next.
    pub fn parse_types(&mut self, argument: CustomArgument) -> Parsed<()> {
        if let CustomArgument::Type(argument) = argument {
            let types = self.types(argument)?;
            self.assign_types(argument, types);
        }
        Ok(())
    }

    pub(super) fn types(&mut self, of: TypeArgument) -> Parsed<Vec<Type<'c>>> {
        let field = match of {
            TypeArgument::Operand(index) => &self.definition.operands[index],
            TypeArgument::Result(index) => &self.definition.results[index],
            TypeArgument::Operands => {
                let any = match &self.all_operands {
                    Some(operands) => !operands.is_empty(),
                    None => self.operands.iter().any(|group| !group.is_empty()),
                };
                return if any {
                    self.parser.type_list()
                } else {
                    Ok(Vec::new())
                };
            }
            TypeArgument::Results => return self.parser.type_list(),
        };
        match field.multiplicity {
            Multiplicity::One => Ok(vec![self.parser.r#type()?]),
            Multiplicity::Optional => Ok(self.parser.optional_type()?.into_iter().collect()),
            Multiplicity::Variadic => match self.parser.optional_type()? {
                None => Ok(Vec::new()),
                Some(first) => {
                    let mut types = vec![first];
                    while self.parser.optional_token(Token::Comma) {
                        types.push(self.parser.r#type()?);
                    }
                    Ok(types)
                }
            },
        }
    }

    pub(super) fn assign_types(&mut self, of: TypeArgument, types: Vec<Type<'c>>) {
        match of {
            TypeArgument::Operand(index) => self.operand_types[index] = Some(types),
            TypeArgument::Result(index) => self.result_types[index] = Some(types),
            TypeArgument::Operands => self.all_operand_types = Some(types),
            TypeArgument::Results => self.all_result_types = Some(types),
        }
    }
}

/// The state of printing one operation.
pub struct FormatPrinter<'f, 'c, 'p> {
    /// The printer of MLIR.
    pub printer: &'f mut OpPrinter<'c, 'p>,
    pub(super) operation: OperationRef<'c, 'f>,
    pub(super) definition: &'static OpDefinition,
    pub(super) elided: &'static [&'static str],
}

impl<'f, 'c, 'p> FormatPrinter<'f, 'c, 'p> {
    /// The operation.
    pub fn operation(&self) -> OperationRef<'c, 'f> {
        self.operation
    }

    /// The operands that an argument of a custom directive names.
    pub fn operands(&self, argument: CustomArgument) -> Vec<Value<'c, 'f>> {
        match argument {
            CustomArgument::Operand(index) => {
                access::operand_list(self.operation, self.definition, index)
            }
            CustomArgument::Attribute(_) | CustomArgument::Type(_) => Vec::new(),
        }
    }

    /// The attribute that an argument of a custom directive names.
    pub fn attribute(&self, argument: CustomArgument) -> Option<Attribute<'c>> {
        match argument {
            CustomArgument::Attribute(index) => OpSpec::slot(self.operation, index),
            CustomArgument::Operand(_) | CustomArgument::Type(_) => None,
        }
    }

    /// The types that an argument of a custom directive names.
    pub fn types(&self, argument: CustomArgument) -> Vec<Type<'c>> {
        match argument {
            CustomArgument::Type(argument) => self.argument_types(argument),
            CustomArgument::Operand(_) | CustomArgument::Attribute(_) => Vec::new(),
        }
    }

    pub(super) fn argument_types(&self, of: TypeArgument) -> Vec<Type<'c>> {
        match of {
            TypeArgument::Operand(index) => {
                access::operand_list(self.operation, self.definition, index)
                    .iter()
                    .map(ValueLike::r#type)
                    .collect()
            }
            TypeArgument::Result(index) => {
                access::result_list(self.operation, self.definition, index)
                    .iter()
                    .map(ValueLike::r#type)
                    .collect()
            }
            TypeArgument::Operands => self
                .operation
                .operands()
                .map(|value| value.r#type())
                .collect(),
            TypeArgument::Results => self
                .operation
                .results()
                .map(|value| value.r#type())
                .collect(),
        }
    }
}
