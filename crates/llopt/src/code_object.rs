//! The metadata of AMD's code objects.
//!
//! An hsaco is an ELF file with a note of owner `AMDGPU` and type 32, whose contents are a MessagePack map: the list
//! `amdhsa.kernels` has a map for each kernel (LLVM's *User Guide for AMDGPU Backend*, "Code Object V5 Metadata").
//! The runtime reads the registers and the memory of a kernel there, and so does this file.

use object::LittleEndian;
use object::elf::NoteType;
use object::read::elf::{ElfFile64, SectionHeader};
use rmpv::Value;

use crate::metadata::Resources;

const OWNER: &[u8] = b"AMDGPU";
const METADATA: NoteType = NoteType(32);

/// The resources of the kernel called `name`, or of the only kernel; `None` if the bytes are not a code object with
/// metadata of such a kernel.
pub(crate) fn resources(code_object: &[u8], name: &str) -> Option<Resources> {
    let metadata = metadata(code_object)?;
    let kernels = field(&metadata, "amdhsa.kernels")?.as_array()?;
    let kernel = match &kernels[..] {
        [only] => only,
        several => several
            .iter()
            .find(|kernel| field(kernel, ".name").and_then(Value::as_str) == Some(name))?,
    };
    let number = |key: &str| field(kernel, key)?.as_u64()?.try_into().ok();
    let spilled = [".vgpr_spill_count", ".sgpr_spill_count"].map(number);
    Some(Resources {
        registers: number(".vgpr_count"),
        accumulation_registers: number(".agpr_count"),
        scalar_registers: number(".sgpr_count"),
        spilled_bytes: None,
        spilled_registers: spilled.into_iter().flatten().reduce(|a, b| a + b),
        static_shared: number(".group_segment_fixed_size"),
        scratch: number(".private_segment_fixed_size"),
    })
}

/// The map in the note.
fn metadata(code_object: &[u8]) -> Option<Value> {
    let elf = ElfFile64::<LittleEndian>::parse(code_object).ok()?;
    for section in elf.elf_section_table().iter() {
        let Ok(Some(mut notes)) = section.notes(elf.endian(), elf.data()) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == OWNER && note.n_type(elf.endian()) == METADATA {
                return rmpv::decode::read_value(&mut note.desc()).ok();
            }
        }
    }
    None
}

fn field<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    map.as_map()?
        .iter()
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_object_has_no_resources() {
        assert_eq!(resources(b"", "k"), None);
        assert_eq!(resources(b"\x7fELF and no more", "k"), None);
    }
}
