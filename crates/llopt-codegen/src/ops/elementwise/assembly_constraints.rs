//! Whether the constraints of inline assembly fit its operands.
//!
//! Constraints are a list between commas (LLVM Language Reference, "Inline Asm Constraint String"): outputs (`=r`,
//! early-clobbered `=&r`), then inputs (`r`, or the number of an output whose place they share), then clobbers
//! (`~{memory}`). LLVM does not check that a list fits, and continues with a null pointer if it does not; so the list
//! is parsed here first, and only lists that LLVM's own parser accepts pass.

/// Checks a list against the numbers of results and operands in registers.
///
/// # Errors
/// The list does not fit; the text says why.
pub fn check(constraints: &str, outputs: usize, inputs: usize) -> Result<(), String> {
    let mut read = Read::default();
    if !constraints.is_empty() {
        for one in constraints.split(',') {
            read.constraint(one)
                .map_err(|wrong| format!("its constraint '{one}' {wrong}"))?;
        }
    }
    let expect = |what: &str, listed: usize, needed: usize| {
        if listed == needed {
            return Ok(());
        }
        Err(format!(
            "its constraints '{constraints}' list {listed} {what}{}, not {needed}",
            if listed == 1 { "" } else { "s" }
        ))
    };
    expect("output", read.matched.len(), outputs)?;
    expect("input", read.inputs, inputs)
}

/// The state of parsing a list.
#[derive(Default)]
struct Read {
    /// For each output whether an input shares its place.
    matched: Vec<bool>,
    inputs: usize,
    clobbers: usize,
}

impl Read {
    fn constraint(&mut self, text: &str) -> Result<(), &'static str> {
        if let Some(register) = text.strip_prefix('~') {
            self.clobbers += 1;
            let named = register.starts_with('{') && register.find('}') == Some(register.len() - 1);
            return named
                .then_some(())
                .ok_or("is no clobber, such as '~{memory}'");
        }
        if self.clobbers > 0 {
            return Err("comes after a clobber");
        }
        let (output, mut codes) = match text.strip_prefix('=') {
            Some(codes) => (true, codes),
            None => (false, text),
        };
        if output && self.inputs > 0 {
            return Err("is an output after an input");
        }
        if codes.starts_with('*') || codes.starts_with('!') {
            return Err("asks for memory or a label, which a tile has not");
        }
        let (mut early, mut commutes) = (false, false);
        loop {
            let seen = match codes.chars().next() {
                Some('&') if output => &mut early,
                Some('%') => &mut commutes,
                Some('&' | '#' | '*') => return Err("has a modifier that is not for it"),
                _ => break,
            };
            if std::mem::replace(seen, true) {
                return Err("has a modifier twice");
            }
            codes = &codes[1..];
        }
        if codes.is_empty() {
            return Err("names no register class");
        }
        self.codes(codes, output)?;
        if output {
            self.matched.push(false);
        } else {
            self.inputs += 1;
        }
        Ok(())
    }

    fn codes(&mut self, mut codes: &str, output: bool) -> Result<(), &'static str> {
        while let Some(first) = codes.chars().next() {
            let length = match first {
                '{' => 1 + codes.find('}').ok_or("has a brace that does not close")?,
                '0'..='9' => {
                    let digits = codes
                        .find(|c: char| !c.is_ascii_digit())
                        .unwrap_or(codes.len());
                    let place: Option<usize> = codes[..digits].parse().ok();
                    match place.and_then(|place| self.matched.get_mut(place)) {
                        Some(matched) if !output && !*matched => *matched = true,
                        _ => return Err("names no output whose place it could share"),
                    }
                    digits
                }
                // Codes of two letters, and codes whose length a digit gives.
                '^' => 3,
                '@' => match codes[1..]
                    .chars()
                    .next()
                    .and_then(|digit| digit.to_digit(10))
                {
                    Some(letters @ 1..) => 2 + letters as usize,
                    _ => return Err("does not say how many letters follow '@'"),
                },
                // LLVM would pass the address of a value, but a value has none.
                'm' | 'o' | 'V' => {
                    return Err("asks for memory, which a value of a tile is not in");
                }
                single => single.len_utf8(),
            };
            codes = codes.get(length..).ok_or("ends too early")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn lists_that_fit_pass() {
        for (constraints, outputs, inputs) in [
            ("", 0, 0),
            ("=r,r", 1, 1),
            ("=&r,=&r,l,r,r,b", 2, 4),
            ("=v,v,v,~{vcc},~{memory}", 1, 2),
            ("=r,0", 1, 1),
            ("={r1},%r,r", 1, 2),
            ("=^Yz,@3abc", 1, 1),
            ("=r|f,r|f", 1, 1),
        ] {
            assert_eq!(check(constraints, outputs, inputs), Ok(()), "{constraints}");
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_explained() {
        for (constraints, outputs, inputs, said) in [
            ("=f,f,q", 1, 1, "list 2 inputs, not 1"),
            ("=f,f", 2, 1, "list 1 output, not 2"),
            ("r,=r", 1, 1, "'=r' is an output after an input"),
            ("=m,m", 1, 1, "'=m' asks for memory"),
            ("=r,rm", 1, 1, "'rm' asks for memory"),
            ("=r,~{memory},r", 1, 1, "'r' comes after a clobber"),
            ("=r,,r", 1, 1, "'' names no register class"),
            ("=r,r,", 1, 1, "'' names no register class"),
            ("=r,~memory", 1, 0, "'~memory' is no clobber"),
            ("=r,1", 1, 1, "'1' names no output"),
            ("=r,0,0", 1, 2, "'0' names no output"),
            ("=r,&r", 1, 1, "'&r' has a modifier"),
            ("=&&r", 1, 0, "'=&&r' has a modifier twice"),
            ("=*m", 1, 0, "'=*m' asks for memory"),
            ("={r1", 1, 0, "'={r1' has a brace"),
            ("=^Y", 1, 0, "'=^Y' ends too early"),
            ("=@9a", 1, 0, "'=@9a' ends too early"),
            ("=@é", 1, 0, "'=@é' does not say"),
        ] {
            let wrong = check(constraints, outputs, inputs).expect_err(constraints);
            assert!(wrong.contains(said), "{constraints}: {wrong}");
        }
    }
}
