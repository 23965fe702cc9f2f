//! Counts of passed and failed tests.

/// Counts of passed and failed tests.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Tests that ran and succeeded.
    pub passed: u64,
    /// Tests that ran and failed, or that could not be run.
    pub failed: u64,
}

impl Tally {
    /// Adds the counts in a closing line of a Rust test binary; other lines add nothing.
    pub fn add_cargo_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let words: Vec<&str> = result.split([' ', ';']).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            match (pair[0].parse::<u64>(), pair[1]) {
                (Ok(count), "passed") => self.passed += count,
                (Ok(count), "failed") => self.failed += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn closing_lines_of_test_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            tally.add_cargo_line(line);
        }
        assert_eq!((tally.passed, tally.failed), (4, 2));
    }
}
