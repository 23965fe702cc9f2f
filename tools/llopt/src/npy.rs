//! NumPy's `.npy` files, as far as running kernels needs them: a header that is preserved, and the bytes after it.
//!
//! The format is a magic word, a version, the header's length, and the header, a Python dictionary that ends in a
//! newline. A kernel gets the bytes; their type is compared with that of the parameter, where both are known.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use llopt::{Format, Pointee};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array for a kernel.
pub struct Array {
    /// All bytes before the data.
    header: Vec<u8>,
    /// The elements.
    pub data: Vec<u8>,
}

/// Reads an array.
///
/// # Errors
/// The file cannot be read or is not a `.npy` file.
pub fn read(path: &Path) -> Result<Array> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read '{name}'"))?;
    let split = header_length(&bytes).with_context(|| format!("'{name}' is no .npy file"))?;
    let (header, data) = bytes.split_at(split);
    let array = Array {
        header: header.to_vec(),
        data: data.to_vec(),
    };
    let said = array.said();
    ensure!(
        !said.contains("'O'") && !said.contains("|O"),
        "'{name}' holds Python objects, which are no memory"
    );
    let size = array.element_size().with_context(|| {
        format!("'{name}' has elements that are no numbers (or structures of several)")
    })?;
    let extents = array
        .extents()
        .with_context(|| format!("'{name}' does not say its shape in a way that has a meaning"))?;
    ensure!(
        extents.iter().all(|&extent| extent >= 0),
        "'{name}' has a negative extent in its shape {extents:?}"
    );
    let expected = extents
        .iter()
        .try_fold(size as u64, |bytes, &extent| {
            bytes.checked_mul(extent as u64)
        })
        .with_context(|| format!("'{name}' has the shape {extents:?}, larger than any memory"))?;
    let found = data.len() as u64;
    ensure!(
        found == expected,
        "'{name}' has {found} bytes of data, and its shape {extents:?} needs {expected}: the file is {}",
        if found < expected {
            "truncated"
        } else {
            "no single array"
        }
    );
    Ok(array)
}

/// Bytes before the data.
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

/// A file of doubles in one dimension.
pub fn doubles(numbers: &[f64]) -> Vec<u8> {
    let mut header = format!(
        "{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}",
        numbers.len()
    );
    // The data begins at a multiple of 64 bytes, after the newline that ends the header.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = MAGIC.to_vec();
    file.extend([1, 0]);
    // The header is short.
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    file
}

impl Array {
    /// The dictionary in the header.
    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.header);
        text.split_once('{')
            .map_or_else(String::new, |(_, dictionary)| dictionary.to_owned())
    }

    /// The extents in the header.
    fn extents(&self) -> Option<Vec<i64>> {
        let said = self.said();
        let (_, rest) = said.split_once("'shape': (")?;
        let (inside, _) = rest.split_once(')')?;
        inside
            .split(',')
            .map(str::trim)
            .filter(|extent| !extent.is_empty())
            .map(|extent| extent.parse().ok())
            .collect()
    }

    /// The type of the elements, if it is a simple one: `<f4`.
    pub fn descr(&self) -> Option<String> {
        let text = self.said();
        let (_, rest) = text.split_once("'descr': '")?;
        let (descr, _) = rest.split_once('\'')?;
        Some(descr.to_owned())
    }

    /// Bytes of an element, if the header specifies them: the number at the end of a simple type.
    pub fn element_size(&self) -> Option<usize> {
        let descr = self.descr()?;
        let kind = descr.trim_start_matches(['<', '|', '=', '>']);
        let digits = kind.strip_prefix(['b', 'i', 'u', 'f', 'c', 'V'])?;
        digits.parse().ok().filter(|size| (1..=32).contains(size))
    }

    /// Whether a pointer of the kernel may point to elements of this type. Formats that NumPy lacks (bf16, fp8) may
    /// have any type of their size; for others the kind must be right, too.
    pub fn holds(&self, pointee: Pointee) -> bool {
        let Some(descr) = self.descr() else {
            return true;
        };
        let kind = descr
            .trim_start_matches(['<', '|', '=', '>'])
            .chars()
            .next();
        let kinds = match pointee.format {
            Format::Integer => "iubV",
            Format::Ieee => "fV",
            Format::OtherFloat => "fiuV",
        };
        let one_order = !descr.starts_with('>') || pointee.bytes == 1;
        let size = self.element_size() == Some(pointee.bytes as usize);
        one_order && size && kind.is_some_and(|kind| kinds.contains(kind))
    }

    /// The extents, outermost first; `None` if the header does not specify them, or the array is stored with the
    /// first dimension fastest.
    pub fn shape(&self) -> Option<Vec<u32>> {
        if !self.said().contains("'fortran_order': False") {
            return None;
        }
        let extents = self.extents()?.into_iter();
        extents.map(|extent| extent.try_into().ok()).collect()
    }

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
        let (array, length) = written(
            "'descr': '|u1', 'fortran_order': False, 'shape': (4,), ",
            &[1, 2, 3, 4],
        );
        let array = array.unwrap();
        assert_eq!(array.data, [1, 2, 3, 4]);
        assert_eq!(array.with_data(&[5, 6, 7, 8])[length..], [5, 6, 7, 8]);
    }

    /// The array read from a file with this dictionary and data, and the length of its header.
    fn written(dictionary: &str, data: &[u8]) -> (Result<Array>, usize) {
        let header = format!("{{{dictionary}}}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        let length = file.len();
        assert_eq!(header_length(&file), Some(length));
        file.extend(data);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        std::fs::write(&path, &file).unwrap();
        (read(&path), length)
    }

    #[test]
    fn what_is_no_whole_array_of_numbers_is_refused_by_name() {
        for (descr, shape, message) in [
            (
                "'<f4'",
                "(2,)",
                "has 4 bytes of data, and its shape [2] needs 8: the file is truncated",
            ),
            (
                "'|u1'",
                "(2,)",
                "has 4 bytes of data, and its shape [2] needs 2: the file is no single array",
            ),
            ("'|u1'", "(-4,)", "has a negative extent"),
            (
                "'<f8'",
                "(9223372036854775807, 4)",
                "larger than any memory",
            ),
            ("'|u1'", "(99999999999999999999,)", "does not say its shape"),
            ("[('a', '<f4')]", "(1,)", "has elements that are no numbers"),
            ("'<U1'", "(1,)", "has elements that are no numbers"),
            ("'|O'", "(1,)", "holds Python objects"),
        ] {
            let dictionary =
                format!("'descr': {descr}, 'fortran_order': False, 'shape': {shape}, ");
            let (array, _) = written(&dictionary, &[0; 4]);
            let Err(error) = array else {
                panic!("{dictionary} is taken")
            };
            assert!(error.to_string().contains(message), "{dictionary}: {error}");
        }
        let scalar = written(
            "'descr': '<f4', 'fortran_order': False, 'shape': (), ",
            &[0; 4],
        )
        .0;
        assert_eq!(scalar.unwrap().shape(), Some(vec![]));
    }

    #[test]
    fn doubles_are_written_as_they_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        std::fs::write(&path, doubles(&[1.5, f64::INFINITY])).unwrap();
        let array = read(&path).unwrap();
        assert_eq!(array.header.len() % 64, 0);
        assert_eq!(array.element_size(), Some(8));
        assert_eq!(array.data[8..], f64::INFINITY.to_le_bytes());
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
