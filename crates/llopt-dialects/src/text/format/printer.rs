//! The printing half of the format engine.

use super::{Anchor, CustomArgument, Element, TypeArgument};
use crate::{
    tables::access,
    tables::definition::{AttributeKind, OpDefinition, Presence},
    text::format::parser::default_attribute,
};
use llopt_mlir::{asm::OpPrinter, dialect::OpSpec};
use melior::ir::{Attribute, OperationRef, Type, Value, ValueLike, operation::OperationLike};

/// The print hook of every operation with a declarative format.
pub fn print<'c, 'a>(
    spec: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    printer: &mut OpPrinter<'c, '_>,
) {
    let format =
        OpDefinition::of_spec(spec).and_then(|definition| Some((definition, definition.format?)));
    match format {
        Some((definition, format)) => {
            let mut state = FormatPrinter {
                printer,
                operation,
                definition,
                elided: format.elided,
            };
            state.elements(format.elements);
        }
        None => printer.generic_form(operation, false),
    }
}

/// The state of printing one operation.
pub struct FormatPrinter<'f, 'c, 'p> {
    /// The printer of MLIR.
    pub printer: &'f mut OpPrinter<'c, 'p>,
    operation: OperationRef<'c, 'f>,
    definition: &'static OpDefinition,
    elided: &'static [&'static str],
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

    fn argument_types(&self, of: TypeArgument) -> Vec<Type<'c>> {
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

    fn elements(&mut self, elements: &'static [Element]) {
        for element in elements {
            self.element(element);
        }
    }

    fn space(&mut self, space: bool) {
        if space {
            self.printer.text(" ");
        }
    }

    fn element(&mut self, element: &'static Element) {
        match element {
            Element::Literal { text, space } => {
                self.space(*space);
                self.printer.text(text);
            }
            Element::Space(text) => self.printer.text(text),
            Element::Operand { index, space } => {
                self.space(*space);
                let operands = access::operand_list(self.operation, self.definition, *index);
                self.printer.operands(operands);
            }
            Element::Attribute { index, space } => {
                self.space(*space);
                self.print_attribute(*index);
            }
            Element::AttrDict { keyword } => self.attr_dict(*keyword),
            Element::Operands { space } => {
                self.space(*space);
                let operands: Vec<_> = self.operation.operands().collect();
                self.printer.operands(operands);
            }
            Element::Type {
                of,
                stripped,
                space,
            } => {
                self.space(*space);
                let types = self.argument_types(*of);
                match (stripped, types.as_slice()) {
                    (Some(spec), [r#type]) if spec.is(*r#type) => {
                        self.printer.stripped_type(*r#type);
                    }
                    _ => self.printer.types(&types),
                }
            }
            Element::FunctionalType {
                inputs,
                results,
                space,
            } => {
                self.space(*space);
                let inputs = self.argument_types(*inputs);
                let results = self.argument_types(*results);
                self.printer.functional_type(&inputs, &results);
            }
            Element::Custom {
                directive,
                arguments,
                space,
            } => {
                self.space(*space);
                (directive.print)(self, arguments);
            }
            Element::Optional {
                anchor,
                then,
                otherwise,
                ..
            } => {
                if self.is_present(*anchor) {
                    self.elements(then);
                } else {
                    self.elements(otherwise);
                }
            }
            Element::OiList(clauses) => {
                for clause in *clauses {
                    if clause.anchors.iter().any(|anchor| self.is_present(*anchor)) {
                        self.space(clause.space);
                        self.printer.text(clause.keyword);
                        self.elements(clause.elements);
                    }
                }
            }
        }
    }

    fn is_present(&self, anchor: Anchor) -> bool {
        match anchor {
            Anchor::Operand(index) => {
                !access::operand_list(self.operation, self.definition, index).is_empty()
            }
            Anchor::Result(index) => {
                !access::result_list(self.operation, self.definition, index).is_empty()
            }
            Anchor::Attribute(index) => {
                OpSpec::slot(self.operation, index).is_some() && !self.is_default(index)
            }
        }
    }

    fn is_default(&self, index: usize) -> bool {
        let field = &self.definition.attributes[index];
        match (field.presence, OpSpec::slot(self.operation, index)) {
            (Presence::Default(value), Some(attribute)) => {
                attribute == default_attribute(access::context(self.operation), &field.kind, value)
            }
            _ => false,
        }
    }

    fn attr_dict(&mut self, keyword: bool) {
        let mut elided = self.elided.to_vec();
        for (index, field) in self.definition.attributes.iter().enumerate() {
            if self.is_default(index) && !elided.contains(&field.name) {
                elided.push(field.name);
            }
        }
        if keyword {
            self.printer.attr_dict_with_keyword(self.operation, &elided);
        } else {
            self.printer.attr_dict(self.operation, &elided);
        }
    }

    fn print_attribute(&mut self, index: usize) {
        let field = &self.definition.attributes[index];
        let Some(attribute) =
            OpSpec::slot(self.operation, index).or_else(|| match field.presence {
                Presence::Default(value) => Some(default_attribute(
                    access::context(self.operation),
                    &field.kind,
                    value,
                )),
                Presence::Required | Presence::Optional => None,
            })
        else {
            return;
        };
        match field.kind {
            AttributeKind::Enum(definition) => {
                let keyword =
                    access::integer_value(attribute).and_then(|value| definition.keyword(value));
                match keyword {
                    Some(keyword) => self.printer.keyword_or_string(keyword),
                    // Only an operation that does not verify has no keyword.
                    None => self.printer.attribute(attribute),
                }
            }
            AttributeKind::SymbolName => match access::string_value(attribute) {
                Some(name) => self.printer.symbol_name(name),
                None => self.printer.attribute(attribute),
            },
            AttributeKind::DenseI32Array => {
                let values = access::i32_values(attribute).unwrap_or_default();
                self.printer.list(&values);
            }
            AttributeKind::DenseI64Array => {
                let values = access::i64_values(attribute).unwrap_or_default();
                self.printer.list(&values);
            }
            AttributeKind::Kind(_) => self.printer.stripped_attribute(attribute),
            AttributeKind::Bool
            | AttributeKind::Unit
            | AttributeKind::Integer(_)
            | AttributeKind::String
            | AttributeKind::FlatSymbolRef => self.printer.attribute_without_type(attribute),
            AttributeKind::FunctionType | AttributeKind::DictionaryArray => {
                self.printer.attribute(attribute);
            }
        }
    }
}
