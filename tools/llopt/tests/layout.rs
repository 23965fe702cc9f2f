//! `llopt layout` as a user calls it: its output, its errors, the exit status.

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

/// The output of a successful call.
fn printed(arguments: &[&str]) -> String {
    let output = llopt(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert!(errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The error of a failing call, which must be its only output.
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
fn plans_are_counted_for_each_warp_and_sorted() {
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>");
    let ends = ["--from", BLOCKED, "--to", &operand, "--shape", "32x32"];
    let rest = ["--elem-bits", "16", "--target", "cuda:90"];
    let arguments = [&["convert"][..], &ends, &rest].concat();
    assert!(printed(&arguments).starts_with("1. "));
    let json = printed(&[&arguments[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let plans = json["plans"].as_array().expect("plans");
    let keys: Vec<&String> = plans[0].as_object().expect("a plan").keys().collect();
    assert_eq!(
        keys,
        [
            "barriers",
            "cost",
            "kind",
            "load_bound",
            "load_instruction",
            "load_wavefronts",
            "permutes",
            "selects",
            "shared_bytes",
            "shared_loads",
            "shared_stores",
            "shuffles",
            "store_bound",
            "store_instruction",
            "store_wavefronts",
            "swaps"
        ]
    );
    let costs: Vec<f64> = plans
        .iter()
        .filter_map(|plan| plan["cost"].as_f64())
        .collect();
    assert!(costs.is_sorted() && costs.len() == plans.len());
    let same = [
        "convert", "--from", BLOCKED, "--to", BLOCKED, "--shape", "32x32", "--json",
    ];
    assert!(printed(&[&same[..], &rest].concat()).starts_with(r#"{"plans":[{"kind":"none","#));
}

#[test]
fn swizzles_come_with_a_certificate() {
    let on = [
        "--shape",
        "32x8",
        "--elem-bits",
        "32",
        "--target",
        "cuda:80",
        "--json",
    ];
    let text = printed(&[&["swizzle", "--from", BLOCKED, "--to", MMA][..], &on].concat());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for side in ["store", "load"] {
        assert_eq!(json[side]["wavefronts"], json[side]["bound"], "{text}");
    }
    // The memory's layout can be used as input, and has no more conflicts than reported.
    let memory = json["memory"].to_string();
    let counted = ["conflicts", "--registers", MMA, "--memory", &memory];
    let counted = printed(&[&counted[..], &on].concat());
    let counted: serde_json::Value = serde_json::from_str(&counted).expect("JSON");
    assert_eq!(counted["load"], json["load"]);
}

#[test]
fn gaps_are_found_for_an_order_that_has_to_stay() {
    let rows = r#"{"in":[{"name":"register","bases":[[1,0],[2,0],[4,0],[8,0],[16,0]]},{"name":"lane","bases":[[0,1],[0,2],[0,4],[0,8],[0,16]]}],"out":[{"name":"dim0","size":32},{"name":"dim1","size":32}]}"#;
    let columns = rows
        .replace("register", "rows")
        .replace("lane", "register")
        .replace("rows", "lane");
    let ends = [
        "swizzle",
        "--from",
        rows,
        "--to",
        &columns,
        "--pad",
        "(32,32):(32,1)",
    ];
    let on = ["--elem-bits", "32", "--target", "cuda:90"];
    let text = printed(&[&ends[..], &on].concat());
    assert!(
        text.starts_with("a gap of 4 elements after every 32, 4592 bytes\n"),
        "{text}"
    );
    let json = printed(&[&ends[..], &on, &["--json"]].concat());
    assert!(
        json.starts_with(r#"{"interval":32,"gap":4,"store":{"#),
        "{json}"
    );
}

#[test]
fn conflicts_of_plain_swizzled_and_padded_memory() {
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>");
    let cases = [
        (
            "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
            256,
        ),
        (
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
            32,
        ),
        (
            "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>",
            32,
        ),
    ];
    for (memory, wavefronts) in cases {
        let json = printed(&[
            "conflicts",
            "--registers",
            &operand,
            "--memory",
            memory,
            "--shape",
            "64x64",
            "--elem-bits",
            "16",
            "--target",
            "cuda:90",
            "--json",
        ]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["load"]["wavefronts"], wavefronts, "{memory}");
        assert_eq!(json["load"]["bound"], 32, "{memory}");
    }
}

#[test]
fn types_bring_their_shape_and_modules_their_aliases() {
    let of_encoding = printed(&["show", MMA, "--shape", "32x8", "--json"]);
    let of_type = format!("tensor<32x8xf32, {MMA}>");
    assert_eq!(printed(&["show", &of_type, "--json"]), of_encoding);

    let folder = tempfile::tempdir().expect("a folder");
    let module = folder.path().join("kernel.ttgir");
    let text = format!("#mma = {MMA}\n#loc = loc(unknown)\nmodule {{\n}}\n");
    std::fs::write(&module, text).expect("a file");
    let module = module.to_str().expect("a path");
    for layout in ["#mma", "tensor<32x8xf32, #mma>"] {
        let arguments = [
            "show",
            layout,
            "--shape",
            "32x8",
            "--aliases",
            module,
            "--json",
        ];
        assert_eq!(printed(&arguments), of_encoding);
    }
    let shared = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let buffers = format!("!ttg.memdesc<2x4x4xf32, {shared}, #ttg.shared_memory, mutable>");
    let one = printed(&["show", shared, "--shape", "4x4"]);
    assert_eq!(printed(&["show", &buffers]), one);
    let wrong = complaint(&["show", &of_type, "--shape", "32x16"]);
    assert!(
        wrong.contains("dim1 of the layout has size 8; the shape says 16"),
        "{wrong}"
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
            "`hello` is neither an encoding (#…) or a type with one, nor JSON ({…}), nor a CuTe",
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
