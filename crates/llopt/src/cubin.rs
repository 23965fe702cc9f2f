//! The resources of NVIDIA's code objects.
//!
//! A cubin is an ELF file whose section `.nv.info` lists attributes of its functions. Each has a byte that names its format,
//! one that names the attribute, and two bytes: a number, or, in format 4, the length of what follows. Attribute 0x2f has the
//! registers of a thread, and 0x11 the bytes of its stack, both behind the index of the function in the table of symbols.
//! (NVIDIA does not document them; `cuobjdump --dump-elf` prints them as `EIATTR_REGCOUNT` and `EIATTR_FRAME_SIZE`.)

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use crate::metadata::Resources;

const SECTION: &[u8] = b".nv.info";
/// The format of an attribute with a length.
const SIZED: u8 = 4;
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

/// The resources of the functions of a cubin, of each the most that any of them takes; `None` if the bytes are no such file.
pub(crate) fn resources(cubin: &[u8]) -> Option<Resources> {
    // Some other sections are not what they are elsewhere, so the file is not read as a whole.
    let header = FileHeader64::<LittleEndian>::parse(cubin).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, cubin).ok()?;
    let (_, section) = sections.section_by_name(endian, SECTION)?;
    let info = section.data(endian, cubin).ok()?;
    let most = |wanted| {
        let values = attributes(info).filter(|(attribute, _)| *attribute == wanted);
        values.map(|(_, value)| value).max()
    };
    Some(Resources {
        registers: Some(most(REGISTERS)?),
        scratch: most(FRAME),
        ..Resources::default()
    })
}

/// The sized attributes of functions, each with its value.
fn attributes(mut info: &[u8]) -> impl Iterator<Item = (u8, u32)> {
    std::iter::from_fn(move || {
        loop {
            let (&[format, attribute, low, high], mut rest) = info.split_first_chunk()?;
            let mut value = None;
            if format == SIZED {
                let sized;
                (sized, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
                // The index of the function comes first.
                value = sized.get(4..8).and_then(|bytes| bytes.try_into().ok());
            }
            info = rest;
            if let Some(value) = value {
                return Some((attribute, u32::from_le_bytes(value)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_follow_one_another() {
        let info = [
            &[4, REGISTERS, 8, 0, 10, 0, 0, 0, 168, 0, 0, 0][..],
            &[3, 0x1b, 255, 0],
            &[4, FRAME, 8, 0, 10, 0, 0, 0, 8, 1, 0, 0],
            // What is cut off is none.
            &[4, FRAME, 8, 0, 10, 0],
        ];
        let all: Vec<_> = attributes(&info.concat()).collect();
        assert_eq!(all, [(REGISTERS, 168), (FRAME, 264)]);
    }

    #[test]
    fn what_is_no_cubin_has_no_resources() {
        assert_eq!(resources(b""), None);
        assert_eq!(resources(b"\x7fELF and no more"), None);
    }
}
