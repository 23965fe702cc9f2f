"""Compiles a kernel with llopt from Python, through the C interface and nothing else.

    compile.py LIBRARY FILE TARGET...

prints, for each target, its name, the kernel's name, the shared memory it needs and the size of
its assembly. The targets are compiled by one thread each: ctypes releases the interpreter's lock
while C runs.
"""

import ctypes
import json
import sys
from concurrent.futures import ThreadPoolExecutor

ABI_VERSION = 1  # LLOPT_ABI_VERSION of llopt.h
OK = 0  # LLOPT_OK


class Llopt:
    """The functions of the library that are used here."""

    def __init__(self, path):
        handle, text, status = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
        library = ctypes.CDLL(path)  # RTLD_LOCAL: its symbols are nobody else's business
        for name, result, *arguments in [
            ("version", text),
            ("open", status, ctypes.c_uint32, ctypes.POINTER(handle)),
            ("set", status, handle, text, text),
            ("message", text, handle),
            (
                "compile",
                status,
                handle,
                text,
                text,
                ctypes.c_size_t,
                text,
                ctypes.POINTER(handle),
            ),
            ("artifact", handle, handle, ctypes.POINTER(ctypes.c_size_t)),
            ("metadata", text, handle),
            ("error", text, handle),
            ("release", None, handle),
            ("close", None, handle),
        ]:
            function = getattr(library, "llopt_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def compile_kernel(self, name, source, target, **options):
        """The artefact as bytes and the metadata as a dictionary.

        Raises ValueError with the compiler's own words.
        """
        compiler, outcome = ctypes.c_void_p(), ctypes.c_void_p()
        if self.open(ABI_VERSION, compiler) != OK:
            raise ValueError("the library has another version of the interface")
        try:
            for key, value in {"target": target, **options}.items():
                if self.set(compiler, key.encode(), str(value).encode()) != OK:
                    raise ValueError(self.message(compiler).decode())
            status = self.compile(
                compiler, name.encode(), source, len(source), None, outcome
            )
            if status != OK:
                raise ValueError((self.error(outcome) or b"no outcome").decode())
            size = ctypes.c_size_t()
            start = self.artifact(outcome, size)
            return ctypes.string_at(start, size.value), json.loads(self.metadata(outcome))
        finally:
            self.release(outcome)
            self.close(compiler)


def main(path, file, *targets):
    llopt = Llopt(path)
    with open(file, "rb") as stream:
        source = stream.read()
    print("llopt", llopt.version().decode())
    with ThreadPoolExecutor(len(targets)) as pool:
        outcomes = [pool.submit(llopt.compile_kernel, file, source, t) for t in targets]
        for target, outcome in zip(targets, outcomes):
            assembly, metadata = outcome.result()
            shared = metadata["shared"]
            print(f"{target}: {metadata['name']}, {shared} bytes shared, {len(assembly)} of text")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
