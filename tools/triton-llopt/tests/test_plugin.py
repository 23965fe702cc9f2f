"""Tests of the package without a GPU.

    python3 -m unittest discover -s tools/triton-llopt/tests

Needed: the package, triton==3.6.0, NumPy.
"""

import itertools
import json
import operator
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import warnings
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-llopt-"))

import kernels
import numpy as np
import triton
import triton_llopt
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_llopt import Array, _llopt, few_programs, isolation, persistent, simulator, splitting
from triton_llopt.added_arguments import ArgumentTensors

HERE = Path(__file__).parent
CUDA, HIP = GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)
BLACKWELL = GPUTarget("cuda", 100, 32)


def source(kernel=kernels.add, **constants):
    """`kernel` with pointers to f32, then an i32 called n, then constants."""
    signature = {
        name: "constexpr" if name in constants else "i32" if name == "n" else "*fp32"
        for name in kernel.arg_names
    }
    return ASTSource(kernel, signature, constants)


def compiled(target=CUDA, **options):
    return triton.compile(source(BLOCK=1024), target=target, options=options)


class Switched(unittest.TestCase):
    def tearDown(self):
        triton_llopt.disable()


class Compilation(Switched):
    def test_one_cache_serves_both_compilers(self):
        theirs = compiled()
        triton_llopt.enable()
        ours = compiled()
        self.assertNotEqual(theirs.hash, ours.hash)
        self.assertNotEqual(theirs.asm["llir"], ours.asm["llir"])
        self.assertEqual(compiled().hash, ours.hash)
        triton_llopt.enable("ttir")
        self.assertNotEqual(compiled().hash, ours.hash)
        triton_llopt.disable()
        self.assertEqual(compiled().hash, theirs.hash)
        self.assertEqual(compiled().kernel, theirs.kernel)

    def test_a_launcher_is_told_what_triton_tells_it(self):
        for target in (CUDA, HIP):
            theirs = compiled(target).metadata._asdict()
            with triton_llopt.enabled():
                ours = compiled(target).metadata._asdict()
            theirs.pop("hash")
            self.assertEqual(theirs, {key: ours[key] for key in theirs})

    def test_both_vendors_and_both_sources(self):
        for target, last in ((CUDA, "cubin"), (HIP, "hsaco")):
            for form in ("ttgir", "ttir"):
                with triton_llopt.enabled(form):
                    self.assertTrue(compiled(target).asm[last].startswith(b"\x7fELF"))

    def test_the_first_compilation_of_a_process_may_be_for_either_vendor(self):
        program = (
            "import test_plugin as t; t.triton_llopt.enable('ttir'); "
            "print(t.compiled(t.{}).asm['{}'][1:4].decode())"
        )
        for target, last in (("CUDA", "cubin"), ("HIP", "hsaco")):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "TRITON_CACHE_DIR": cache}
                words = [sys.executable, "-c", program.format(target, last)]
                done = subprocess.run(words, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout.strip(), "ELF", done.stderr)

    def test_the_documented_spellings(self):
        for keywords in ({"from": "ttir"}, {"mode": "ttir"}, {"source": "ttir"}):
            with triton_llopt.enabled(**keywords):
                self.assertIn("#blocked", compiled().asm["ttgir"])
        with self.assertRaisesRegex(ValueError, "not from 'ptx'"):
            triton_llopt.enable("ptx")
        with self.assertRaises(TypeError):
            triton_llopt.enable(form="ttir")

    def test_options_reach_the_code(self):
        triton_llopt.enable()
        self.assertIn(".maxnreg 32", compiled(maxnreg=32).asm["ptx"])
        self.assertIn(".reqntid 256", compiled(num_warps=8).asm["ptx"])

    def test_the_number_of_warps_is_chosen_only_if_asked(self):
        with triton_llopt.enabled("ttir", num_warps="auto"):
            # Without products it is the default.
            kernel = compiled(num_warps=8)
            self.assertEqual(kernel.metadata.num_warps, 4)
            self.assertIn(".reqntid 128", kernel.asm["ptx"])
        with triton_llopt.enabled("ttir"):
            self.assertEqual(compiled(num_warps=8).metadata.num_warps, 8)
        with self.assertRaisesRegex(ValueError, "num_warps is 'auto' or None, not 8"):
            triton_llopt.enable("ttir", num_warps=8)

    def test_several_threads_compile_at_once(self):
        triton_llopt.enable()
        found = []

        def work(block):
            found.append(triton.compile(source(BLOCK=block), target=CUDA).asm["ptx"])

        threads = [threading.Thread(target=work, args=(1 << n,)) for n in range(7, 11)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 4)

    def test_the_environment_enables(self):
        code = "import kernels, test_plugin, triton_llopt as l; test_plugin.compiled(); "
        code += "from triton_llopt import routing; print(routing.configuration)"
        environment = {**os.environ, "TRITON_LLOPT": "ttir", "TRITON_LLOPT_FALLBACK": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=HERE, env=environment, capture_output=True, text=True
        )
        self.assertIn("source='ttir', fallback=True", done.stdout, done.stderr)


class Isolation(Switched):
    def test_the_code_is_the_same(self):
        with triton_llopt.enabled():
            ours = compiled().asm
        with triton_llopt.enabled(isolated=True), tempfile.TemporaryDirectory() as cache:
            with triton.knobs.cache.scope():
                triton.knobs.cache.dir = cache
                self.assertEqual(compiled().asm["ptx"], ours["ptx"])

    def test_a_compilation_that_dies_is_an_error(self):
        with self.assertRaisesRegex(triton_llopt.InternalError, "ended by SIGABRT"):
            isolation.run(os.abort)
        self.assertEqual(isolation.run(divmod, 7, 2), (3, 1))

    def test_what_is_raised_is_raised_here(self):
        with self.assertRaisesRegex(triton_llopt.InvalidKernelError, "kernel.ttgir:1:1"):
            isolation.compile(b"nonsense", "kernel.ttgir", "cuda:90", ["ptx"])
        with self.assertRaises(triton_llopt.UnknownTargetError):
            isolation.compile(b"", "kernel.ttgir", "cuda:1", ["ptx"])

    def test_memory_has_a_budget(self):
        with unittest.mock.patch.dict(os.environ, LLOPT_MAX_MEMORY="64"):
            with self.assertRaisesRegex(triton_llopt.InvalidKernelError, "more than 64 MiB"):
                isolation.run(operator.mul, b"x", 1 << 29)

    def test_a_process_costs_little(self):
        isolation.run(divmod, 1, 1)
        times = []
        for _ in range(40):
            begin = time.perf_counter()
            isolation.run(divmod, 1, 1)
            times.append(time.perf_counter() - begin)
        # Other work on the machine makes most of them longer.
        self.assertLess(min(times), 0.010)


class Errors(Switched):
    def failure(self, kernel, target=CUDA, options=None, **constants):
        try:
            triton.compile(source(kernel, **constants), target=target, options=options)
        except Exception as error:
            return error
        self.fail("it compiled")

    def test_the_frontends_errors_are_tritons(self):
        mistakes = [
            (kernels.specialized, {}),  # a name that is not there
            (kernels.untyped, {}),
            (kernels.demanding, {}),
            (kernels.misshapen, {}),
            (kernels.uneven, {}),
            (kernels.changeable, {}),
            (kernels.endless, {}),
            (kernels.add, {"num_warps": 3}),
        ]
        for target in (CUDA, HIP):
            for kernel, options in mistakes:
                with self.subTest(kernel=kernel.fn.__name__, target=target):
                    theirs = self.failure(kernel, target, options, BLOCK=128)
                    for form in ("ttgir", "ttir"):
                        with triton_llopt.enabled(form):
                            ours = self.failure(kernel, target, options, BLOCK=128)
                        self.assertIs(type(ours), type(theirs))
                        self.assertEqual(str(ours), str(theirs))

    def test_miscounted_constraints_are_explained(self):
        """Triton's process ends at them."""
        for form in ("ttgir", "ttir"):
            with triton_llopt.enabled(form):
                error = self.failure(kernels.miscounted, BLOCK=128)
            self.assertIsInstance(error, triton_llopt.InvalidKernelError)
            self.assertRegex(str(error), r"kernels\.py:\d+:\d+: .*'=r,r,r' list 2 inputs, not 1")

    def test_too_much_shared_memory_is_out_of_resources(self):
        for target, lanes in (("cuda:90", 32), ("hip:gfx942", 64)):
            triton_llopt.simulate(target)
            x = Array(np.zeros(131072, np.float32))
            with self.assertRaises(triton.runtime.errors.OutOfResources) as caught:
                kernels.greedy[(1,)](x, BLOCK=131072, LANES=lanes)
            self.assertIn("Required: 524288", str(caught.exception))

    def test_refused_assembly_is_ptxas_error_under_both(self):
        theirs = self.failure(kernels.inline, BLOCK=128)
        triton_llopt.enable()
        ours = self.failure(kernels.inline, BLOCK=128)
        self.assertIs(type(ours), type(theirs))

    def unsupported(self):
        """A kernel in TTGIR with an op that has no code on the target."""
        text = (HERE / "unsupported.ttgir").read_text()
        with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
            file.write(text)
            file.flush()
            return triton.compile(file.name, target=BLACKWELL)

    def test_what_is_unsupported_is_named(self):
        triton_llopt.enable()
        with self.assertRaises(triton_llopt.UnsupportedError) as caught:
            self.unsupported()
        error = caught.exception
        self.assertIsInstance(error, RuntimeError)
        self.assertEqual(error.op, "ttng.tmem_alloc")
        self.assertEqual((error.kernel, error.target), ("kept", "cuda:100"))
        self.assertIn("is not supported", str(error))

    def test_fallback_warns_once_and_triton_compiles(self):
        triton_llopt.enable(fallback=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertIn("cubin", self.unsupported().asm)
        messages = [str(w.message) for w in caught]
        self.assertEqual(len(messages), 1)
        self.assertRegex(messages[0], "^llopt leaves kernel 'kept' to Triton: 'ttng.tmem_alloc'")
        self.assertNotIn("\n", messages[0])


class Simulation(Switched):
    def vectors(self, n):
        x, y = (np.random.default_rng(s).standard_normal(n, np.float32) for s in (1, 2))
        return Array(x), Array(y), Array(np.zeros(n, np.float32))

    def test_both_vendors_compute(self):
        for target in ("cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100"):
            triton_llopt.simulate(target)
            x, y, out = self.vectors(3000)
            kernels.add[(3,)](x, y, out, 3000, BLOCK=1024)
            np.testing.assert_array_equal(out.contents, x.contents + y.contents)
            rows, result = Array(x.contents.reshape(10, 300)), Array(np.zeros((10, 300), np.float32))
            kernels.softmax[(10,)](rows, result, 300, BLOCK=512)
            expected = np.exp(rows.contents - rows.contents.max(1, keepdims=True))
            expected /= expected.sum(1, keepdims=True)
            np.testing.assert_allclose(result.contents, expected, rtol=1e-5)

    def test_gluon_kernels_run(self):
        triton_llopt.simulate("cuda:90")
        x, _, _ = self.vectors(512)
        before = x.contents.copy()
        kernels.scaled[(1,)](x, 2.0, BLOCK=512)
        np.testing.assert_array_equal(x.contents, 2 * before)

    def test_descriptors_of_the_host(self):
        """By value where there is a copy unit, as pointers elsewhere. Elements outside are not written, and read as
        zero."""
        whole = np.arange(100 * 80, dtype=np.float32).reshape(100, 80)
        for target in ("cuda:80", "cuda:90", "hip:gfx942"):
            for form in ("ttgir", "ttir"):
                triton_llopt.enable(form)
                triton_llopt.simulate(target)
                result = Array(np.full((30, 24), -1, np.float32))
                a, b = (
                    TensorDescriptor.from_tensor(array, [32, 32]) for array in (Array(whole), result)
                )
                kernels.moved[(1,)](a, b, 80, 64, ROWS=32, COLUMNS=32)
                expected = np.ones((30, 24), np.float32)
                expected[:20, :16] += whole[80:, 64:]
                np.testing.assert_array_equal(result.contents, expected)

    def test_views_share_memory(self):
        triton_llopt.simulate("cuda:90")
        whole = np.arange(2048, dtype=np.float32)
        x, y, out = (Array(whole[at : at + 512]) for at in (0, 512, 1024))
        kernels.add[(1,)](x, y, out, 512, BLOCK=512)
        np.testing.assert_array_equal(whole[1024:1536], whole[:512] + whole[512:1024])
        np.testing.assert_array_equal(whole[1536:], np.arange(1536, 2048))

    def test_what_wraps_an_array_shares_its_memory(self):
        class Wrapper:
            def __init__(self, data):
                self.data, self.dtype = data, data.dtype

            def data_ptr(self):
                return self.data.data_ptr()

        triton_llopt.simulate("cuda:90")
        x, y = Array(np.ones(100, np.float32)), Array(np.zeros(100, np.float32))
        kernels.add[(1,)](Wrapper(x), Wrapper(x), Wrapper(y), 100, BLOCK=128)
        self.assertEqual(np.asarray(y).tolist(), [2.0] * 100)

    def test_the_autotuner_chooses(self):
        triton_llopt.simulate("cuda:90")
        x, y, out = self.vectors(512)
        kernels.tuned[lambda meta: (triton.cdiv(512, meta["BLOCK"]),)](x, y, out, 512)
        np.testing.assert_array_equal(out.contents, x.contents + y.contents)
        self.assertIn(kernels.tuned.best_config.kwargs["BLOCK"], (128, 512))

    def test_findings_are_errors(self):
        triton_llopt.simulate("cuda:90")
        x = Array(np.zeros(100, np.int32))
        with self.assertRaises(triton_llopt.SimulationError) as caught:
            kernels.beyond[(1,)](x, BLOCK=128)
        self.assertRegex(str(caught.exception), r"kernels\.py:\d+")
        self.assertIn("kernel 'beyond' for cuda:90", str(caught.exception))

    def test_prints_and_assertions(self):
        code = "import kernels, numpy as np, triton_llopt as l; l.simulate('cuda:90'); "
        code += "kernels.talking[(1,)](l.Array(np.full(1, 42, np.int32)), num_warps=1)"
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True)
        self.assertIn("seen: 42", done.stdout, done.stderr)
        triton_llopt.simulate("cuda:90")
        with self.assertRaisesRegex(triton_llopt.SimulationError, "not zero|stopped"):
            kernels.strict[(1,)](Array(np.ones(1, np.int32)), debug=True)

    def test_warmup_needs_no_memory(self):
        triton_llopt.simulate("cuda:90")
        kernel = kernels.add.warmup(*[triton.runtime.jit.MockTensor(np.dtype("float32"))] * 3, 100,
                                    BLOCK=128, grid=(1,))  # fmt: skip
        self.assertIn("ptx", kernel.asm)

    def test_preloaded_kernels_are_those_that_run(self):
        triton_llopt.simulate("cuda:90")
        seen = []

        def note(**call):
            seen.append(call["compile"]["specialization_data"])

        x, y, out = self.vectors(128)
        triton.knobs.runtime.jit_cache_hook = note
        try:
            kernels.add[(1,)](x, y, out, 128, BLOCK=128)
        finally:
            triton.knobs.runtime.jit_cache_hook = None
        kernels.add.device_caches.clear()
        preloaded = kernels.add.preload(seen[0])
        self.assertIs(kernels.add[(1,)](x, y, out, 128, BLOCK=128), preloaded)

    def test_disable_ends_it(self):
        before = triton.runtime.driver._active
        triton_llopt.simulate("hip:gfx942")
        triton_llopt.disable()
        self.assertIs(triton.runtime.driver._active, before)


class Programs(Switched):
    """Blocks that compute several programs each."""

    def product(self, rows, columns):
        rng = np.random.default_rng(3)
        a = Array(rng.integers(-3, 4, (rows, 64)).astype(np.float16))
        b = Array(rng.integers(-3, 4, (64, columns)).astype(np.float16))
        out = Array(np.zeros((rows, columns), np.float32))
        tiles = (-(-rows // 128), -(-columns // 256))
        kernel = kernels.tiles[tiles](
            a, b, out, rows, columns, 64, ROWS=128, COLUMNS=256, DEPTH=64, num_warps=8, num_stages=3
        )
        expected = a.contents.astype(np.float32) @ b.contents.astype(np.float32)
        np.testing.assert_array_equal(out.contents, expected)
        return kernel

    def test_blocks_compute_several_programs(self):
        triton_llopt.enable("ttir", tensor_copies="launcher", persistent=True)
        triton_llopt.simulate("cuda:90")
        kernel = self.product(272, 528)
        self.assertTrue(kernel.metadata.program_extents)
        self.assertEqual(len(kernel.metadata.argument_tensors), 3)

    def test_a_launch_of_many_programs_chooses(self):
        triton_llopt.enable("ttir", tensor_copies="launcher", persistent="auto")
        triton_llopt.simulate("cuda:90")
        found = {"multiprocessor_count": 2, "max_shared_mem": 232448}
        utilities = triton.runtime.driver.active.utils
        with unittest.mock.patch.object(utilities, "get_device_properties", lambda device: found, create=True):
            few = self.product(144, 256)
            self.assertFalse(few.metadata.program_extents)
            self.assertFalse(few.run.is_compiled)
            many = self.product(144, 512)
            self.assertIs(many.run, few.run)
            variant = many.run.variant.metadata
            self.assertTrue(variant.program_extents)
            # A warp more than the launch asks for copies tiles.
            self.assertEqual((variant.asked_warps, variant.num_warps), (8, 12))

    def test_what_cannot_be_had_is_not_chosen(self):
        def compile(kernel):
            raise triton.runtime.errors.OutOfResources(300000, 232448, "shared memory")

        kernel, device = unittest.mock.Mock(), unittest.mock.Mock()
        kernel.name = "product"
        device.active.utils.get_device_properties.return_value = {"multiprocessor_count": 132}
        with unittest.mock.patch.object(persistent, "driver", device):
            choice = persistent.Choice(kernel, compile)
        place = ("stream", "function", "packed")
        choice(132, 1, 1, *place)
        with self.assertWarnsRegex(triton_llopt.FallbackWarning, "'product' compute one program each"):
            choice(133, 1, 1, *place)
        choice(1, 500, 2, *place)
        self.assertEqual(kernel._run.call_count, 3)

    def test_choices_are_checked(self):
        with self.assertRaisesRegex(ValueError, "persistent is one of False, True, auto"):
            triton_llopt.enable("ttir", persistent="some")


class FewPrograms(Switched):
    """Registers for launches whose blocks are all resident."""

    def test_kernels_say_whether_loads_may_wait_for_one_another(self):
        for form in ("ttgir", "ttir"):
            triton_llopt.enable(form)
            kernel = triton.compile(source(kernels.dots, BLOCK=1024), target=CUDA)
            self.assertTrue(kernel.metadata.few_programs_proposal)
            self.assertFalse(compiled().metadata.few_programs_proposal)
            for asked in (False, True):
                triton_llopt.enable(form, few_programs=asked)
                kernel = triton.compile(source(kernels.dots, BLOCK=1024), target=CUDA)
                self.assertFalse(kernel.metadata.few_programs_proposal)

    def test_launches_choose_by_the_blocks_that_are_resident(self):
        kernel, variant = unittest.mock.Mock(), unittest.mock.Mock()
        kernel.name = "dots"
        kernel.metadata.num_ctas = variant.metadata.num_ctas = 2
        blocks = {kernel.function: 200, variant.function: 120}
        resident = unittest.mock.patch.object(few_programs, "resident_blocks", lambda function, _: blocks[function])
        loaded = unittest.mock.patch.object(few_programs.variants, "loaded", lambda compile, _: compile())
        with resident, loaded:
            choice = few_programs.Choice(kernel, lambda _: variant)
            place = ("stream", "function", "packed")
            choice(101, 1, 1, *place)
            self.assertFalse(choice.is_compiled)
            # They may be few enough, but are not.
            choice(10, 10, 1, *place)
            self.assertTrue(choice.is_compiled)
            self.assertEqual(kernel._run.call_count, 2)
            choice(61, 1, 1, *place)
            choice(15, 2, 2, *place)
        self.assertEqual((kernel._run.call_count, variant.run.call_count), (3, 1))
        variant.run.assert_called_with(15, 2, 2, "stream", variant.function, variant.packed_metadata)

    def test_choices_are_checked(self):
        with self.assertRaisesRegex(ValueError, "few_programs is one of False, True, auto"):
            triton_llopt.enable(few_programs=3)


class DependentLaunches(Switched):
    """Kernels wait for the ones before them, so that their launches may begin early."""

    def test_kernels_wait(self):
        triton_llopt.enable("ttir")
        kernel = compiled()
        self.assertIn("griddepcontrol.wait;", kernel.asm["ptx"])
        self.assertTrue(kernel.metadata.dependent_launch)
        triton_llopt.enable("ttir", dependent_launch=False)
        kernel = compiled()
        self.assertNotIn("griddepcontrol", kernel.asm["ptx"])
        self.assertFalse(kernel.metadata.dependent_launch)

    def test_launches_overlap_if_the_kernel_waits_or_its_author_asks(self):
        def initialise(self, source, metadata):
            self.launch_pdl = metadata.launch_pdl
            self.launch_cooperative_grid = metadata.launch_cooperative_grid

        launcher = triton.backends.nvidia.driver.CudaLauncher
        with unittest.mock.patch.object(launcher, "__init__", initialise):
            triton_llopt.enable("ttir")
            for waits, asks, meets in itertools.product((False, True), repeat=3):
                metadata = types.SimpleNamespace(
                    dependent_launch=waits, launch_pdl=asks, launch_cooperative_grid=meets
                )
                self.assertEqual(launcher(None, metadata).launch_pdl, asks or waits and not meets)
            triton_llopt.disable()

    def test_without_such_launches_nothing_waits(self):
        triton_llopt.enable("ttir")
        self.assertFalse(compiled(HIP).metadata.dependent_launch)

    def test_choices_are_checked(self):
        with self.assertRaisesRegex(ValueError, "dependent_launch is False or True"):
            triton_llopt.enable("ttir", dependent_launch="some")


class Tiles(Switched):
    """Launches with few rows compute parts of tiles."""

    def tearDown(self):
        super().tearDown()
        kernels.tiles.device_caches.clear()

    def product(self, rows, columns, k=256):
        rng = np.random.default_rng(4)
        a = Array(rng.integers(-3, 4, (rows, k)).astype(np.float16))
        b = Array(rng.integers(-3, 4, (k, columns)).astype(np.float16))
        out = Array(np.zeros((rows, columns), np.float32))
        grid = (-(-rows // 64), -(-columns // 64))
        kernel = kernels.tiles[grid](a, b, out, rows, columns, k, ROWS=64, COLUMNS=64, DEPTH=64)
        expected = a.contents.astype(np.float32) @ b.contents.astype(np.float32)
        np.testing.assert_array_equal(out.contents, expected)
        return kernel

    def chosen(self, rows, columns, memory=(1000.0, 0)):
        """The form that a launch chooses on 132 multiprocessors with such a memory."""
        with (
            unittest.mock.patch.object(splitting, "_memory", lambda: memory),
            unittest.mock.patch.object(splitting, "_clusters", lambda kernel: [132, 66, 30, 15]),
        ):
            choice = self.product(rows, columns).run
        [*_, chosen] = choice.chosen.values()
        return next(form for form, variant in choice.variants.items() if variant is chosen)

    def test_few_rows_are_divided_among_multiprocessors(self):
        for target in ("cuda:90", "hip:gfx942"):
            triton_llopt.enable("ttir")
            triton_llopt.simulate(target)
            kernels.tiles.device_caches.clear()
            form = self.chosen(16, 1024)
            self.assertEqual((form.rows, form.single_wave, form.streamed, form.blocks), (16, True, True, 1))
            self.assertEqual(form.parts, 4)
            # Rows of a whole tile; more than one row of tiles; and more tiles than multiprocessors.
            self.assertEqual(self.chosen(64, 1024).rows, 0)
            form = self.chosen(96, 1024)
            self.assertEqual((form.parts, form.rows, form.streamed), (4, 0, False))
            self.assertEqual(self.chosen(96, 4288), splitting.Form(copies=self.chosen(96, 4288).copies))

    def test_what_is_in_the_cache_is_divided_but_not_streamed(self):
        triton_llopt.enable("ttir")
        triton_llopt.simulate("cuda:90")
        for memory in ((1000.0, 1 << 40), (0.0, 0)):
            kernels.tiles.device_caches.clear()
            form = self.chosen(16, 1024, memory)
            self.assertEqual((form.parts, form.rows, form.single_wave, form.streamed), (4, 16, True, False))

    def test_as_many_parts_as_are_asked_for(self):
        for parts in (1, 2, 4):
            triton_llopt.enable("ttir", tile_parts=parts, split_k=1)
            triton_llopt.simulate("cuda:90")
            self.assertEqual(self.product(64, 208).metadata.tile_parts, parts)
        for wrong in (0, 3, "all"):
            with self.assertRaisesRegex(ValueError, "tile_parts is 1, 2, 4, 8, auto"):
                triton_llopt.enable("ttir", tile_parts=wrong)
        with self.assertRaisesRegex(ValueError, "tile_parts needs the source 'ttir'"):
            triton_llopt.enable("ttgir", tile_parts=2)


class Splitting(Switched):
    """Blocks of a cluster share the loop of a product: as many as are asked for, or as a launch chooses."""

    def tearDown(self):
        super().tearDown()
        kernels.product.device_caches.clear()

    def product(self, programs, k, multiprocessors=132):
        """Launches so many programs; returns the kernel, after a check of the result."""
        properties = triton.runtime.driver.active.utils.get_device_properties
        whole = np.random.default_rng(1).integers(-2, 3, (2, 16 * programs * k + 32 * k))
        a = Array(whole[0, : 16 * programs * k].reshape(16 * programs, k).astype(np.float16))
        b = Array(whole[1, : 32 * k].reshape(k, 32).astype(np.float16))
        out = Array(np.zeros((16 * programs, 32), np.float32))
        found = {**properties(0), "multiprocessor_count": multiprocessors}
        with unittest.mock.patch.object(
            triton.runtime.driver.active.utils, "get_device_properties", lambda device: found, create=True
        ):
            kernel = kernels.product[(programs,)](a, b, out, 32, k, ROWS=16, COLUMNS=32, DEPTH=16)
        expected = a.contents.astype(np.float32) @ b.contents.astype(np.float32)
        np.testing.assert_array_equal(out.contents, expected)
        return kernel

    def test_as_many_blocks_as_are_asked_for(self):
        for blocks in (1, 2, 4, 8):
            triton_llopt.enable("ttir", split_k=blocks, tensor_copies="off")
            triton_llopt.simulate("cuda:90")
            kernel = self.product(3, 200)
            self.assertEqual(kernel.metadata.num_ctas, blocks)
            self.assertIs(type(kernel.run), simulator.Launcher)

    def test_kernels_that_triton_launches_copy_tensors(self):
        for blocks in (1, 2, 4):
            triton_llopt.enable("ttir", split_k=blocks)
            triton_llopt.simulate("cuda:90")
            kernel = self.product(3, 208)
            # Of the two factors, and of the result where a block stores all of it.
            self.assertIn(len(kernel.metadata.argument_tensors), (2, 3))
            self.assertEqual(kernel.metadata.num_ctas, blocks)
        # Others know only the parameters of the source.
        options = {"num_warps": 4, "num_stages": 3}
        plain = triton.compile(kernel.src, target=CUDA, options=options)
        self.assertEqual(plain.metadata.argument_tensors, [])
        triton_llopt.enable("ttir", tensor_copies="off")
        triton_llopt.simulate("cuda:90")
        self.assertEqual(self.product(3, 200).metadata.argument_tensors, [])

    def test_rows_outside_of_a_matrix_are_loaded(self):
        triton_llopt.enable("ttir", tile_parts=1)
        triton_llopt.simulate("cuda:90")
        choice = self.product(8, 64).run
        self.assertEqual(list(choice.chosen.values()), [None])
        with unittest.mock.patch.object(ArgumentTensors, "rows_outside", return_value=1000):
            self.product(7, 48)
        [loading] = [variant for variant in choice.chosen.values() if variant is not None]
        self.assertEqual((loading.metadata.argument_tensors, loading.metadata.num_ctas), ([], 1))
        self.assertIs(type(loading.run), simulator.Launcher)

    def test_a_launch_chooses_by_its_grid_and_its_integers(self):
        triton_llopt.enable("ttir", tensor_copies="off", tile_parts=1)
        triton_llopt.simulate("cuda:90")
        # Few programs with a long loop; a short one; and as many programs as multiprocessors.
        kernel = self.product(2, 8192)
        self.assertEqual(kernel.metadata.num_ctas, 1)
        choice = kernel.run
        self.assertEqual(choice.chosen[2, 8192].metadata.num_ctas, 8)
        self.assertIs(self.product(1, 48).run, choice)
        self.assertIsNone(choice.chosen[1, 48])
        with unittest.mock.patch.object(splitting.Choice, "compiled", side_effect=AssertionError):
            self.assertIs(self.product(2, 8192).run, choice)
            kernels.product.device_caches.clear()
            self.assertIsNone(self.product(2, 8192, multiprocessors=2).run.chosen[2, 8192])

    def test_both_kernels_come_from_the_cache(self):
        triton_llopt.enable("ttir", tensor_copies="off", tile_parts=1)
        triton_llopt.simulate("cuda:90")
        first = self.product(2, 8192)
        kernels.product.device_caches.clear()
        with unittest.mock.patch.object(_llopt, "compile", side_effect=AssertionError):
            again = self.product(2, 8192)
        self.assertIsNot(again, first)
        self.assertEqual(again.run.chosen[2, 8192].kernel, first.run.chosen[2, 8192].kernel)
        # The same kernel serves those who ask for this number.
        triton_llopt.enable("ttir", split_k=8, tensor_copies="off")
        with unittest.mock.patch.object(_llopt, "compile", side_effect=AssertionError):
            self.assertEqual(self.product(2, 8192).hash, again.run.chosen[2, 8192].hash)

    def test_other_kernels_keep_their_launchers(self):
        for target in ("cuda:80", "cuda:90", "hip:gfx942"):
            triton_llopt.enable("ttir", split_k="auto", tile_parts=1)
            triton_llopt.simulate(target)
            x, out = Array(np.ones(128, np.float32)), Array(np.zeros(128, np.float32))
            kernel = kernels.add[(1,)](x, x, out, 128, BLOCK=128)
            self.assertIs(type(kernel.run), simulator.Launcher)
            if target != "cuda:90":
                self.assertIs(type(self.product(1, 64).run), simulator.Launcher)
        triton_llopt.disable()
        self.assertFalse(hasattr(triton.compiler.CompiledKernel._init_handles, "__wrapped__"))

    def choice(self, compile):
        """A choice for a kernel that is not there, on a machine of 132 multiprocessors."""
        figures = {"interval": 300, "iterations": "a3 63 + 64 /", "sum_bytes": 8192, "is_divided": True}
        figures["wavefront"] = 1.0
        signature = {"p": "*fp32", "width": "constexpr", "pair": ("i32", "i32"), "k": "i32"}
        kernel = unittest.mock.Mock()
        kernel.name, kernel.src.signature = "product", signature
        kernel.metadata.tensordesc_meta = kernel.metadata.argument_tensors = None
        choice = splitting.Choice(kernel, json.dumps(figures), compile)
        choice.clusters, choice.memory = [132, 66, 30, 15], (0.0, 0)
        return kernel, choice

    def launch(self, choice, programs, k):
        choice(programs, 1, 1, "stream", "function", "packed", "about", None, None, "p", 16, (1, 2), k)

    def test_the_launcher_of_the_chosen_kernel_gets_the_launch(self):
        variant = unittest.mock.Mock()
        asked = []

        def compile(kernel, form):
            asked.append(form.blocks)
            return variant

        kernel, choice = self.choice(compile)
        self.launch(choice, 132, 8192)
        self.launch(choice, 64, 256)
        self.assertEqual((kernel._run.call_count, asked), (2, []))
        self.assertEqual(kernel._run.call_args.args[3:6], ("stream", "function", "packed"))
        for _ in range(2):
            self.launch(choice, 64, 8192)
        self.assertEqual((variant.run.call_count, asked), (2, [2]))
        place = ("stream", variant.function, variant.packed_metadata, "about")
        self.assertEqual(variant.run.call_args.args[3:7], place)
        self.assertEqual(variant.run.call_args.args[-1], 8192)

    def test_what_cannot_be_had_is_not_chosen(self):
        def compile(kernel, form):
            raise triton.runtime.errors.OutOfResources(300000, 232448, "shared memory")

        kernel, choice = self.choice(compile)
        with self.assertWarnsRegex(triton_llopt.FallbackWarning, "'product' is launched as it is, not as .*blocks=2"):
            self.launch(choice, 64, 8192)
        self.launch(choice, 64, 8192)
        self.assertEqual(kernel._run.call_count, 2)

    def test_descriptors_are_several_parameters(self):
        types = ("tensordesc<fp16[64, 64]>", "*fp16", ("i32", "constexpr"), "i64")
        extents = [(0, "shape", 0), (0, "shape", 1)]
        of_object = [None, *extents, None, None, (1,), (2, 0), (3,)]
        self.assertEqual(list(splitting._positions(types, True)), of_object)
        of_pointer = [None, *extents, *[None] * 7, (1,), (2, 0), (3,)]
        self.assertEqual(list(splitting._positions(types, False)), of_pointer)
        described = unittest.mock.Mock(shape=[48, 80])
        read = splitting._reader([(0, "shape", 1), (2, 0)])
        self.assertEqual(read((described, None, (7, 8))), (80, 7))

    def test_numbers_of_blocks_are_checked(self):
        for wrong in (0, 3, 16, "some"):
            with self.assertRaisesRegex(ValueError, "split_k is 1, 2, 4, 8, auto"):
                triton_llopt.enable("ttir", split_k=wrong)
        for blocks in (2, "auto"):
            with self.assertRaisesRegex(ValueError, "needs the source 'ttir'"):
                triton_llopt.enable("ttgir", split_k=blocks)


if __name__ == "__main__":
    unittest.main()
