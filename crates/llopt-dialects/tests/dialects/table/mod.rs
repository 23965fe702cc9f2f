//! Reads the compressed tables of `tests/data`.

use std::io::Read;

/// The rows of a table, cut at tabs.
pub fn rows(name: &str) -> Vec<Vec<String>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let file = std::fs::File::open(&path).expect(name);
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect(name);
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

/// `16x32` as numbers.
#[allow(dead_code, reason = "not every table has shapes")]
pub fn shape(text: &str) -> Vec<u64> {
    text.split('x')
        .map(|size| size.parse().expect(text))
        .collect()
}
