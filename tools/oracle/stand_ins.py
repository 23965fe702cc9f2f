"""Stand-ins for PyTorch and pytest: the parts that Triton's own tests use before they launch a kernel.

A test of Triton makes tensors with PyTorch, launches a kernel and compares with PyTorch; pytest supplies its
parameters. To find the kernels and arguments of the tests, only parts of both are needed:

- tensors are NumPy arrays with PyTorch's names for types, strides counted in elements, and addresses that are aligned
  as PyTorch's are; arithmetic on them is NumPy's. Formats that NumPy lacks are held as bit patterns;
- a value that is only compared with afterwards is `Nothing`, on which every operation gives `Nothing`; a product,
  whose type and shape a test may use, has only these right;
- marks keep their parameters, and a test that is skipped raises `Skipped`.

`install` puts both into `sys.modules`. The use of a missing attribute of a stand-in is an `AttributeError` that names
it.
"""

import contextlib
import itertools
import operator
import sys
import types
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gpu"))

import formats

# PyTorch's name, NumPy's type of the storage, and for formats that NumPy lacks the name in `formats`.
KINDS = [
    ("bool", "?", None), ("uint8", "u1", None), ("uint16", "u2", None), ("uint32", "u4", None), ("uint64", "u8", None),
    ("int8", "i1", None), ("int16", "i2", None), ("int32", "i4", None), ("int64", "i8", None),
    ("float16", "f2", None), ("float32", "f4", None), ("float64", "f8", None),
    ("bfloat16", "u2", "bf16"), ("float8_e4m3fn", "u1", "fp8e4nv"), ("float8_e5m2", "u1", "fp8e5"),
    ("float8_e4m3fnuz", "u1", None), ("float8_e5m2fnuz", "u1", None),
]  # fmt: skip
OTHER_NAMES = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64",
               "short": "int16", "uint8": "uint8"}  # fmt: skip
# Addresses are at least as aligned as PyTorch's.
ALIGNED = 512


class dtype:
    """A type of elements."""

    def __init__(self, name, storage, small):
        self.name, self.storage, self.small = name, np.dtype(storage), small
        self.itemsize = self.storage.itemsize
        self.is_floating_point = name.startswith(("float", "bfloat"))
        self.is_signed = not name.startswith(("uint", "bool"))

    def __repr__(self):
        return f"torch.{self.name}"


dtype.__module__ = "torch"
TYPES = {kind[0]: dtype(*kind) for kind in KINDS}
NATIVE = {of.storage: of for of in TYPES.values() if of.small is None and "fnuz" not in of.name}


class Nothing:
    """A value to compare with afterwards. Every operation on it gives the same object."""

    def __getattr__(self, name):
        return self

    def __call__(self, *_, **__):
        return self

    def _same(self, *_):
        return self

    def __iter__(self):
        return iter(())


for _name in ("add", "sub", "mul", "truediv", "mod", "pow", "matmul", "and", "or", "xor"):
    setattr(Nothing, f"__{_name}__", Nothing._same)
    setattr(Nothing, f"__r{_name}__", Nothing._same)
for _name in ("neg", "invert", "getitem", "setitem", "lt", "gt", "le", "ge", "abs"):
    setattr(Nothing, f"__{_name}__", Nothing._same)
NOTHING = Nothing()


class Storage:
    """The memory that contains a tensor."""

    def __init__(self, size):
        self.bytes = size

    def size(self):
        return self.bytes

    nbytes = size


class Tensor:
    """An array with one of PyTorch's types."""

    def __init__(self, array, of=None):
        self.array = np.asarray(array)
        self.dtype = of or NATIVE[self.array.dtype]
        self.device = DEVICE
        self.requires_grad = False

    @property
    def numbers(self):
        return formats.values(self.array, self.dtype.small) if self.dtype.small else self.array

    # Where it is.

    @property
    def root(self):
        """The array that owns the memory."""
        owner = self.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner

    @property
    def begin(self):
        """Elements before the first."""
        address = lambda array: array.__array_interface__["data"][0]
        return (address(self.array) - address(self.root)) // max(self.array.itemsize, 1)

    def data_ptr(self):
        return ALIGNED + self.begin * self.array.itemsize

    def storage_offset(self):
        return self.begin

    def untyped_storage(self):
        return Storage(self.root.nbytes)

    def stride(self, dim=None):
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        return steps if dim is None else steps[dim]

    @property
    def shape(self):
        return self.array.shape

    def size(self, dim=None):
        return self.array.shape if dim is None else self.array.shape[dim]

    ndim = property(lambda self: self.array.ndim)
    data = property(lambda self: self)
    is_cuda = property(lambda self: True)

    def dim(self):
        return self.array.ndim

    def numel(self):
        return self.array.size

    def element_size(self):
        return self.array.itemsize

    nelement = numel
    itemsize = property(element_size)
    nbytes = property(lambda self: self.array.nbytes)

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    # The same elements elsewhere or otherwise.

    def _like(self, array):
        return Tensor(array, self.dtype)

    def reshape(self, *shape):
        return self._like(self.array.reshape(flat(shape)))

    def view(self, *shape):
        if isinstance(shape[0], dtype):
            return Tensor(self.array.view(shape[0].storage), shape[0])
        return self.reshape(*shape)

    def permute(self, *order):
        return self._like(self.array.transpose(flat(order)))

    def transpose(self, a, b):
        return self._like(self.array.swapaxes(a, b))

    T = property(lambda self: self._like(self.array.T))
    mT = property(lambda self: self._like(self.array.swapaxes(-1, -2)))

    def t(self):
        return self.T

    def contiguous(self):
        return self if self.is_contiguous() else self._like(np.ascontiguousarray(self.array))

    def clone(self):
        return self._like(self.array.copy())

    def cpu(self):
        return self

    cuda = detach = pin_memory = requires_grad_ = cpu

    def numpy(self):
        return self.array

    def to(self, *wanted, **named):
        of = next((w for w in (*wanted, *named.values()) if isinstance(w, dtype)), None)
        return self if of in (None, self.dtype) else Tensor(stored(self.numbers, of), of)

    type = to

    def unsqueeze(self, dim):
        return self._like(np.expand_dims(self.array, dim))

    def squeeze(self, dim=None):
        return self._like(np.squeeze(self.array, dim))

    def flatten(self, *_):
        return self.reshape(-1)

    ravel = flatten

    def reshape_as(self, other):
        return self.reshape(other.shape)

    def expand(self, *shape):
        shape = [have if wish == -1 else wish for have, wish in zip(self.shape, flat(shape))]
        return self._like(np.broadcast_to(self.array, shape))

    def repeat_interleave(self, count, dim=None):
        return self._like(np.repeat(self.array, count, dim))

    def repeat(self, *counts):
        return self._like(np.tile(self.array, flat(counts)))

    def select(self, dim, at):
        return self._like(np.take(self.array, at, dim))

    def new_empty(self, *shape, **named):
        return empty(*shape, **{"dtype": self.dtype, **named})

    new_zeros = new_empty

    def copy_(self, other):
        self.array[...] = stored(other.numbers, self.dtype)
        return self

    def fill_(self, value):
        self.array[...] = stored(np.asarray(value), self.dtype)
        return self

    def zero_(self):
        return self.fill_(0)

    def clamp_(self, low=None, high=None):
        return self.copy_(Tensor(np.clip(self.numbers.astype(np.float64), low, high)))

    def clamp(self, low=None, high=None, min=None, max=None):
        low, high = (min if low is None else low), (max if high is None else high)
        return Tensor(stored(np.clip(self.numbers, low, high), self.dtype), self.dtype)

    def item(self):
        return self.numbers.item()

    def tolist(self):
        return self.numbers.tolist()

    def any(self):
        return Tensor(np.asarray(self.numbers.any()))

    def all(self):
        return Tensor(np.asarray(self.numbers.all()))

    def isfinite(self):
        return Tensor(np.isfinite(self.numbers))

    def abs(self):
        return Tensor(stored(np.abs(self.numbers), self.dtype), self.dtype)

    __abs__ = abs

    def max(self, *_, **__):
        return NOTHING if _ or __ else Tensor(np.asarray(self.numbers.max()))

    def amax(self, *_, **__):
        return NOTHING

    sum = mean = softmax = amax

    def __matmul__(self, other):
        return product(self, other)

    mm = matmul = bmm = __matmul__

    def __getitem__(self, at):
        return self._like(self.array[plain(at)])

    def __setitem__(self, at, value):
        value = value.numbers if isinstance(value, Tensor) else np.asarray(value)
        self.array[plain(at)] = stored(value, self.dtype)

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return (self._like(part) for part in self.array)

    def __bool__(self):
        return bool(self.numbers)

    def __int__(self):
        return int(self.numbers)

    def __float__(self):
        return float(self.numbers)

    def __index__(self):
        return int(self.numbers)

    def __invert__(self):
        return self._like(~self.array)

    def __neg__(self):
        return Tensor(stored(-self.numbers, self.dtype), self.dtype)

    def __hash__(self):
        return id(self)


Tensor.__module__ = "torch"
for _name in TYPES:
    setattr(Tensor, {"float16": "half", "float32": "float", "float64": "double", "int32": "int", "int64": "long"}.get(
        _name, _name), (lambda of: lambda self: self.to(of))(TYPES[_name]))


def plain(at):
    """An index in NumPy's form."""
    if isinstance(at, tuple):
        return tuple(map(plain, at))
    return at.array if isinstance(at, Tensor) else at


def flat(shape):
    """Extents, given as a list or as separate arguments."""
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def stored(numbers, of):
    """Numbers in the storage of a type."""
    if of.small:
        return formats.store(numbers, of.small)
    if "fnuz" in of.name:
        raise AttributeError(f"no conversion to {of}")
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(of.storage)


def combined(op, swapped=False):
    """A method for an operation on two operands."""

    def method(self, other):
        if isinstance(other, Nothing) or other is None:
            return NOTHING
        if isinstance(other, Tensor):
            of = promoted(self.dtype, other.dtype)
        else:
            is_wider = isinstance(other, float) and not self.dtype.is_floating_point
            of = TYPES["float32"] if is_wider or op is operator.truediv and not self.dtype.is_floating_point else self.dtype
        a, b = self.numbers, other.numbers if isinstance(other, Tensor) else other
        with np.errstate(all="ignore"):
            if not isinstance(other, Tensor) and not self.dtype.is_floating_point and of is self.dtype:
                b = np.asarray(b).astype(a.dtype) if a.dtype != np.dtype("?") else b
            found = op(b, a) if swapped else op(a, b)
        return Tensor(found) if found.dtype == np.dtype("?") else Tensor(stored(found, of), of)

    return method


def promoted(a, b):
    if a is b:
        return a
    if a.is_floating_point != b.is_floating_point:
        return a if a.is_floating_point else b
    if a.small or b.small:
        return TYPES["float32"] if {a.name, b.name} == {"bfloat16", "float16"} else (b if a.small else a)
    return NATIVE[np.result_type(a.storage, b.storage)]


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    _op, _word = getattr(operator, _name), _name.rstrip("_")
    setattr(Tensor, f"__{_word}__", combined(_op))
    setattr(Tensor, f"__r{_word}__", combined(_op, swapped=True))
def in_place(method):
    return lambda self, other: self.copy_(method(self, other))


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Tensor, f"__i{_name}__", in_place(getattr(Tensor, f"__{_name}__")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tensor, f"__{_name}__", combined(getattr(operator, _name)))

DEVICE = types.SimpleNamespace(type="cuda", index=0)
RANDOM = np.random.default_rng(0)


def sized(shape, named):
    return flat(shape) if shape else flat((named["size"],))


def of_named(named, otherwise="float32"):
    return named.get("dtype") or TYPES[otherwise]


def empty(*shape, **named):
    of = of_named(named)
    return Tensor(np.zeros(sized(shape, named), of.storage), of)


def full(shape, value, **named):
    of = of_named(named, "int64" if isinstance(value, int) else "float32")
    return Tensor(np.full(shape, stored(np.asarray(value), of)), of)


def ones(*shape, **named):
    return full(sized(shape, named), 1.0, **named)


def randn(*shape, **named):
    of = of_named(named)
    return Tensor(stored(RANDOM.normal(0, 1, sized(shape, named)), of), of)


def rand(*shape, **named):
    of = of_named(named)
    return Tensor(stored(RANDOM.random(sized(shape, named)), of), of)


def randint(*bounds, **named):
    *bounds, shape = (*bounds, named["size"]) if "size" in named else bounds
    low, high = (0, *bounds)[-2:]
    of = of_named(named, "int64")
    return Tensor(stored(RANDOM.integers(low, high, tuple(shape)), of), of)


def like(make):
    return lambda tensor, *rest, **named: make(tensor.shape, *rest, **{"dtype": tensor.dtype, **named})


def tensor(value, dtype=None, **_):
    if isinstance(value, Tensor):
        return value.to(dtype)
    numbers = [float(v) if isinstance(v, Tensor) else v for v in value] if isinstance(value, list) else value
    array = np.array(numbers)
    if not isinstance(value, np.ndarray) and array.dtype == np.float64:
        array = array.astype(np.float32)
    return Tensor(stored(array, dtype), dtype) if dtype else Tensor(array)


def as_strided(tensor, shape, steps):
    size = tensor.array.itemsize
    return Tensor(np.lib.stride_tricks.as_strided(tensor.root, shape, [step * size for step in steps]), tensor.dtype)


def where(condition, a, b):
    numbers = [x.numbers if isinstance(x, Tensor) else x for x in (a, b)]
    of = next(x.dtype for x in (a, b) if isinstance(x, Tensor))
    return Tensor(stored(np.where(condition.array, *numbers), of), of)


def product(a, b, *_):
    """A tensor with the type and the shape of a product."""
    if isinstance(a, Nothing) or isinstance(b, Nothing):
        return NOTHING
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    of = promoted(a.dtype, b.dtype)
    return Tensor(np.zeros((*lead, a.shape[-2], b.shape[-1]), of.storage), of)


def elementwise(op):
    def function(value, other=None, **_):
        if isinstance(value, Nothing) or isinstance(other, Nothing):
            return NOTHING
        one = value if isinstance(value, Tensor) else other
        of = one.dtype if one.dtype.is_floating_point else TYPES["float32"]
        values = [v.numbers if isinstance(v, Tensor) else v for v in (value, other) if v is not None]
        with np.errstate(all="ignore"):
            found = np.asarray(op(*values))
        return Tensor(found) if found.dtype == np.dtype("?") else Tensor(stored(found, of), of)

    return function


class Module(types.ModuleType):
    """A module whose missing functions return `Nothing`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return NOTHING


def torch_for(backend, capability):
    """The module `torch` of a machine with one GPU."""
    torch = types.ModuleType("torch")
    for name, of in TYPES.items():
        setattr(torch, name, of)
    for name, of in OTHER_NAMES.items():
        setattr(torch, name, TYPES[of])
    torch.Tensor, torch.dtype = Tensor, dtype
    torch.empty, torch.zeros, torch.full, torch.ones = empty, empty, full, ones
    torch.randn, torch.rand, torch.randint, torch.tensor = randn, rand, randint, tensor
    torch.empty_like, torch.zeros_like = like(empty), like(empty)
    torch.randn_like, torch.ones_like, torch.full_like = like(randn), like(ones), like(full)
    torch.empty_strided = lambda shape, steps, **named: as_strided(
        empty(1 + sum((n - 1) * s for n, s in zip(shape, steps)), **named), shape, steps)
    torch.as_strided, torch.where = as_strided, where
    torch.from_numpy = torch.as_tensor = tensor
    torch.arange = lambda *ends, **named: Tensor(
        stored(np.arange(*ends), of_named(named, "int64")), of_named(named, "int64"))
    torch.permute = lambda of, order: of.permute(order)
    torch.transpose = lambda of, a, b: of.transpose(a, b)
    torch.cat = torch.concat = lambda all, dim=0: Tensor(np.concatenate([t.array for t in all], dim), all[0].dtype)
    torch.stack = lambda all, dim=0: Tensor(np.stack([t.array for t in all], dim), all[0].dtype)
    for name, op in (("abs", np.abs), ("log2", np.log2), ("pow", np.power), ("floor", np.floor), ("signbit", np.signbit),
                     ("isnan", np.isnan), ("isinf", np.isinf), ("clamp", np.clip), ("exp", np.exp), ("round", np.round)):  # fmt: skip
        setattr(torch, name, elementwise(op))
    torch.matmul = torch.mm = torch.bmm = product
    for name in ("addmm", "einsum", "sum", "max", "softmax", "allclose", "equal", "all", "any"):
        setattr(torch, name, lambda *_, **__: NOTHING)
    torch.manual_seed = lambda seed: None
    torch.device = lambda *_, **__: DEVICE
    torch.Size, torch.__version__ = tuple, "2.9.0"
    torch.inf, torch.nan = np.inf, np.nan
    torch.version = types.SimpleNamespace(hip="simulated" if backend == "hip" else None, cuda="12.8")
    torch.backends = Module("torch.backends")
    torch.testing = Module("torch.testing")
    torch.nn = Module("torch.nn")
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *_: capability
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=4, total_memory=1 << 36)
    torch.cuda.get_device_name = lambda *_: "simulated"
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = torch.cuda.empty_cache = lambda *_: None
    torch.cuda.device = lambda *_: contextlib.nullcontext()
    return torch


class Skipped(Exception):
    """The test does not apply to this target."""


class Mark:
    """`pytest.mark`: parameters are kept with the test, other marks have no effect here."""

    def __getattr__(self, name):
        def mark(*arguments, **_):
            def keep(function):
                if name == "parametrize":
                    function.__dict__.setdefault("parameters", []).append(arguments[:2])
                elif name == "skipif" and arguments[0] or name == "skip":
                    function.__dict__["is_skipped"] = True
                return function

            # A mark without arguments is applied to its test directly.
            return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else keep

        return mark


def parameters(function):
    """All sets of arguments of a test by name, as marks list them."""
    sets = []
    for names, values in getattr(function, "parameters", []):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        sets.append([dict(zip(names, value if len(names) > 1 else (value,))) for value in values])
    for chosen in itertools.product(*sets):
        yield {name: value for part in chosen for name, value in part.items()}


def pytest_stand_in():
    pytest = types.ModuleType("pytest")

    def skip(reason="", **_):
        raise Skipped(reason)

    def fixture(*function, **_):
        return function[0] if function else (lambda of: of)

    pytest.mark, pytest.skip, pytest.fixture = Mark(), skip, fixture
    pytest.xfail = pytest.fail = skip
    pytest.param = lambda *values, **_: values if len(values) > 1 else values[0]
    pytest.raises = lambda *_, **__: contextlib.nullcontext(NOTHING)
    pytest.importorskip = skip
    pytest.MonkeyPatch = NOTHING
    pytest.FixtureRequest = object
    return pytest


def install(backend, capability):
    """Makes `import torch` and `import pytest` find the stand-ins."""
    torch = torch_for(backend, capability)
    sys.modules["torch"] = torch
    for name in ("cuda", "testing", "nn", "backends"):
        sys.modules[f"torch.{name}"] = getattr(torch, name)
    sys.modules["pytest"] = pytest_stand_in()
