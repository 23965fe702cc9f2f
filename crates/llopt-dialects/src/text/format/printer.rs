//! The printing half of the format engine.

use super::{Anchor, Element, FormatPrinter};
use crate::{
    tables::access,
    tables::definition::{AttributeKind, OpDefinition, Presence},
    text::syntax,
};
use llopt_mlir::{asm::OpPrinter, dialect::OpSpec};
use melior::ir::{OperationRef, operation::OperationLike};

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

impl FormatPrinter<'_, '_, '_> {
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
                (syntax::of(*directive).print)(self, arguments);
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
                attribute == value.attribute(access::context(self.operation), &field.kind)
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
                Presence::Default(value) => {
                    Some(value.attribute(access::context(self.operation), &field.kind))
                }
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
