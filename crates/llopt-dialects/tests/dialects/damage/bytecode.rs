//! Changes to bytecode that keep its sections in place.
//!
//! A file is four magic bytes, a version, the producer's name up to a zero byte, and sections: an
//! identifier (its high bit says that an alignment follows), a length, and that many bytes. Numbers
//! are varints whose low bits count, as trailing zeros, how many bytes follow
//! (<https://mlir.llvm.org/docs/BytecodeFormat/>).

use super::{Dice, change_blindly};

const MAGIC: &[u8] = b"ML\xefR";
const PADDING: u8 = 0xCB;

/// A section; those inside of it are bytes here.
#[derive(Clone)]
struct Section {
    id: u8,
    alignment: Option<u64>,
    payload: Vec<u8>,
}

/// A file taken apart.
struct File {
    header: Vec<u8>,
    sections: Vec<Section>,
}

/// The number at a position and how many bytes it has.
fn read_varint(bytes: &[u8], position: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(position)?;
    let follow = (first.trailing_zeros() as usize).min(8);
    let rest = bytes.get(position..position + follow + 1)?;
    if follow == 8 {
        return Some((u64::from_le_bytes(rest[1..].try_into().ok()?), 9));
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    Some((u64::from_le_bytes(word) >> (follow + 1), follow + 1))
}

fn write_varint(bytes: &mut Vec<u8>, value: u64) {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    let follow = (bits - 1) / 7;
    if follow >= 8 {
        bytes.push(0);
        bytes.extend(value.to_le_bytes());
        return;
    }
    let word = (value << 1 | 1) << follow;
    bytes.extend(&word.to_le_bytes()[..=follow]);
}

fn read_file(bytes: &[u8]) -> Option<File> {
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let (_, length) = read_varint(bytes, MAGIC.len())?;
    let producer = MAGIC.len() + length;
    let end = producer + bytes[producer..].iter().position(|byte| *byte == 0)? + 1;
    let mut sections = Vec::new();
    let mut position = end;
    while position < bytes.len() {
        let id = bytes[position];
        let (length, taken) = read_varint(bytes, position + 1)?;
        position += 1 + taken;
        let mut alignment = None;
        if id & 0x80 != 0 {
            let (value, taken) = read_varint(bytes, position)?;
            position += taken;
            position = position.checked_next_multiple_of(usize::try_from(value).ok()?.max(1))?;
            alignment = Some(value);
        }
        let payload_end = position.checked_add(usize::try_from(length).ok()?)?;
        let payload = bytes.get(position..payload_end)?.to_vec();
        sections.push(Section {
            id,
            alignment,
            payload,
        });
        position = payload_end;
    }
    Some(File {
        header: bytes[..end].to_vec(),
        sections,
    })
}

/// Puts a file together; `lie` is added to the length of one section.
fn write_file(file: &File, lie: Option<(usize, u64)>) -> Vec<u8> {
    let mut bytes = file.header.clone();
    for (index, section) in file.sections.iter().enumerate() {
        bytes.push(section.id);
        let extra = lie.map_or(0, |(at, extra)| if at == index { extra } else { 0 });
        write_varint(
            &mut bytes,
            (section.payload.len() as u64).wrapping_add(extra),
        );
        if let Some(alignment) = section.alignment {
            write_varint(&mut bytes, alignment);
            // An alignment is at most what the sections of a real file have.
            let step = usize::try_from(alignment).unwrap_or(1).clamp(1, 4096);
            bytes.resize(bytes.len().next_multiple_of(step), PADDING);
        }
        bytes.extend(&section.payload);
    }
    bytes
}

/// One change; pieces may come from another file.
pub fn change(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let (Some(mut file), Some(foreign)) = (read_file(bytes), read_file(other)) else {
        change_blindly(&mut changed, other, dice);
        return changed;
    };
    if file.sections.is_empty() {
        return changed;
    }
    let at = dice.below(file.sections.len());
    let mut lie = None;
    match dice.below(14) {
        0 => {
            file.sections.remove(at);
        }
        1 => file.sections.insert(at, file.sections[at].clone()),
        2 => {
            let second = dice.below(file.sections.len());
            file.sections.swap(at, second);
        }
        3 => {
            let id = file.sections[at].id;
            if let Some(piece) = foreign.sections.iter().find(|section| section.id == id) {
                file.sections[at] = piece.clone();
            }
        }
        4 => lie = Some((at, *dice.pick(&[1, u64::MAX, 2, 1 << 20, 1 << 33, 1 << 63]))),
        5 => file.sections[at].id = dice.below(16) as u8 | (file.sections[at].id & 0x80),
        6 => {
            let piece = foreign.sections[at.min(foreign.sections.len().saturating_sub(1))]
                .payload
                .clone();
            change_blindly(&mut file.sections[at].payload, &piece, dice);
        }
        _ => {
            for _ in 0..=dice.below(3) {
                change_varint(&mut file.sections[at].payload, dice);
            }
        }
    }
    write_file(&file, lie)
}

/// Another number in place of whatever is a number at some position.
fn change_varint(payload: &mut Vec<u8>, dice: &mut Dice) {
    let position = dice.below(payload.len());
    let Some((value, length)) = read_varint(payload, position) else {
        return;
    };
    let value = match dice.below(6) {
        0 => value.wrapping_add(1),
        1 => value.wrapping_sub(1),
        2 => value ^ 1,
        3 => dice.below(64) as u64,
        4 => value.wrapping_add(2 * dice.below(16) as u64),
        _ => *dice.pick(&[
            0,
            1,
            0x7f,
            0x80,
            0xffff,
            1 << 20,
            u64::from(u32::MAX),
            1 << 40,
            u64::MAX,
        ]),
    };
    let mut written = Vec::new();
    write_varint(&mut written, value);
    payload.splice(position..position + length, written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_number_is_read_again() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(&mut bytes, value);
                assert_eq!(
                    read_varint(&bytes, 0),
                    Some((value, bytes.len())),
                    "{value:#x}"
                );
            }
        }
    }

    #[test]
    fn a_file_taken_apart_is_put_together_again() {
        let context = super::super::context();
        let source = b"module { tt.func @f(%a: !tt.ptr<f32>) { tt.return } }";
        let Ok(module) = super::super::parse(&context, source, "f") else {
            panic!("the text is right");
        };
        use melior::ir::operation::OperationLike;
        let bytes = module.as_operation().write_bytecode();
        let file = read_file(&bytes).expect("MLIR wrote it");
        assert!(file.sections.len() > 4, "{}", file.sections.len());
        assert_eq!(write_file(&file, None), bytes);
    }
}
