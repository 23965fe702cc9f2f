//! The kinds of artefacts: the forms that a kernel passes through on its way to the GPU.

use std::fmt;
use std::str::FromStr;

use llopt_target::{Target, Vendor};

/// A form of a kernel, in the order in which compilation reaches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactKind {
    /// Tile IR without layouts (`tt` dialect).
    Ttir,
    /// Tile IR with a layout on every tensor (`tt`, `ttg` and the vendor's dialect).
    Ttgir,
    /// LLVM IR after optimisation.
    Llvm,
    /// NVIDIA's virtual assembly.
    Ptx,
    /// A code object for NVIDIA GPUs, assembled by `ptxas`.
    Cubin,
    /// Assembly for AMD GPUs.
    Amdgcn,
    /// A code object for AMD GPUs, linked by `ld.lld`.
    Hsaco,
}

impl ArtifactKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Ttir,
        Self::Ttgir,
        Self::Llvm,
        Self::Ptx,
        Self::Cubin,
        Self::Amdgcn,
        Self::Hsaco,
    ];

    /// The name used on the command line, and the usual file name extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llvm => "llvm",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::Amdgcn => "amdgcn",
            Self::Hsaco => "hsaco",
        }
    }

    /// The assembly of a target, which is the default artefact.
    pub fn assembly_of(target: Target) -> Self {
        match target.vendor() {
            Vendor::Nvptx => Self::Ptx,
            Vendor::Amdgpu => Self::Amdgcn,
        }
    }

    /// Whether the artefact is text; the others are object files.
    pub const fn is_text(self) -> bool {
        !matches!(self, Self::Cubin | Self::Hsaco)
    }

    /// Whether the kind exists for this target.
    pub fn exists_for(self, target: Target) -> bool {
        match self {
            Self::Ttir | Self::Ttgir | Self::Llvm => true,
            Self::Ptx | Self::Cubin => target.vendor() == Vendor::Nvptx,
            Self::Amdgcn | Self::Hsaco => target.vendor() == Vendor::Amdgpu,
        }
    }
}

impl fmt::Display for ArtifactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of an artefact kind that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown artefact kind '{0}'; known kinds: ttir, ttgir, llvm, ptx, cubin, amdgcn, hsaco")]
pub struct UnknownKind(pub String);

impl FromStr for ArtifactKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// The outcome of a compilation.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact {
    kind: ArtifactKind,
    bytes: Vec<u8>,
}

impl Artifact {
    /// An artefact of a kind with its contents: UTF-8 for the kinds that are text.
    pub(crate) fn new(kind: ArtifactKind, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            bytes: bytes.into(),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> ArtifactKind {
        self.kind
    }

    /// Its contents, as they are written to a file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its contents as text; `None` for object files.
    pub fn text(&self) -> Option<&str> {
        if self.kind.is_text() {
            std::str::from_utf8(&self.bytes).ok()
        } else {
            None
        }
    }

    /// Its contents, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Artifact({}, {} bytes)", self.kind, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for kind in ArtifactKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert_eq!(
            "elf".parse::<ArtifactKind>().unwrap_err().to_string(),
            "unknown artefact kind 'elf'; known kinds: ttir, ttgir, llvm, ptx, cubin, amdgcn, hsaco"
        );
    }

    #[test]
    fn each_vendor_has_its_own_assembly_and_object() {
        let [nvidia, amd] = ["cuda:90", "hip:gfx942"].map(|name| Target::parse(name).unwrap());
        assert_eq!(ArtifactKind::assembly_of(nvidia), ArtifactKind::Ptx);
        assert_eq!(ArtifactKind::assembly_of(amd), ArtifactKind::Amdgcn);
        assert!(!ArtifactKind::Hsaco.exists_for(nvidia));
        assert!(!ArtifactKind::Cubin.exists_for(amd));
    }
}
