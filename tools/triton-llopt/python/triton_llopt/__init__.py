"""llopt behind Triton's frontend.

    import triton_llopt
    triton_llopt.enable()

From then on every ``@triton.jit`` and ``@gluon.jit`` kernel of the process is compiled by llopt;
frontend, autotuner, launcher and cache remain Triton's. Without a GPU,

    triton_llopt.simulate("cuda:90")

runs kernels on llopt's simulated machine, on PyTorch's CPU tensors or on NumPy arrays
(:class:`Array`), and reports races, reads of uninitialised memory and accesses out of bounds.

Importing this package imports neither Triton nor PyTorch nor NumPy.
"""

from triton_llopt import errors
from triton_llopt._llopt import VERSION as __version__
from triton_llopt.errors import (
    EnvironmentFailure,
    FallbackWarning,
    InternalError,
    InvalidKernelError,
    LloptError,
    NotSimulatedError,
    SanitizerError,
    SanitizerWarning,
    SimulationError,
    UnknownTargetError,
    UnsupportedError,
)
from triton_llopt.switch import disable, enable, enabled, simulate

__all__ = [
    "Array",
    "EnvironmentFailure",
    "FallbackWarning",
    "InternalError",
    "InvalidKernelError",
    "LloptError",
    "NotSimulatedError",
    "SanitizerError",
    "SanitizerWarning",
    "SimulationError",
    "UnknownTargetError",
    "UnsupportedError",
    "__version__",
    "disable",
    "enable",
    "enabled",
    "errors",
    "simulate",
]


def __getattr__(name):
    # The one public name that needs NumPy.
    if name == "Array":
        from triton_llopt.array import Array

        return Array
    raise AttributeError(f"module 'triton_llopt' has no attribute '{name}'")
