//! The findings of a kernel without one of the operations by which its partitions wait for one another.

use std::fs;
use std::path::Path;

/// Removes each operation by which partitions wait for one another from a kernel of a folder, and lets each wait for
/// products leave one more outstanding, one change at a time. Returns the number of changes that are detected, and
/// the others.
pub fn missed(
    folder: &Path,
    kernel: &str,
    runs_well: impl Fn(&str) -> bool,
) -> (usize, Vec<String>) {
    const WAITS: [&str; 3] = [
        "ttng.wait_barrier",
        "ttng.arrive_barrier",
        "ttng.barrier_expect",
    ];
    let whole = fs::read_to_string(folder.join(kernel)).expect("the kernel is there");
    assert!(runs_well(kernel), "{kernel} as it is");
    let (mut missed, mut needless) = (0, Vec::new());
    for (number, line) in whole.lines().enumerate() {
        let other = if WAITS.iter().any(|name| line.contains(name)) {
            String::new()
        } else if line.contains("pendings = 1") {
            line.replace("pendings = 1", "pendings = 2")
        } else if line.contains("warp_group_dot_wait") {
            line.replace("pendings = 0", "pendings = 1")
        } else {
            continue;
        };
        let lines = whole.lines().enumerate();
        let lines: Vec<&str> = lines
            .map(|(at, line)| if at == number { other.as_str() } else { line })
            .collect();
        fs::write(folder.join("less.ttgir"), lines.join("\n")).expect("it is written");
        match runs_well("less.ttgir") {
            true => needless.push(line.trim().to_owned()),
            false => missed += 1,
        }
    }
    (missed, needless)
}
