//! The `custom<…>` directives of the assembly formats.

use crate::{
    tables::access,
    tables::make,
    text::format::{CustomArgument, Directive, FormatParser, FormatPrinter},
    ttg,
};
use llopt_mlir::{
    asm::{Parsed, Token},
    ir::AttributeExt,
};

/// The code of a directive.
pub struct Custom {
    /// Parses.
    pub parse: for<'f, 'c, 'p> fn(
        &'f mut FormatParser<'_, 'c, 'p>,
        &'static [CustomArgument],
    ) -> Parsed<()>,
    /// Prints.
    pub print: for<'f, 'c, 'p> fn(&'f mut FormatPrinter<'_, 'c, 'p>, &'static [CustomArgument]),
}

/// The code of a directive.
pub fn of(directive: Directive) -> &'static Custom {
    match directive {
        Directive::Offsets => &OFFSETS,
        Directive::Token => &TOKEN,
        Directive::BarriersAndPreds => &BARRIERS_AND_PREDS,
        Directive::BufferTensorType => &BUFFER_TENSOR_TYPE,
        Directive::AddressSpaces => &ADDRESS_SPACES,
    }
}

/// `0, 16`: offsets without brackets, into `array<i32: …>`.
static OFFSETS: Custom = Custom {
    parse: |state, arguments| {
        let mut offsets = Vec::new();
        if let Some(first) = state.parser.optional_integer()? {
            offsets.push(checked_offset(state, first)?);
            while state.parser.optional_token(Token::Comma) {
                let next = state.parser.integer()?;
                offsets.push(checked_offset(state, next)?);
            }
        }
        let attribute = make::i32_array(state.parser.context(), &offsets);
        if let [offsets] = arguments {
            state.set_attribute(*offsets, attribute);
        }
        Ok(())
    },
    print: |state, arguments| {
        let offsets: Vec<String> = arguments
            .first()
            .and_then(|argument| state.attribute(*argument))
            .and_then(access::i32_values)
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect();
        state.printer.text(&offsets.join(", "));
    },
};

fn checked_offset(state: &mut FormatParser<'_, '_, '_>, value: i64) -> Parsed<i32> {
    i32::try_from(value).map_err(|_| {
        state
            .parser
            .error_here(format!("offset {value} does not fit 32 bits"))
    })
}

/// `[]` or `[%token]`: the operation returns a token, and may take one.
static TOKEN: Custom = Custom {
    parse: |state, arguments| {
        let [dependency, result] = arguments else {
            return Ok(());
        };
        if !state.parser.optional_token(Token::LSquare) {
            state.set_types(*result, Vec::new());
            return Ok(());
        }
        let token = ttg::r#type::ASYNC_TOKEN.get(state.parser.context(), &[]);
        state.set_types(*result, vec![token]);
        if state.parser.optional_token(Token::RSquare) {
            return Ok(());
        }
        let operand = state.parser.operand()?;
        state.push_operand(*dependency, operand);
        state.parser.token(Token::RSquare)
    },
    print: |state, arguments| {
        let [dependency, result] = arguments else {
            return;
        };
        if state.types(*result).is_empty() {
            return;
        }
        state.printer.text("[");
        let operands = state.operands(*dependency);
        state.printer.operands(operands);
        state.printer.text("]");
    },
};

/// `, %barrier[%predicate]`, any number of times.
static BARRIERS_AND_PREDS: Custom = Custom {
    parse: |state, arguments| {
        let [barriers, predicates] = arguments else {
            return Ok(());
        };
        while state.parser.optional_token(Token::Comma) {
            let barrier = state.parser.operand()?;
            state.push_operand(*barriers, barrier);
            state.parser.token(Token::LSquare)?;
            let predicate = state.parser.operand()?;
            state.push_operand(*predicates, predicate);
            state.parser.token(Token::RSquare)?;
        }
        Ok(())
    },
    print: |state, arguments| {
        let [barriers, predicates] = arguments else {
            return;
        };
        let barriers = state.operands(*barriers);
        let predicates = state.operands(*predicates);
        for (barrier, predicate) in barriers.into_iter().zip(predicates) {
            state.printer.text(", ");
            state.printer.operand(barrier);
            state.printer.text("[");
            state.printer.operand(predicate);
            state.printer.text("]");
        }
    },
};

/// `tensor<…>`, or `!tt.ptr<…> -> tensor<…>` as Triton 3.9 writes it.
static BUFFER_TENSOR_TYPE: Custom = Custom {
    parse: |state, arguments| {
        let [tensor] = arguments else {
            return Ok(());
        };
        let first = state.parser.r#type()?;
        let written = if state.parser.optional_token(Token::Arrow) {
            // The pointer type follows from the tensor type.
            state.parser.r#type()?
        } else {
            first
        };
        state.set_types(*tensor, vec![written]);
        Ok(())
    },
    print: |state, arguments| {
        let types = arguments
            .first()
            .map(|argument| state.types(*argument))
            .unwrap_or_default();
        state.printer.types(&types);
    },
};

/// `local | global_read`: names of memories, into a string.
static ADDRESS_SPACES: Custom = Custom {
    parse: |state, arguments| {
        let Some(first) = state.parser.optional_keyword_of(MEMORIES) else {
            return Ok(());
        };
        let mut names = vec![MEMORIES[first]];
        while state.parser.optional_token(Token::VerticalBar) {
            names.push(MEMORIES[state.parser.keyword_of(MEMORIES, "the memory")?]);
        }
        let attribute = make::string(state.parser.context(), &names.join("|"));
        if let [memories] = arguments {
            state.set_attribute(*memories, attribute);
        }
        Ok(())
    },
    print: |state, arguments| {
        if let Some(text) = string_argument(state, arguments) {
            state.printer.text(text);
        }
    },
};

/// The memories that a barrier of Triton 3.9 names.
const MEMORIES: &[&str] = &[
    "none",
    "local",
    "global_read",
    "global_write",
    "tensor_read",
    "tensor_write",
    "all",
];

fn string_argument<'c>(
    state: &FormatPrinter<'_, 'c, '_>,
    arguments: &[CustomArgument],
) -> Option<&'c str> {
    state.attribute(*arguments.first()?)?.as_str()
}
