//! `llopt layout` as a person calls it: what it prints, where errors go, the exit status.

use std::process::{Command, Output};

const BLOCKED: &str = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>";
const MMA: &str = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>";

fn llopt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_llopt"))
        .arg("layout")
        .args(arguments)
        .output()
        .expect("llopt starts")
}

/// What a successful call prints.
fn printed(arguments: &[&str]) -> String {
    let output = llopt(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert!(errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// What a call complains of, which must be all that it does.
fn complaint(arguments: &[&str]) -> String {
    let output = llopt(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn json_has_inputs_in_order_and_an_entry_per_dimension() {
    assert_eq!(
        printed(&["show", BLOCKED, "--shape", "16x16", "--json"]),
        concat!(
            r#"{"in":[{"name":"register","bases":[[0,1],[8,0]]},"#,
            r#"{"name":"lane","bases":[[0,2],[0,4],[0,8],[1,0],[2,0]]},"#,
            r#"{"name":"warp","bases":[[4,0]]},{"name":"block","bases":[]}],"#,
            r#""out":[{"name":"dim0","size":16},{"name":"dim1","size":16}]}"#,
            "\n"
        )
    );
}

#[test]
fn what_json_says_can_be_shown_again() {
    let json = printed(&["show", MMA, "--shape", "32x8", "--json"]);
    assert_eq!(
        printed(&["show", &json, "--view", "tensor"]),
        printed(&["show", MMA, "--shape", "32x8", "--view", "tensor"])
    );
}

#[test]
fn tables_go_both_ways() {
    let tensor = printed(&["show", MMA, "--shape", "32x8", "--view", "tensor"]);
    // Row 9, column 2: register 2 of lane 5 of the first warp.
    let row: Vec<&str> = tensor
        .lines()
        .nth(2 + 9)
        .expect("row 9")
        .split_whitespace()
        .collect();
    assert_eq!(row[..4], ["9", "w0t4:2", "w0t4:3", "w0t5:2"]);
    let hardware = printed(&["show", MMA, "--shape", "32x8", "--view", "hardware"]);
    let lane = hardware
        .lines()
        .find(|line| line.trim_start().starts_with("w0t5 "));
    let lane: Vec<&str> = lane.expect("lane 5").split_whitespace().collect();
    assert_eq!(lane, ["w0t5", "1,2", "1,3", "9,2", "9,3"]);
}

#[test]
fn cute_layouts_are_layouts_of_a_memory() {
    assert_eq!(
        printed(&["show", "Sw<1,0,1> o (2,2):(2,1)", "--view", "bases,tensor"]),
        "offset     4  (0, 1) (1, 1)\nblock      1  -\n-> dim0 2, dim1 2\n\n\
         where each element lies (offset in elements, +further places)\n   0  1\n0  0  1\n1  3  2\n"
    );
}

#[test]
fn pictures_are_svg() {
    let picture = printed(&["show", BLOCKED, "--shape", "16x16", "--svg", "-"]);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("w1t31:3"));
}

#[test]
fn errors_name_the_dimension_and_the_basis_vector() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["show", BLOCKED],
            "an encoding needs a shape, such as --shape 128x64",
        ),
        (
            &["show", BLOCKED, "--shape", "16"],
            "the shape has rank 1; the encoding has rank 2",
        ),
        (
            &["show", BLOCKED, "--shape", "16x48"],
            "dim1 has size 48; sizes must be powers of two below 2^32",
        ),
        (
            &["show", "(8,16):(8,1)"],
            "not linear over F2: basis vector 3 of dim1 moves by 8, which has bits in common with \
             basis vector 0 of dim0, 8",
        ),
        (
            &[
                "show",
                r#"{"in":[{"name":"lane","bases":[[1],[4]]}],"out":[{"name":"dim0","size":4}]}"#,
            ],
            "basis vector 1 of `lane` maps to 4 in `dim0`, whose size is 4",
        ),
        (
            &["show", BLOCKED, "--shape", "16xlots"],
            "`lots` is no size; a shape is written like 128x64",
        ),
        (
            &["show", "hello"],
            "`hello` is neither an encoding (#…), nor JSON ({…}), nor a CuTe",
        ),
        (&["show", "@/nonexistent"], "cannot read '/nonexistent'"),
    ];
    for (arguments, expected) in cases {
        let found = complaint(arguments);
        assert!(
            found.starts_with("llopt: error: "),
            "{arguments:?}: {found}"
        );
        assert!(found.contains(expected), "{arguments:?}: {found}");
    }
}
