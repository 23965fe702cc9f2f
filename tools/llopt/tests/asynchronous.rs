//! Asynchronous copies and exchanges: the machine, with its sanitizer, compared with the reference interpreter,
//! before and after optimisation.

mod agreement;

use std::fs;
use std::path::{Path, PathBuf};

use agreement::{agree, agree_in_clusters, npy};

/// Whole numbers in half precision: 1024 to 2047.
fn halves(shape: &[usize]) -> Vec<u8> {
    npy("<f2", shape, |i| {
        (0x6400u16 | (i * 37 % 1024) as u16).to_le_bytes().to_vec()
    })
}

fn words(shape: &[usize]) -> Vec<u8> {
    npy("<i4", shape, |i| {
        (i as u32)
            .wrapping_mul(2_654_435_761)
            .to_le_bytes()
            .to_vec()
    })
}

/// Bytes of small singles, which add exactly.
fn singles(shape: &[usize]) -> Vec<u8> {
    npy("<f4", shape, |i| ((i % 251) as f32).to_le_bytes().to_vec())
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

#[test]
fn boxes_of_tensors_that_the_host_describes() {
    let files = [
        ("x.npy", halves(&[150, 120])),
        ("o.npy", halves(&[150, 120])),
    ];
    let arguments = "desc:x.npy,150,120,120,1,desc:o.npy";
    agree(&data("bulk_copy.ttgir"), "cuda:90", "1", arguments, &files);
}

#[test]
fn accesses_through_descriptors_of_the_host_become_copies() {
    let files = [("x.npy", singles(&[70, 96])), ("o.npy", singles(&[70, 96]))];
    let arguments = "desc:x.npy,70,96,96,1,desc:o.npy";
    agree(
        &data("host_descriptor.ttir"),
        "cuda:90",
        "3",
        arguments,
        &files,
    );
}

#[test]
fn blocks_of_a_cluster_divide_what_descriptors_move() {
    let singles = [("x.npy", singles(&[70, 96])), ("o.npy", singles(&[70, 96]))];
    let of_host = "desc:x.npy,70,96,96,1,desc:o.npy";
    let products = [
        ("x.npy", digits(&[64, 320])),
        ("y.npy", digits(&[320, 64])),
        ("o.npy", npy("<f4", &[64, 64], |_| vec![0; 4])),
    ];
    for blocks in [2, 4] {
        for (kernel, arguments) in [
            ("host_descriptor.ttir", of_host),
            ("descriptor.ttir", "x.npy,o.npy,70,96"),
        ] {
            let kernel = data(kernel);
            agree_in_clusters(&kernel, "cuda:90", "3", arguments, &singles, Some(blocks));
        }
        let kernel = data("pipelined_blocks.ttir");
        let arguments = "desc:x.npy,desc:y.npy,desc:o.npy,4";
        agree_in_clusters(&kernel, "cuda:90", "1", arguments, &products, Some(blocks));
    }
}

/// Small whole numbers in half precision, whose products add exactly.
fn digits(shape: &[usize]) -> Vec<u8> {
    npy("<f2", shape, |i| {
        [0u16, 0x3c00, 0x4000, 0xc000, 0x4200][i * 7 % 5]
            .to_le_bytes()
            .to_vec()
    })
}

#[test]
fn blocks_are_copied_iterations_ahead() {
    // None, one, fewer than there are stages, and more than there are buffers.
    for count in 0..6 {
        let files = [
            ("x.npy", digits(&[64, 320])),
            ("y.npy", digits(&[320, 64])),
            ("o.npy", singles(&[64, 64])),
        ];
        let arguments = format!("desc:x.npy,desc:y.npy,desc:o.npy,{count}");
        let kernel = data("pipelined_blocks.ttir");
        agree(&kernel, "cuda:90", "1", &arguments, &files);
    }
}

#[test]
fn descriptors_made_on_the_device() {
    let files = [("x.npy", singles(&[70, 96])), ("o.npy", singles(&[70, 96]))];
    for kernel in ["bulk_reduce.ttgir", "descriptor.ttir"] {
        agree(&data(kernel), "cuda:90", "3", "x.npy,o.npy,70,96", &files);
    }
    for target in [
        "cuda:80",
        "hip:gfx90a",
        "hip:gfx942",
        "hip:gfx950",
        "hip:gfx1100",
        "hip:gfx1200",
    ] {
        agree(
            &data("descriptor.ttir"),
            target,
            "3",
            "x.npy,o.npy,70,96",
            &files,
        );
    }
}

#[test]
fn a_block_that_leaves_as_a_line() {
    let files = [("x.npy", words(&[2, 2, 8, 64])), ("o.npy", words(&[2048]))];
    let kernel = data("bulk_flatten.ttgir");
    agree(&kernel, "cuda:90", "1", "x.npy,o.npy", &files);
}

#[test]
fn a_conversion_between_the_blocks_of_a_cluster() {
    let nothing = npy("<i4", &[8192], |_| vec![0; 4]);
    let files = [("x.npy", words(&[8192])), ("o.npy", nothing)];
    let kernel = data("cluster_conversion.ttgir");
    agree(&kernel, "cuda:90", "2", "x.npy,o.npy", &files);
}

#[test]
fn copies_to_shared_memory_that_are_waited_for() {
    let files = [("x.npy", singles(&[1024])), ("o.npy", singles(&[1024]))];
    for (target, lanes) in [
        ("cuda:80", 32),
        ("cuda:90", 32),
        ("hip:gfx90a", 64),
        ("hip:gfx942", 64),
        ("hip:gfx950", 64),
        ("hip:gfx1100", 32),
    ] {
        for width in [1, 4] {
            let text = fs::read_to_string(data("async_copy.ttgir")).expect("the kernel is there");
            let text = text
                .replace("LANES", &lanes.to_string())
                .replace("WIDTH", &width.to_string())
                .replace("TARGET", target);
            let folder = tempfile::tempdir().expect("a temporary folder");
            let kernel = folder.path().join("async_copy.ttgir");
            fs::write(&kernel, text).expect("the kernel is written");
            agree(&kernel, target, "1", "x.npy,o.npy,1000", &files);
        }
    }
}

#[test]
fn a_loop_with_two_buffers() {
    let files = [("x.npy", singles(&[5 * 1024])), ("o.npy", singles(&[1024]))];
    let pristine = fs::read_to_string(data("double_buffer.ttgir")).expect("the kernel is there");
    for (target, lanes) in [
        ("cuda:80", 32),
        ("hip:gfx90a", 64),
        ("hip:gfx942", 64),
        ("hip:gfx950", 64),
        ("hip:gfx1200", 32),
    ] {
        for (width, wait) in [(1, "%g {num = 1"), (4, "%g {num = 1"), (4, "%g {num = 0")] {
            let text = pristine
                .replace("LANES", &lanes.to_string())
                .replace("WIDTH", &width.to_string())
                .replace("TARGET", target)
                .replace("%g {num = 1", wait);
            let folder = tempfile::tempdir().expect("a temporary folder");
            let kernel = folder.path().join("double_buffer.ttgir");
            fs::write(&kernel, text).expect("the kernel is written");
            agree(&kernel, target, "1", "x.npy,o.npy,4", &files);
        }
    }
}

#[test]
fn copies_through_buffers_to_shared_memory() {
    let files = [("x.npy", singles(&[1024])), ("o.npy", singles(&[1024]))];
    for target in ["hip:gfx90a", "hip:gfx942", "hip:gfx950"] {
        agree(
            &data("buffer_to_local.ttgir"),
            target,
            "1",
            "x.npy,o.npy,1000",
            &files,
        );
    }
}

#[test]
fn copies_into_swizzled_and_padded_buffers() {
    const SWIZZLE: &str =
        "#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    const PADS: &str = "#ttg.padded_shared<[256:+4] {order = [1, 0], shape = [ROWS, COLUMNS]}>";
    let files = [("x.npy", singles(&[2048])), ("o.npy", singles(&[2048]))];
    let pristine = fs::read_to_string(data("copy_order.ttgir")).expect("the kernel is there");
    for target in ["hip:gfx90a", "hip:gfx942", "hip:gfx950"] {
        // The bits of a row are warps, lanes, both; in the last, warps are side by side.
        for (rows, columns, lanes, warps) in [
            (8, 256, "1, 64", "4, 1"),
            (64, 32, "8, 8", "4, 1"),
            (32, 64, "4, 16", "4, 1"),
            (16, 128, "8, 8", "1, 4"),
        ] {
            for shared in [SWIZZLE, PADS] {
                let text = pristine
                    .replace("SHARED", shared)
                    .replace("ROWS", &rows.to_string())
                    .replace("COLUMNS", &columns.to_string())
                    .replace("LANES", lanes)
                    .replace("WARPS", warps)
                    .replace("TARGET", target);
                let folder = tempfile::tempdir().expect("a temporary folder");
                let kernel = folder.path().join("copy_order.ttgir");
                fs::write(&kernel, text).expect("the kernel is written");
                agree(&kernel, target, "1", "x.npy,o.npy,2000", &files);
            }
        }
    }
}

#[test]
fn four_bit_floats_in_bytes() {
    let bytes = npy("|u1", &[1024], |i| vec![(i % 256) as u8]);
    let files = [("x.npy", bytes), ("o.npy", singles(&[4096]))];
    for (target, lanes) in [
        ("cuda:80", 32),
        ("cuda:90", 32),
        ("hip:gfx90a", 64),
        ("hip:gfx950", 64),
        ("hip:gfx1200", 32),
    ] {
        let text = fs::read_to_string(data("fp4.ttgir")).expect("the kernel is there");
        let text = text
            .replace("LANES", &lanes.to_string())
            .replace("ROWS", &(lanes / 8).to_string())
            .replace("TARGET", target);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = folder.path().join("fp4.ttgir");
        fs::write(&kernel, text).expect("the kernel is written");
        agree(&kernel, target, "1", "x.npy,o.npy", &files);
    }
}
