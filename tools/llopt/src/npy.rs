//! NumPy's `.npy` files, as far as running kernels needs them: a header that is kept as it is, and the bytes behind it.
//!
//! The format is a magic word, a version, the header's length, and the header, a Python dictionary that ends in a
//! newline. What the elements are does not matter to a kernel, which gets the bytes.

use std::path::Path;

use anyhow::{Context, Result, ensure};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array on its way through a kernel.
pub struct Array {
    /// Everything in front of the data.
    header: Vec<u8>,
    /// The elements.
    pub data: Vec<u8>,
}

/// Reads an array.
///
/// # Errors
/// The file cannot be read or is no `.npy` file.
pub fn read(path: &Path) -> Result<Array> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read '{name}'"))?;
    let split = header_length(&bytes).with_context(|| format!("'{name}' is no .npy file"))?;
    let (header, data) = bytes.split_at(split);
    let text = String::from_utf8_lossy(header);
    ensure!(
        !text.contains("'O'") && !text.contains("|O"),
        "'{name}' holds Python objects, which are no memory"
    );
    Ok(Array {
        header: header.to_vec(),
        data: data.to_vec(),
    })
}

/// Bytes in front of the data.
fn header_length(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, prefix) = match rest.first()? {
        1 => (
            u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?).into(),
            10,
        ),
        2 | 3 => (u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?), 12),
        _ => return None,
    };
    let end = prefix + usize::try_from(length).ok()?;
    (end <= bytes.len()).then_some(end)
}

impl Array {
    /// The file's contents with other data of the same length.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        [&self.header, data].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_measured_and_kept() {
        let mut file = b"\x93NUMPY\x01\x00\x06\x00{'x'}\n".to_vec();
        assert_eq!(header_length(&file), Some(16));
        file.extend([1, 2, 3, 4]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        std::fs::write(&path, &file).unwrap();
        let array = read(&path).unwrap();
        assert_eq!(array.data, [1, 2, 3, 4]);
        assert_eq!(array.with_data(&[5, 6, 7, 8])[16..], [5, 6, 7, 8]);
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [
            &b""[..],
            b"\x93NUMPY",
            b"\x93NUMPY\x09\x00\x06\x00",
            b"\x93NUMPY\x01\x00\xff\xff{}",
            b"PK",
        ] {
            assert_eq!(header_length(bytes), None);
        }
    }
}
