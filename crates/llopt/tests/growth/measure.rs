//! The growth of the time of each phase with the length of a kernel.

use std::collections::BTreeMap;
use std::time::Duration;

use llopt::{ArtifactKind, Compiler, Error, Options, Source, Target};

/// Phases that are LLVM's, not llopt's, or that do not depend on the kernel.
const NOT_OURS: [&str; 5] = [
    "context",
    "target machine",
    "link libraries",
    "optimise",
    "emit",
];

/// The least processor time of each phase of llopt, in the order of the first run.
pub struct Phases(Vec<(&'static str, Duration)>);

impl Phases {
    /// Compiles a kernel to LLVM IR `runs` times; the least time counts, since other work on the machine only adds to
    /// it.
    pub fn of(target: Target, kernel: &str, runs: usize) -> Result<Self, Error> {
        let mut options = Options::new(target);
        options.optimize = false;
        let compiler = Compiler::new(options);
        let source = Source::new("kernel.mlir", kernel);
        let mut least: Vec<(&'static str, Duration)> = Vec::new();
        for _ in 0..runs {
            let compilation = compiler.compile(&source, ArtifactKind::Llvm)?;
            // A phase may run twice.
            let mut times: BTreeMap<&str, Duration> = BTreeMap::new();
            for (name, time) in compilation.timings.processor() {
                *times.entry(name).or_default() += time;
                if !NOT_OURS.contains(&name) && least.iter().all(|&(known, _)| known != name) {
                    least.push((name, Duration::MAX));
                }
            }
            for (name, time) in &mut least {
                *time = (*time).min(times.get(name).copied().unwrap_or_default());
            }
        }
        Ok(Self(least))
    }

    /// Each phase with its seconds.
    pub fn seconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0
            .iter()
            .map(|&(name, time)| (name, time.as_secs_f64()))
    }
}

/// The exponent `e` for which `a * size^e` fits the times best, by least squares of the logarithms.
///
/// Times below `floor` depend more on the fixed costs of a compilation than on growth, and are left out; with fewer
/// than three others there is no exponent.
pub fn exponent(times: &[(usize, f64)], floor: f64) -> Option<f64> {
    let points: Vec<(f64, f64)> = times
        .iter()
        .filter(|&&(_, time)| time >= floor)
        .map(|&(size, time)| ((size as f64).ln(), time.ln()))
        .collect();
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|&(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|&(_, y)| y).sum::<f64>() / count;
    let both: f64 = points
        .iter()
        .map(|&(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let square: f64 = points.iter().map(|&(x, _)| (x - mean_x).powi(2)).sum();
    Some(both / square)
}
