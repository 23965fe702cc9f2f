"""Triton's names, or stand-ins where Triton is not installed and kernels come as stored files."""

try:
    import triton
    import triton.language as tl
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl
    from triton.language.extra import libdevice
except ImportError:

    class Absent:
        """A stand-in for anything that a kernel's definition uses."""

        def __getattr__(self, name):
            return self

        def __call__(self, *arguments, **options):
            return self

    triton = tl = gluon = gl = libdevice = Absent()

__all__ = ["gl", "gluon", "libdevice", "tl", "triton"]
