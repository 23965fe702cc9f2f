//! The syntax of PTX in inline assembly: statements, operands, register declarations.
//!
//! ```text
//! block       := { statement }
//! statement   := '{' block '}' | label ':' | directive ';' | [ '@' ['!'] operand ] opcode [ operand { ',' operand } ] ';'
//! operand     := '$' number | name | '%' name | number | '[' address ']' | '{' operand { ',' operand } '}'
//!              | operand '|' operand | '-' operand | '!' operand
//! ```

use crate::error::{Decoded, Unknown};

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// `$n`.
    Placeholder(usize),
    /// A declared register, or a label.
    Name(String),
    /// A special register, without `%`.
    Special(String),
    Int(i128),
    /// The bits of a floating-point literal: those of a single, and those of a double.
    Real {
        single: u32,
        double: u64,
    },
    Vector(Vec<Operand>),
    /// `[base + offset]`, with coordinates for tensor addresses.
    Address {
        base: Box<Operand>,
        offset: i64,
        coordinates: Vec<Operand>,
    },
    /// `a|b`.
    Pair(Box<Operand>, Box<Operand>),
    /// `!p`.
    Not(Box<Operand>),
    /// `_`.
    Sink,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    Label(String),
    /// `.reg .type names`: (type, name), with `name<n>` expanded.
    Registers(Vec<(String, String)>),
    Instruction(Instruction),
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instruction {
    /// (negated, predicate).
    pub(super) guard: Option<(bool, Operand)>,
    /// Mnemonic and modifiers.
    pub(super) opcode: Vec<String>,
    pub(super) operands: Vec<Operand>,
}

/// Parses a template.
pub(super) fn parse(template: &str) -> Decoded<Vec<Statement>> {
    let text = without_comments(template);
    let mut parser = Parser {
        text: text.as_bytes(),
        at: 0,
        statements: Vec::new(),
    };
    parser.all()?;
    Ok(parser.statements)
}

fn without_comments(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        result.push_str(&rest[..at]);
        let (end, skip) = if rest[at..].starts_with("//") {
            ("\n", 0)
        } else {
            ("*/", 2)
        };
        rest = rest[at..].find(end).map_or("", |e| &rest[at + e + skip..]);
        result.push(' ');
    }
    result.push_str(rest);
    result
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    statements: Vec<Statement>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Decoded<()> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    fn error(&self) -> Unknown {
        let rest = String::from_utf8_lossy(&self.text[self.at.min(self.text.len())..]);
        let line = rest.lines().next().unwrap_or("").trim();
        Unknown::new(format!("the PTX text at '{line}'"))
    }

    /// A sequence of characters of identifiers and opcodes.
    fn word(&mut self) -> String {
        self.peek();
        let begin = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'%'))
        {
            // A label ends at its colon; `::` is part of a modifier.
            if self.text[self.at] == b':' {
                if self.text.get(self.at + 1) != Some(&b':') {
                    break;
                }
                self.at += 1;
            }
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[begin..self.at]).into_owned()
    }

    fn all(&mut self) -> Decoded<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b'{' | b'}' | b';' => self.at += 1,
                b'.' => self.directive()?,
                _ => self.statement()?,
            }
        }
        Ok(())
    }

    fn directive(&mut self) -> Decoded<()> {
        let directive = self.word();
        match directive.as_str() {
            ".reg" => {
                let ty = self.word();
                let mut names = Vec::new();
                loop {
                    let name = self.word();
                    if self.take(b'<') {
                        let count: usize = self.word().parse().map_err(|_| self.error())?;
                        if count > 4096 {
                            return Err(self.error());
                        }
                        self.expect(b'>')?;
                        names.extend((0..count).map(|i| (ty.clone(), format!("{name}{i}"))));
                    } else {
                        names.push((ty.clone(), name));
                    }
                    if !self.take(b',') {
                        break;
                    }
                }
                self.expect(b';')?;
                self.statements.push(Statement::Registers(names));
                Ok(())
            }
            _ => Err(Unknown::new(format!("the PTX directive '{directive}'"))),
        }
    }

    fn statement(&mut self) -> Decoded<()> {
        let mut guard = None;
        if self.take(b'@') {
            let negate = self.take(b'!');
            guard = Some((negate, self.operand()?));
        }
        let begin = self.at;
        let word = self.word();
        if word.is_empty() {
            return Err(self.error());
        }
        if guard.is_none() && self.peek() == Some(b':') {
            self.at += 1;
            self.statements.push(Statement::Label(word));
            return Ok(());
        }
        let opcode: Vec<String> = word.split('.').map(str::to_owned).collect();
        if opcode.iter().any(String::is_empty) {
            self.at = begin;
            return Err(self.error());
        }
        let mut operands = Vec::new();
        if !matches!(self.peek(), None | Some(b';' | b'}')) {
            operands.push(self.operand()?);
            while self.take(b',') {
                operands.push(self.operand()?);
            }
        }
        if !matches!(self.peek(), None | Some(b';' | b'}')) {
            return Err(self.error());
        }
        self.take(b';');
        self.statements.push(Statement::Instruction(Instruction {
            guard,
            opcode,
            operands,
        }));
        Ok(())
    }

    fn operand(&mut self) -> Decoded<Operand> {
        let first = self.simple_operand()?;
        if self.take(b'|') {
            let second = self.simple_operand()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn simple_operand(&mut self) -> Decoded<Operand> {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                let mut elements = Vec::new();
                while !self.take(b'}') {
                    elements.push(self.operand()?);
                    self.take(b',');
                    if self.peek().is_none() {
                        return Err(self.error());
                    }
                }
                Ok(Operand::Vector(elements))
            }
            Some(b'[') => {
                self.at += 1;
                let base = self.operand()?;
                let mut offset = 0;
                let mut coordinates = Vec::new();
                loop {
                    if self.take(b'+') {
                        offset += self.integer()?;
                    } else if self.take(b'-') {
                        offset -= self.integer()?;
                    } else if self.take(b',') {
                        match self.operand()? {
                            Operand::Vector(list) => coordinates = list,
                            _ => return Err(self.error()),
                        }
                    } else {
                        break;
                    }
                }
                self.expect(b']')?;
                Ok(Operand::Address {
                    base: Box::new(base),
                    offset,
                    coordinates,
                })
            }
            Some(b'!') => {
                self.at += 1;
                Ok(Operand::Not(Box::new(self.simple_operand()?)))
            }
            Some(b'$') => self.placeholder(),
            Some(b'-') => {
                self.at += 1;
                match self.simple_operand()? {
                    Operand::Int(value) => Ok(Operand::Int(-value)),
                    Operand::Real { single, double } => Ok(Operand::Real {
                        single: single ^ 1 << 31,
                        double: double ^ 1 << 63,
                    }),
                    _ => Err(self.error()),
                }
            }
            Some(b'%') => {
                self.at += 1;
                Ok(Operand::Special(self.word()))
            }
            Some(b'0'..=b'9') => self.number(),
            Some(_) => {
                let word = self.word();
                match word.as_str() {
                    "" => Err(self.error()),
                    "_" => Ok(Operand::Sink),
                    _ => Ok(Operand::Name(word)),
                }
            }
            None => Err(self.error()),
        }
    }

    fn placeholder(&mut self) -> Decoded<Operand> {
        self.at += 1;
        let braced = self.text.get(self.at) == Some(&b'{');
        if braced {
            self.at += 1;
        }
        let begin = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let digits = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        if braced {
            // `${0:b}`: the modifier determines how the operand is printed, and is ignored here.
            while self.text.get(self.at).is_some_and(|&b| b != b'}') {
                self.at += 1;
            }
            self.at += 1;
        }
        digits
            .parse()
            .map(Operand::Placeholder)
            .map_err(|_| self.error())
    }

    fn integer(&mut self) -> Decoded<i64> {
        match self.simple_operand()? {
            Operand::Int(value) => i64::try_from(value).map_err(|_| self.error()),
            _ => Err(self.error()),
        }
    }

    fn number(&mut self) -> Decoded<Operand> {
        let begin = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'.')
        {
            self.at += 1;
        }
        // The sign of an exponent belongs to the number.
        let text = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        let mut text = text;
        let decimal = !text.starts_with("0x") && !text.starts_with("0f") && !text.starts_with("0d");
        if decimal
            && text.ends_with(['e', 'E'])
            && matches!(self.text.get(self.at), Some(b'+' | b'-'))
        {
            let sign = self.at;
            self.at += 1;
            while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                self.at += 1;
            }
            text.push_str(&String::from_utf8_lossy(&self.text[sign..self.at]));
        }
        let radix = |digits: &str, radix: u32| {
            i128::from_str_radix(digits.trim_end_matches('U'), radix).ok()
        };
        let parsed = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        {
            radix(hex, 16).map(Operand::Int)
        } else if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
            u32::from_str_radix(bits, 16)
                .ok()
                .map(|single| Operand::Real {
                    single,
                    double: f64::from(f32::from_bits(single)).to_bits(),
                })
        } else if let Some(bits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
            u64::from_str_radix(bits, 16)
                .ok()
                .map(|double| Operand::Real {
                    single: (f64::from_bits(double) as f32).to_bits(),
                    double,
                })
        } else if let Some(bits) = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B")) {
            radix(bits, 2).map(Operand::Int)
        } else if text.contains(['.', 'e', 'E']) {
            text.parse::<f64>().ok().map(|value| Operand::Real {
                single: (value as f32).to_bits(),
                double: value.to_bits(),
            })
        } else if text.len() > 1 && text.starts_with('0') {
            radix(&text[1..], 8).map(Operand::Int)
        } else {
            radix(&text, 10).map(Operand::Int)
        };
        parsed.ok_or_else(|| {
            self.at = begin;
            self.error()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(text: &str) -> Instruction {
        match parse(text).unwrap().pop() {
            Some(Statement::Instruction(instruction)) => instruction,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_guarded_load_is_parsed() {
        let load =
            instruction("@!$10 ld.global.L1::evict_last.v2.b32 { $0, $1 }, [ $8 + 0x10 ], $9;");
        assert_eq!(load.guard, Some((true, Operand::Placeholder(10))));
        assert_eq!(load.opcode, ["ld", "global", "L1::evict_last", "v2", "b32"]);
        assert_eq!(load.operands.len(), 3);
        assert!(matches!(
            &load.operands[1],
            Operand::Address { offset: 16, .. }
        ));
    }

    #[test]
    fn declarations_labels_and_numbers() {
        let statements =
            parse("{\n.reg .b32 a<2>, b; // two\nloop: mov.b32 {a0, a1}, b;\n @p bra.uni loop; }")
                .unwrap();
        assert_eq!(statements.len(), 4);
        assert!(matches!(&statements[0], Statement::Registers(names) if names.len() == 3));
        assert_eq!(statements[1], Statement::Label("loop".into()));
        let mov = instruction("mov.f32 $0, 0f3F800000;");
        assert!(matches!(
            mov.operands[1],
            Operand::Real {
                single: 0x3f80_0000,
                ..
            }
        ));
        let sub = instruction("sub.f32 $0, -1.5e-3, 077;");
        assert!(
            matches!(sub.operands[1], Operand::Real { single, .. } if f32::from_bits(single) == -1.5e-3)
        );
        assert_eq!(sub.operands[2], Operand::Int(63));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "mov.u32 $0, ;",
            "@ mov;",
            ".shared .b32 x;",
            "mov.u32 $0 $1;",
            "add..u32 $0, $1;",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
