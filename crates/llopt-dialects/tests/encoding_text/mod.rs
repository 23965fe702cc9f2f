//! Reads encodings in IR syntax for the tests of this crate that need no IR around them.

use llopt_dialects::encoding::{
    AmdMfma, AmdRotatingShared, AmdWmma, Blocked, CgaLayout, DotOperand, Encoding, EncodingError,
    Linear, NvidiaMma, NvmmaShared, PaddedShared, SharedLinear, Slice, SwizzledShared,
    TensorMemory, TensorMemoryScales,
};

enum Value {
    Number(u32),
    Flag(bool),
    List(Vec<Value>),
    Encoding(Box<Encoding>),
}

struct Fields(Vec<(String, Value)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, v)| v)
    }

    fn number(&self, name: &str, default: u32) -> u32 {
        match self.get(name) {
            Some(Value::Number(number)) => *number,
            _ => default,
        }
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    fn list(&self, name: &str) -> Option<Vec<u32>> {
        match self.get(name) {
            Some(Value::List(items)) => Some(items.iter().map(Value::number).collect()),
            _ => None,
        }
    }

    fn lists(&self, name: &str) -> Vec<Vec<u32>> {
        let Some(Value::List(items)) = self.get(name) else {
            return Vec::new();
        };
        let inner = |item: &Value| match item {
            Value::List(items) => items.iter().map(Value::number).collect(),
            _ => panic!("expected a list of lists for {name}"),
        };
        items.iter().map(inner).collect()
    }

    fn encoding(&self, name: &str) -> Box<Encoding> {
        match self.get(name) {
            Some(Value::Encoding(encoding)) => encoding.clone(),
            _ => panic!("expected an encoding for {name}"),
        }
    }

    fn cga_layout(&self, rank: usize) -> Result<CgaLayout, EncodingError> {
        CgaLayout::from_bases(rank, self.lists("CGALayout"))
    }

    fn rank_of_bases(&self) -> usize {
        self.0
            .iter()
            .find_map(|(name, _)| self.lists(name).first().map(Vec::len))
            .unwrap_or(1)
    }
}

impl Value {
    fn number(&self) -> u32 {
        match self {
            Value::Number(number) => *number,
            _ => panic!("expected a number"),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) {
        assert!(
            self.skip(token),
            "expected `{token}` before `{}`",
            self.rest
        );
    }

    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn value(&mut self) -> Result<Value, EncodingError> {
        if self.skip("[") {
            let mut items = Vec::new();
            while !self.skip("]") {
                items.push(self.value()?);
                self.skip(",");
            }
            return Ok(Value::List(items));
        }
        if self.rest.trim_start().starts_with('#') {
            return Ok(Value::Encoding(Box::new(self.encoding()?)));
        }
        Ok(match self.word().as_str() {
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            number => Value::Number(number.parse().expect(number)),
        })
    }

    fn fields(&mut self, end: &str) -> Result<Fields, EncodingError> {
        let mut fields = Vec::new();
        while !self.skip(end) {
            let name = self.word();
            self.expect("=");
            fields.push((name, self.value()?));
            self.skip(",");
        }
        Ok(Fields(fields))
    }

    fn encoding(&mut self) -> Result<Encoding, EncodingError> {
        self.expect("#");
        let name = self.word();
        self.expect("<");
        if name.starts_with("ttng.") {
            let fields = self.fields(">")?;
            return Ok(tensor_memory(&name, &fields));
        }
        let mut pads = Vec::new();
        if self.skip("[") {
            while !self.skip("]") {
                let interval = self.word().parse().expect("interval");
                self.expect(":+");
                pads.push((interval, self.word().parse().expect("padding")));
                self.skip(",");
            }
        }
        self.expect("{");
        let mut fields = self.fields("}")?;
        if self.skip(",") {
            fields.0.extend(self.fields(">")?.0);
        } else {
            self.expect(">");
        }
        build(&name, &fields, pads)
    }
}

fn tensor_memory(name: &str, fields: &Fields) -> Encoding {
    let cta_split_m = fields.number("CTASplitM", 1);
    let cta_split_n = fields.number("CTASplitN", 1);
    if name == "ttng.tensor_memory_scales_encoding" {
        return Encoding::TensorMemoryScales(TensorMemoryScales {
            cta_split_m,
            cta_split_n,
        });
    }
    Encoding::TensorMemory(TensorMemory {
        block_m: fields.number("blockM", 0),
        block_n: fields.number("blockN", 0),
        col_stride: fields.number("colStride", 0),
        cta_split_m,
        cta_split_n,
        two_ctas: fields.flag("twoCTAs"),
    })
}

fn build(name: &str, fields: &Fields, pads: Vec<(u32, u32)>) -> Result<Encoding, EncodingError> {
    let list = |name: &str| fields.list(name).unwrap_or_default();
    let warps = list("warpsPerCTA");
    let tiles = || fields.list("tilesPerWarp").unwrap_or(vec![1; warps.len()]);
    let order = list("order");
    Ok(match name {
        "ttg.blocked" => Encoding::Blocked(Blocked {
            size_per_thread: list("sizePerThread"),
            threads_per_warp: list("threadsPerWarp"),
            warps_per_cta: warps,
            cga_layout: fields.cga_layout(order.len())?,
            order,
        }),
        "ttg.slice" => Encoding::Slice(Slice {
            dim: fields.number("dim", 0),
            parent: fields.encoding("parent"),
        }),
        "ttg.linear" => Encoding::Linear(Linear::from_bases(
            fields.rank_of_bases(),
            &fields.lists("register"),
            &fields.lists("lane"),
            &fields.lists("warp"),
            &fields.lists("block"),
        )?),
        "ttg.nvidia_mma" => Encoding::NvidiaMma(NvidiaMma {
            version_major: fields.number("versionMajor", 0),
            version_minor: fields.number("versionMinor", 0),
            cga_layout: fields.cga_layout(warps.len())?,
            warps_per_cta: warps,
            instr_shape: list("instrShape"),
        }),
        "ttg.amd_mfma" => Encoding::AmdMfma(AmdMfma {
            version: fields.number("version", 0),
            tiles_per_warp: tiles(),
            cga_layout: fields.cga_layout(warps.len())?,
            warps_per_cta: warps,
            instr_shape: list("instrShape"),
            is_transposed: fields.flag("isTransposed"),
            element_bit_width: fields.number("elementBitWidth", 32),
        }),
        "ttg.amd_wmma" => Encoding::AmdWmma(AmdWmma {
            version: fields.number("version", 0),
            is_transposed: fields.flag("isTranspose"),
            tiles_per_warp: tiles(),
            cga_layout: fields.cga_layout(warps.len())?,
            warps_per_cta: warps,
            instr_shape: fields.list("instrShape").unwrap_or(vec![16; 3]),
        }),
        "ttg.dot_op" => Encoding::DotOperand(DotOperand {
            op_idx: fields.number("opIdx", 0),
            parent: fields.encoding("parent"),
            k_width: fields.number("kWidth", 0),
        }),
        "ttg.swizzled_shared" => Encoding::SwizzledShared(SwizzledShared {
            vec: fields.number("vec", 0),
            per_phase: fields.number("perPhase", 0),
            max_phase: fields.number("maxPhase", 0),
            cga_layout: fields.cga_layout(order.len())?,
            order,
        }),
        "ttg.amd_rotating_shared" => Encoding::AmdRotatingShared(AmdRotatingShared {
            vec: fields.number("vec", 0),
            per_phase: fields.number("perPhase", 0),
            max_phase: fields.number("maxPhase", 0),
            cga_layout: fields.cga_layout(order.len())?,
            order,
        }),
        "ttg.nvmma_shared" => Encoding::NvmmaShared(NvmmaShared {
            swizzling_byte_width: fields.number("swizzlingByteWidth", 0),
            transposed: fields.flag("transposed"),
            element_bit_width: fields.number("elementBitWidth", 0),
            fp4_padded: fields.flag("fp4Padded"),
            cga_layout: fields.cga_layout(match fields.lists("CGALayout").first() {
                Some(basis) => basis.len(),
                None => fields.number("rank", 2) as usize,
            })?,
        }),
        "ttg.shared_linear" => Encoding::SharedLinear(SharedLinear::from_bases(
            fields.rank_of_bases(),
            &fields.lists("offset"),
            &fields.lists("block"),
            fields.number("alignment", 0),
        )?),
        "ttg.padded_shared" if !order.is_empty() => {
            let shape: Vec<u64> = list("shape").into_iter().map(u64::from).collect();
            Encoding::PaddedShared(PaddedShared::identity(pads, &order, &shape)?)
        }
        "ttg.padded_shared" => Encoding::PaddedShared(PaddedShared::from_bases(
            pads,
            fields.rank_of_bases(),
            &fields.lists("offset"),
            &fields.lists("block"),
        )?),
        _ => panic!("unknown encoding {name}"),
    })
}

/// An encoding in IR syntax.
///
/// # Panics
/// On text that is not of the tables' form; they hold nothing else.
pub fn parse(text: &str) -> Result<Encoding, EncodingError> {
    Reader { rest: text }.encoding()
}
