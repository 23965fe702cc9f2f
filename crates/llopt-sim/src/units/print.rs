//! The output of kernels: `vprintf` and assertions on NVIDIA, the message functions of AMD's runtime.

use crate::machine::block::{Block, Executed, Stop};
use crate::machine::bytecode::{Print, Slot};
use crate::machine::warp::{Row, Warp, lanes};
use crate::memory::global::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::units::draft::Draft;

/// Longest string a kernel may print.
const MAX_STRING: usize = 4096;

impl<const W: usize> Block<'_, W> {
    /// Executes a print, lane by lane.
    pub(crate) fn print(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        print: &Print,
        mask: u64,
    ) -> Executed<()> {
        let get = |warp: &Warp<W>, slot: Slot| -> Row<W> { warp.frames[frame].rows[slot as usize] };
        for lane in lanes(mask) {
            match print {
                Print::Vprintf {
                    dst,
                    format,
                    arguments,
                } => {
                    let format = self.string(warp, lane, get(warp, *format)[lane], MAX_STRING);
                    let mut at = get(warp, *arguments)[lane];
                    let text = expand(&format, |conversion| {
                        let wide = conversion.is_wide();
                        let size = if wide { 8 } else { 4 };
                        at = at.next_multiple_of(size);
                        let bits = self.bytes(warp, lane, at, size as usize);
                        at += size;
                        let text = (conversion.kind == 's')
                            .then(|| self.string(warp, lane, bits, MAX_STRING));
                        (bits, text)
                    });
                    self.output.push(text);
                    if let Some(dst) = dst {
                        warp.frames[frame].rows[*dst as usize][lane] = 0;
                    }
                }
                Print::AssertFail {
                    message,
                    file,
                    line,
                    function,
                } => {
                    let message = self.string(warp, lane, get(warp, *message)[lane], MAX_STRING);
                    let file = self.string(warp, lane, get(warp, *file)[lane], MAX_STRING);
                    let function = self.string(warp, lane, get(warp, *function)[lane], MAX_STRING);
                    let line = get(warp, *line)[lane];
                    let text = format!("{file}:{line}: {function}: assertion failed: {message}");
                    self.output.push(text.clone());
                    return Err(Stop::Fatal(text));
                }
                Print::Begin { dst } => {
                    self.drafts.insert((warp.index, lane), Draft::default());
                    warp.frames[frame].rows[*dst as usize][lane] = 1;
                }
                Print::AppendString {
                    dst,
                    string,
                    length,
                    last,
                } => {
                    let length = get(warp, *length)[lane] as usize;
                    let text =
                        self.string(warp, lane, get(warp, *string)[lane], length.min(MAX_STRING));
                    self.drafts
                        .entry((warp.index, lane))
                        .or_default()
                        .format
                        .push_str(&text);
                    self.flush_draft(warp.index, lane, get(warp, *last)[lane]);
                    warp.frames[frame].rows[*dst as usize][lane] = 1;
                }
                Print::AppendArguments {
                    dst,
                    count,
                    arguments,
                    last,
                } => {
                    let count = get(warp, *count)[lane] as usize;
                    let values = arguments.iter().take(count).map(|&a| get(warp, a)[lane]);
                    let draft = self.drafts.entry((warp.index, lane)).or_default();
                    draft.arguments.extend(values);
                    self.flush_draft(warp.index, lane, get(warp, *last)[lane]);
                    warp.frames[frame].rows[*dst as usize][lane] = 1;
                }
            }
        }
        Ok(())
    }

    /// Prints a message whose last piece has arrived.
    fn flush_draft(&mut self, warp: usize, lane: usize, last: u64) {
        if last != 0
            && let Some(draft) = self.drafts.remove(&(warp, lane))
        {
            let mut next = draft.arguments.into_iter();
            let text = expand(&draft.format, |_| (next.next().unwrap_or(0), None));
            self.output.push(text);
        }
    }

    /// Bytes at a generic address, little-endian; zero where there are none.
    fn bytes(&self, warp: &Warp<W>, lane: usize, address: u64, length: usize) -> u64 {
        (0..length).rev().fold(0, |value, i| {
            value << 8 | u64::from(self.byte(warp, lane, address + i as u64))
        })
    }

    fn byte(&self, warp: &Warp<W>, lane: usize, address: u64) -> u8 {
        if address & SHARED_WINDOW != 0 {
            return self
                .shared
                .get((address & !SHARED_WINDOW) as usize)
                .copied()
                .unwrap_or(0);
        }
        if address & LOCAL_WINDOW != 0 {
            let at = lane * warp.local_stride as usize + (address & !LOCAL_WINDOW) as usize;
            return warp.local.get(at).copied().unwrap_or(0);
        }
        self.global.read(address, 1) as u8
    }

    /// A zero-terminated string of at most `limit` bytes.
    fn string(&self, warp: &Warp<W>, lane: usize, address: u64, limit: usize) -> String {
        let bytes: Vec<u8> = (0..limit as u64)
            .map(|i| self.byte(warp, lane, address + i))
            .take_while(|&b| b != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// One conversion of a format.
struct Conversion {
    flags: String,
    width: usize,
    precision: Option<usize>,
    long: bool,
    kind: char,
}

impl Conversion {
    /// Whether the argument takes eight bytes.
    fn is_wide(&self) -> bool {
        self.long || matches!(self.kind, 'f' | 'e' | 'g' | 'F' | 'E' | 'G' | 'p' | 's')
    }

    fn render(&self, bits: u64, text: Option<String>) -> String {
        let signed = if self.long {
            bits as i64
        } else {
            i64::from(bits as u32 as i32)
        };
        let unsigned = if self.long { bits } else { bits & 0xffff_ffff };
        let value = f64::from_bits(bits);
        let body = match self.kind {
            'd' | 'i' => signed.to_string(),
            'u' => unsigned.to_string(),
            'x' => format!("{unsigned:x}"),
            'X' => format!("{unsigned:X}"),
            'o' => format!("{unsigned:o}"),
            'c' => char::from(bits as u8).to_string(),
            'p' => format!("{bits:#x}"),
            's' => text.unwrap_or_else(|| format!("{bits:#x}")),
            'e' | 'E' => format!("{value:.*e}", self.precision.unwrap_or(6)),
            'g' | 'G' => value.to_string(),
            _ => format!("{value:.*}", self.precision.unwrap_or(6)),
        };
        if self.flags.contains('-') {
            format!("{body:<width$}", width = self.width)
        } else if self.flags.contains('0') {
            format!("{body:0>width$}", width = self.width)
        } else {
            format!("{body:>width$}", width = self.width)
        }
    }
}

/// Expands the conversions of a C format.
fn expand(format: &str, mut argument: impl FnMut(&Conversion) -> (u64, Option<String>)) -> String {
    let mut result = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            result.push('%');
            continue;
        }
        let mut conversion = Conversion {
            flags: String::new(),
            width: 0,
            precision: None,
            long: false,
            kind: ' ',
        };
        while let Some(flag) = rest.next_if(|c| "-+ #0".contains(*c)) {
            conversion.flags.push(flag);
        }
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            conversion.width = (conversion.width * 10 + digit as usize - '0' as usize).min(1000);
        }
        if rest.next_if_eq(&'.').is_some() {
            let mut precision = 0;
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                precision = (precision * 10 + digit as usize - '0' as usize).min(1000);
            }
            conversion.precision = Some(precision);
        }
        while let Some(modifier) = rest.next_if(|c| "lhjzt".contains(*c)) {
            conversion.long |= "ljzt".contains(modifier);
        }
        let Some(kind) = rest.next() else {
            break;
        };
        conversion.kind = kind;
        let (bits, text) = argument(&conversion);
        result.push_str(&conversion.render(bits, text));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn formats_expand_as_in_c() {
        let mut values = [7u64, 0xffff_ffff, 1.5f64.to_bits(), 255].into_iter();
        let text = expand("pid (%u) %3d|%.2f|%04x 100%%", |_| {
            (values.next().unwrap_or(0), None)
        });
        assert_eq!(text, "pid (7)  -1|1.50|00ff 100%");
    }
}
