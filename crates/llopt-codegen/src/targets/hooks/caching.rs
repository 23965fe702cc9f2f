//! How an access treats the caches.

/// The cache levels of an access (`tt.load`'s cache modifiers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// The hardware's default.
    #[default]
    Default,
    /// At all levels.
    All,
    /// At the global level (L2), not in L1.
    Global,
    /// Written back at all levels.
    WriteBack,
    /// Streaming: likely used once.
    Streaming,
    /// Written through to memory.
    WriteThrough,
    /// Never: fetched again each time.
    Volatile,
}

/// Which data a cache should drop first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// No hint.
    #[default]
    Normal,
    /// Drop this first.
    First,
    /// Keep this longest.
    Last,
}

/// How an access treats the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// The cache levels.
    pub cache: Cache,
    /// The priority of the data in the caches.
    pub eviction: Eviction,
    /// Whether the access must happen exactly as written.
    pub volatile: bool,
}

impl Caching {
    /// Whether there are no hints.
    #[must_use]
    pub fn is_default(self) -> bool {
        self == Self::default()
    }
}
