//! The parameters of a kernel in tile IR, for a program that builds its arguments.

use llopt_dialects::tables::types::Pointer;
use llopt_mlir::ir::{
    AttributeExt, BlockExt, FloatKind, LocationExt, LocationKind, OperationExt, RegionExt, TypeExt,
    Walk,
};
use melior::ir::{Type, Value, ValueLike};

use crate::{Error, Source, module, session};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name: that of the variable in the kernel's source or, if that is not known, the one in the text.
    pub name: Option<String>,
    /// Its type, as MLIR prints it.
    pub ty: String,
    /// Its pointee, if it is a pointer.
    pub pointee: Option<Pointee>,
}

/// An element of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointee {
    /// Bytes in memory.
    pub bytes: u32,
    /// Their number format.
    pub format: Format,
}

/// The number format of some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A signed or unsigned integer, or a pointer.
    Integer,
    /// A floating-point number of IEEE 754: 16, 32 or 64 bits.
    Ieee,
    /// Another floating-point format.
    OtherFloat,
}

/// The parameters of the only public function of a module, in order; none if there is no such function.
///
/// # Errors
/// The source does not parse or verify.
pub fn parameters(source: &Source) -> Result<Vec<Parameter>, Error> {
    let context = session::context()?;
    let module = module::parse(&context, source)?;
    let mut kernels = Vec::new();
    module.as_operation().for_each_op(Walk::PreOrder, |op| {
        let private = op.attr("sym_visibility").and_then(AttributeExt::as_str) == Some("private");
        if op.is_named("tt.func") && !private {
            kernels.push(op);
        }
    });
    let [kernel] = kernels[..] else {
        return Ok(Vec::new());
    };
    let entry = kernel.region_ref(0).and_then(RegionExt::entry);
    let symbol = kernel.attr("sym_name").and_then(AttributeExt::as_str);
    let written = source.text().and_then(|text| Some(names_in(text, symbol?)));
    let mut written = written.unwrap_or_default().into_iter();
    Ok(entry.map_or_else(Vec::new, |entry| {
        entry
            .argument_values()
            .map(|value| Parameter {
                name: written.next().or_else(|| variable(value)),
                ty: value.r#type().to_string(),
                pointee: Pointer::of(value.r#type()).and_then(|p| pointee(p.pointee())),
            })
            .collect()
    }))
}

/// The name of the source variable of a value.
fn variable(value: Value<'_, '_>) -> Option<String> {
    match value.location().kind() {
        LocationKind::Name { name, .. } => Some(name.to_owned()),
        _ => None,
    }
}

/// The names of the parameters of a function in a text; none where it is in another form.
fn names_in(text: &str, symbol: &str) -> Vec<String> {
    let plain = format!("@{symbol}(");
    let quoted = format!("@\"{symbol}\"(");
    let begin = text.match_indices("tt.func").find_map(|(at, word)| {
        let rest = &text[at + word.len()..];
        let start = rest.find('@')?;
        let name = &rest[start..];
        let between = rest[..start].trim();
        let length = [&plain, &quoted]
            .into_iter()
            .find(|name_and_bracket| name.starts_with(name_and_bracket.as_str()))?
            .len();
        matches!(between, "" | "public").then_some(at + word.len() + start + length)
    });
    let Some(begin) = begin else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let mut depth = 1u32;
    let mut rest = &text[begin..];
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' if depth == 1 => break,
            ')' | ']' | '}' | '>' => depth -= 1,
            '"' => rest = rest.split_once('"').map_or("", |(_, after)| after),
            '%' if depth == 1 => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || "_$.-".contains(c)))
                    .unwrap_or(rest.len());
                names.push(rest[..end].to_owned());
            }
            _ => {}
        }
    }
    names
}

fn pointee(ty: Type<'_>) -> Option<Pointee> {
    if Pointer::of(ty).is_some() {
        return Some(Pointee {
            bytes: 8,
            format: Format::Integer,
        });
    }
    let format = match ty.float_kind() {
        None => Format::Integer,
        Some(FloatKind::F16 | FloatKind::F32 | FloatKind::F64) => Format::Ieee,
        Some(_) => Format::OtherFloat,
    };
    Some(Pointee {
        bytes: ty.bit_width()?.div_ceil(8),
        format,
    })
}

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn names_are_read_from_the_text() {
        let text = r#"module {
            tt.func private @f(%no: i32) -> i32 { tt.return %no : i32 }
            tt.func public @k(%x_ptr: !tt.ptr<f32, 1> {tt.divisibility = 16 : i32, a = "%)"}, %n: i32 loc("n"(#l)))
                attributes {noinline = false} { tt.return }
            tt.func @"a b"(%0: i32) { tt.return }
        }"#;
        assert_eq!(names_in(text, "k"), ["x_ptr", "n"]);
        assert_eq!(names_in(text, "a b"), ["0"]);
        assert!(names_in(text, "f").is_empty() && names_in("", "k").is_empty());
        assert!(names_in("tt.func @k(", "k").is_empty());
    }
}
