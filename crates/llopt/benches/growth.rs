//! The growth of the time of each phase of a compilation with the length of the kernel.
//!
//! Compiles kernels of growing length ([`kernels`]) to LLVM IR that is not optimised, and prints a table for each
//! family: for each phase of llopt itself the seconds of processor time at each length, and the exponent of the fit.
//! Exit status 1 if an exponent is above the limit.
//!
//! ```text
//! cargo bench -p llopt --bench growth -- [--family TEXT] [--target T] [--limit 1.2] [--write FOLDER]
//! ```
//!
//! `--family` selects those whose names contain the text; `--write` writes the kernels to a folder instead, for
//! `llopt compile --time` and for profilers. A family ends early when one kernel takes more than `--seconds`.

#[path = "../tests/growth/kernels.rs"]
mod kernels;
#[path = "../tests/growth/measure.rs"]
mod measure;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use kernels::{FAMILIES, Family};
use llopt::Target;
use measure::{Phases, exponent};

/// Seconds; a shorter time is not part of the fit.
const FLOOR: f64 = 0.5e-3;

struct Choices {
    family: String,
    target: String,
    limit: f64,
    seconds: f64,
    runs: usize,
    write: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let choices = choices()?;
    let chosen = FAMILIES
        .iter()
        .filter(|family| family.name.contains(&choices.family));
    let mut above = Vec::new();
    for family in chosen {
        match &choices.write {
            Some(folder) => write(family, folder)?,
            None => above.extend(measure(family, &choices)?),
        }
    }
    for line in &above {
        println!("above {}: {line}", choices.limit);
    }
    Ok(if above.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn choices() -> anyhow::Result<Choices> {
    let mut choices = Choices {
        family: String::new(),
        target: "cuda:90".into(),
        limit: 1.2,
        seconds: 20.0,
        runs: 3,
        write: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--bench" {
            // `cargo bench` passes this to every benchmark.
            continue;
        }
        let value = arguments
            .next()
            .with_context(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--family" => choices.family = value,
            "--target" => choices.target = value,
            "--limit" => choices.limit = value.parse()?,
            "--seconds" => choices.seconds = value.parse()?,
            "--runs" => choices.runs = value.parse()?,
            "--write" => choices.write = Some(value.into()),
            _ => bail!("unknown option {argument}"),
        }
    }
    Ok(choices)
}

/// The lengths of a family: from the smallest to the largest, doubling.
fn sizes(family: &Family) -> impl Iterator<Item = usize> {
    let [smallest, largest] = family.sizes;
    std::iter::successors(Some(smallest), |size| Some(size * 2))
        .take_while(move |&size| size <= largest)
}

fn write(family: &Family, folder: &std::path::Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for size in sizes(family) {
        let name = format!("{}-{size}.mlir", family.name.replace(' ', "-"));
        std::fs::write(folder.join(name), (family.kernel)(size))?;
    }
    Ok(())
}

/// Prints the table of a family; returns the phases that grow faster than the limit.
fn measure(family: &Family, choices: &Choices) -> anyhow::Result<Vec<String>> {
    let target = Target::parse(&choices.target)?;
    let mut names: Vec<&str> = Vec::new();
    let mut measured: Vec<(usize, Vec<(&str, f64)>)> = Vec::new();
    for size in sizes(family) {
        let kernel = (family.kernel)(size);
        let first = Phases::of(target, &kernel, 1)?;
        let total: f64 = first.seconds().map(|(_, seconds)| seconds).sum();
        // One run measures a long time well.
        let phases = if total > 1.0 {
            first
        } else {
            Phases::of(target, &kernel, choices.runs)?
        };
        for (name, _) in phases.seconds() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        measured.push((size, phases.seconds().collect()));
        if total > choices.seconds {
            break;
        }
    }

    print!("\n{:<24}", family.name);
    for (size, _) in &measured {
        print!("{size:>10}");
    }
    println!("{:>10}", "exponent");
    let mut above = Vec::new();
    for name in names {
        let times: Vec<(usize, f64)> = measured
            .iter()
            .filter_map(|(size, phases)| {
                let &(_, seconds) = phases.iter().find(|&&(phase, _)| phase == name)?;
                Some((*size, seconds))
            })
            .collect();
        print!("{name:<24}");
        for (_, seconds) in &times {
            print!("{seconds:>10.4}");
        }
        match exponent(&times, FLOOR) {
            Some(exponent) => {
                println!("{exponent:>10.2}");
                if exponent > choices.limit {
                    above.push(format!("{}, {name}: {exponent:.2}", family.name));
                }
            }
            None => println!("{:>10}", "-"),
        }
    }
    Ok(above)
}
