//! The values of a kernel's parameters on the command line: numbers, arrays and tensors in files, by name or in order;
//! and what a run leaves in those that are files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use llopt::Parameter;
use llopt::sim::reference::Bounds;
use llopt::sim::{Argument, Launch};

use crate::npy::{self, Array};
use crate::output::Output;
use crate::tensor_argument;

/// A buffer argument: its position, the name of its result, its file, its contents.
pub struct Buffer {
    pub index: usize,
    pub name: PathBuf,
    pub path: PathBuf,
    pub array: Array,
}

/// The arguments of a launch, and those of them that are files.
pub fn read_arguments(texts: &[String]) -> Result<(Vec<Argument>, Vec<Buffer>)> {
    let mut values = Vec::new();
    let mut buffers = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let (value, file) = read_argument(text)?;
        values.push(value);
        buffers.extend(file.map(|(path, array)| Buffer {
            index,
            name: path.file_name().unwrap_or_default().into(),
            path,
            array,
        }));
    }
    Ok((values, buffers))
}

/// One argument, and its file if it is one.
fn read_argument(text: &str) -> Result<(Argument, Option<(PathBuf, Array)>)> {
    Ok(if text.starts_with(tensor_argument::PREFIX) {
        let (path, array, tensor) = tensor_argument::read(text)?;
        (Argument::Descriptor(tensor), Some((path, array)))
    } else if text.ends_with(".npy") {
        let path = PathBuf::from(text);
        let array = npy::read(&path)?;
        (Argument::Buffer(array.data.clone()), Some((path, array)))
    } else {
        (scalar(text)?, None)
    })
}

/// The name of a parameter on the command line.
pub fn name_of(parameter: &Parameter, index: usize) -> String {
    let name = parameter.name.clone();
    name.unwrap_or_else(|| format!("arg{index}"))
}

/// As [`read_arguments`], with the names of parameters.
pub fn read_named(
    texts: &[String],
    parameters: &[Parameter],
) -> Result<(Vec<Argument>, Vec<Buffer>)> {
    let names: Vec<String> = (0..).zip(parameters).map(|(i, p)| name_of(p, i)).collect();
    let mut values = vec![None; parameters.len()];
    let mut buffers = Vec::new();
    for text in texts {
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("the argument '{text}' is not of the form NAME=VALUE"))?;
        let index = names.iter().position(|known| known == name);
        let index = index.with_context(|| {
            format!(
                "the kernel has no parameter '{name}'; it has {}",
                names.join(", ")
            )
        })?;
        ensure!(
            values[index].is_none(),
            "the parameter '{name}' is given twice"
        );
        let (value, file) = read_argument(value.strip_prefix('@').unwrap_or(value))?;
        values[index] = Some(value);
        buffers.extend(file.map(|(path, array)| Buffer {
            index,
            name: format!("{name}.npy").into(),
            path,
            array,
        }));
    }
    let missing: Vec<&str> = (names.iter().zip(&values))
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(missing.is_empty(), "no argument for {}", missing.join(", "));
    Ok((values.into_iter().flatten().collect(), buffers))
}

/// Checks the arguments against the parameters of a kernel in tile IR, which has the types that its pointers point
/// to.
///
/// # Errors
/// The number of arguments is wrong, or an array has elements of another type.
pub fn check_arguments(
    parameters: &[Parameter],
    values: &[Argument],
    arrays: &[Buffer],
) -> Result<()> {
    let (takes, given) = (parameters.len(), values.len());
    ensure!(
        // The two scratch pointers may be given, too.
        given == takes || given == takes + 2,
        "the kernel takes {takes} arguments, {given} given"
    );
    for buffer in arrays {
        let Some(parameter) = parameters.get(buffer.index) else {
            continue;
        };
        ensure!(
            parameter.pointee.is_none_or(|to| buffer.array.holds(to)),
            "argument {} is '{}' with elements of type '{}', the kernel expects {}",
            buffer.index,
            buffer.path.display(),
            buffer.array.descr().unwrap_or_default(),
            parameter.ty
        );
    }
    Ok(())
}

/// Writes the final contents of the buffers to a folder.
pub fn write_buffers(directory: &Path, launch: &Launch, buffers: &[Buffer]) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create '{}'", directory.display()))?;
    for buffer in buffers {
        if let Argument::Buffer(data) = &launch.arguments[buffer.index] {
            let file = directory.join(&buffer.name);
            Output::File(file).write(&buffer.array.with_data(data))?;
        }
    }
    Ok(())
}

/// Writes the bounds of the elements of each buffer to a folder, as an array of doubles.
pub fn write_bounds(directory: &Path, bounds: &Bounds, buffers: &[Buffer]) -> Result<()> {
    for buffer in buffers {
        let size = buffer.array.element_size().with_context(|| {
            format!(
                "'{}' has no elements of one size to bound",
                buffer.path.display()
            )
        })?;
        let mut numbers = vec![0.0f64; buffer.array.data.len() / size];
        for (offset, bound) in bounds.buffers.get(&buffer.index).into_iter().flatten() {
            if let Some(number) = usize::try_from(*offset)
                .ok()
                .and_then(|at| numbers.get_mut(at / size))
            {
                *number = bound.max(*number);
            }
        }
        if let Some(stem) = buffer.name.file_stem() {
            let file = format!("{}.bound.npy", stem.to_string_lossy());
            Output::File(directory.join(file)).write(&npy::doubles(&numbers))?;
        }
    }
    Ok(())
}

fn scalar(text: &str) -> Result<Argument> {
    if text == "null" {
        return Ok(Argument::Null);
    }
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Argument::Int(value));
    }
    match text.parse::<f64>() {
        Ok(value) => Ok(Argument::Real(value)),
        Err(_) => bail!("the argument '{text}' is neither a .npy file nor a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read() {
        assert_eq!(scalar("-7").unwrap(), Argument::Int(-7));
        assert_eq!(scalar("1e-5").unwrap(), Argument::Real(1e-5));
        assert_eq!(scalar("null").unwrap(), Argument::Null);
        assert!(scalar("x.npz").is_err());
    }
}
