//! Checks that the text of inline assembly consists of instructions that stay inside its function.
//!
//! The text comes from the user, and assemblers have directives that include files, fill memory (`.fill`, `.rept`,
//! `.p2align 63`), or close the function and begin another one. None of these is an instruction. So a text may only
//! contain the directives that declare local names and data in place of an instruction; its braces must be balanced;
//! and the operands that LLVM substitutes (`$0`, `${1:h}`) must exist. Whether the instructions exist is left to the
//! assembler.
//!
//! What the instructions do is not checked: assembly may do whatever other code may do.

use crate::targets::hooks::AssemblyRules;

/// Bytes of assembly that one op may become.
const MOST_TEXT: usize = 16 << 20;

/// Checks a text against the number of its operands; it is emitted `repeats` times.
///
/// # Errors
/// The text is not allowed; the message says why.
pub(crate) fn check(
    text: &str,
    operands: usize,
    repeats: usize,
    rules: &AssemblyRules,
) -> Result<(), String> {
    if text.len().saturating_mul(repeats) > MOST_TEXT {
        return Err(format!("its assembly becomes more than {MOST_TEXT} bytes"));
    }
    if text.contains('\0') {
        return Err("its assembly has a zero byte".to_owned());
    }
    check_places(text, operands)?;
    check_statements(&without_comments(text, rules)?, rules)
}

/// Checks the references that LLVM substitutes.
fn check_places(text: &str, operands: usize) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let wrong = || {
            let shown: String = rest[at..].chars().take(8).collect();
            format!(
                "its assembly says '{shown}', which is none of its {operands} operands; '$$' is a dollar"
            )
        };
        let after = &rest[at + 1..];
        let number = |digits: &str| {
            let number: Option<usize> = digits.parse().ok();
            number.is_some_and(|number| number < operands)
        };
        rest = if let Some(after) = after.strip_prefix('$') {
            after
        } else if let Some(inside) = after.strip_prefix('{') {
            let (inside, after) = inside.split_once('}').ok_or_else(wrong)?;
            let (digits, modifier) = inside.split_once(':').unwrap_or((inside, "a"));
            let unique = digits.is_empty() && matches!(modifier, "uid" | "private");
            let is_letter = modifier.len() == 1 && modifier.as_bytes()[0].is_ascii_alphabetic();
            let names_operand = is_letter && number(digits);
            if !(unique || names_operand) {
                return Err(wrong());
            }
            after
        } else {
            let end = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            if !number(&after[..end]) {
                return Err(wrong());
            }
            &after[end..]
        };
    }
    Ok(())
}

/// The text with a space in place of each comment, string and reference.
fn without_comments(text: &str, rules: &AssemblyRules) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("/*") {
            let end = rest
                .find("*/")
                .ok_or("its assembly has a comment without an end")?;
            end + 2
        } else if rules.comments.iter().any(|mark| rest.starts_with(mark)) {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            let end = rest[1..]
                .find('"')
                .ok_or("its assembly has a string without an end")?;
            end + 2
        } else if rest.starts_with("${") {
            rest.find('}').map_or(rest.len(), |end| end + 1)
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        plain.push(' ');
        rest = &rest[skipped..];
    }
    Ok(plain)
}

fn check_statements(plain: &str, rules: &AssemblyRules) -> Result<(), String> {
    let mut depth = 0u32;
    for brace in plain.chars().filter(|_| rules.blocks) {
        match brace {
            '{' => depth += 1,
            '}' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or("its assembly closes a block that it has not opened")?;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("its assembly opens a block that it does not close".to_owned());
    }
    for statement in plain.split(|c| rules.separators.contains(c)) {
        let mut statement = statement.trim_start();
        // Labels.
        while let Some((label, rest)) = statement.split_once(':') {
            let is_label = !label.is_empty()
                && label
                    .trim_end()
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_$.%".contains(c));
            if !is_label {
                break;
            }
            statement = rest.trim_start();
        }
        let Some(directive) = statement.strip_prefix('.') else {
            continue;
        };
        let end = directive
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(directive.len());
        let directive = &directive[..end];
        if !rules
            .directives
            .contains(&directive.to_ascii_lowercase().as_str())
        {
            return Err(format!(
                "its assembly has the directive '.{directive}', which is not for the inside of a function (those \
                 that are: .{})",
                rules.directives.join(", .")
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::targets::hooks::AssemblyRules;

    const BLOCKS: AssemblyRules = AssemblyRules {
        comments: &["//"],
        separators: ";{}",
        directives: &["reg"],
        blocks: true,
    };
    const LINES: AssemblyRules = AssemblyRules {
        comments: &[";", "//"],
        separators: "\n",
        directives: &["long"],
        blocks: false,
    };

    #[test]
    fn instructions_pass() {
        for (text, rules) in [
            ("", &BLOCKS),
            (
                "{ .reg .b32 a<2>; mov.b32 a0, $1; cvt.u32.u8 $0, a0; }",
                &BLOCKS,
            ),
            ("mov.b32 $0, $1; // .include }", &BLOCKS),
            ("L${:uid}: @p bra L${:uid};", &BLOCKS),
            ("mov.b32 ${0:h}, 0.5; /* } */", &BLOCKS),
            ("v_mov_b32 $0, $1 ; .fill 9", &LINES),
            (
                "again: s_nop 0\n.long 0xbf800000\ns_cbranch_scc1 again",
                &LINES,
            ),
            ("ds_read_b32 $0, $1 offset:4\ns_waitcnt lgkmcnt(0)", &LINES),
        ] {
            assert_eq!(check(text, 2, 1, rules), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_no_instruction_is_named() {
        for (text, rules, said) in [
            (".include \"f\"", &BLOCKS, "the directive '.include'"),
            ("} .entry evil() {", &BLOCKS, "closes a block"),
            ("{ mov.b32 $0, $1;", &BLOCKS, "opens a block"),
            ("mov $(", &BLOCKS, "says '$('"),
            ("mov $0, $2;", &BLOCKS, "says '$2;'"),
            ("mov $0, ${1:comment};", &BLOCKS, "says '${1:comm'"),
            ("mov $", &BLOCKS, "says '$'"),
            ("/* ", &BLOCKS, "a comment without an end"),
            (".p2align 63", &LINES, "the directive '.p2align'"),
            ("a: b: .FILL 9", &LINES, "the directive '.FILL'"),
            ("s_nop 0\n  .rept 9\n.endr", &LINES, "the directive '.rept'"),
            ("/* a */ .incbin \"f\"", &LINES, "the directive '.incbin'"),
            ("\0", &LINES, "a zero byte"),
        ] {
            let error = check(text, 2, 1, rules).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        let long = "s_nop 0\n".repeat(1 << 12);
        assert_eq!(check(&long, 0, 1, &LINES), Ok(()));
        assert!(check(&long, 0, 1 << 12, &LINES).is_err());
    }
}
