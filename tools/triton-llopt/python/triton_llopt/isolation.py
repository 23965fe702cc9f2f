"""Compilations in separate processes, so that no crash of LLVM or MLIR ends the user's process.

A process with threads, locks and a GPU must not fork: its child would have the states of all locks but not the
threads that release them. So another process, the *spawner*, is started once. It has the library and a single thread,
and only forks for each compilation. The child compiles and writes the result to a pipe; the spawner watches its
memory and reports how it ended. A spawner is used by one thread at a time; there are as many as threads that compile
at the same time.

For the caller, a crash is an :class:`~triton_llopt.InternalError` with a file that reproduces it, and a compilation
that needs more memory than its budget an :class:`~triton_llopt.InvalidKernelError`.
"""

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from triton_llopt import _llopt
from triton_llopt.errors import EnvironmentFailure, InternalError, InvalidKernelError

# Seconds between two checks of the memory of a compilation.
_INTERVAL = 0.02
# MiB that a compilation may use, unless LLOPT_MAX_MEMORY gives another number.
_MEMORY = 1024
_SPAWNER = "import sys; sys.path.insert(0, sys.argv[1]); from triton_llopt import isolation; isolation.serve()"


@dataclass(frozen=True)
class Compiled:
    """The result of ``_llopt.compile``, in a form that can be sent between processes."""

    texts: dict
    metadata: str
    timings: str
    warnings: list

    def text(self, form):
        return self.bytes(form).decode()

    def bytes(self, form):
        return self.texts[form]


def _compile(source, name, target, forms, **options):
    compiled = _llopt.compile(source, name, target, forms, **options)
    texts = {form: compiled.bytes(form) for form in forms}
    return Compiled(texts, compiled.metadata, compiled.timings, compiled.warnings)


def compile(source, name, target, forms, **options):
    """``_llopt.compile`` in a separate process."""
    try:
        return run(_compile, source, name, target, forms, **options)
    except InternalError as error:
        if "reproducer" not in error.text and "written to" not in error.text:
            with tempfile.NamedTemporaryFile(prefix="llopt-reproducer-", suffix=".mlir", delete=False) as file:
                file.write(f"// llopt {_llopt.VERSION}\n// {error.text}\n".encode() + source)
            error.text += f"\nnote: please report this with the input; it was written to {file.name}"
        raise


def run(function, *arguments, **keywords):
    """Calls a function in a separate process; returns its result or raises its exception."""
    memory = int(os.environ.get("LLOPT_MAX_MEMORY", _MEMORY))
    spawner = _taken()
    try:
        pickle.dump((function, arguments, keywords, memory), spawner.stdin)
        spawner.stdin.flush()
        status, too_large, answer = pickle.load(spawner.stdout)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        spawner.kill()
        spawner.wait()
        raise EnvironmentFailure(f"error: the process that starts compilations has gone: {error}") from error
    except BaseException:
        # An interrupted caller does not wait for the answer, and no other caller must read it.
        spawner.kill()
        spawner.wait()
        raise
    with _lock:
        _idle.append(spawner)
    if too_large:
        raise InvalidKernelError(
            f"error: the compilation needs more than {memory} MiB of memory, its budget (LLOPT_MAX_MEMORY)"
        )
    if status < 0:
        raise InternalError(f"error: bug in llopt: the compilation was ended by {signal.Signals(-status).name}")
    returned, value = pickle.loads(answer)
    if returned:
        return value
    raise value


_idle = []
_lock = threading.Lock()


def _after_fork():
    # After a fork, the spawners belong to the parent.
    global _lock
    _idle.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _taken():
    with _lock:
        if _idle:
            return _idle.pop()
    return subprocess.Popen(
        [sys.executable, "-c", _SPAWNER, str(Path(__file__).parent.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # An interrupt at the keyboard is for the caller's process.
        start_new_session=True,
    )


def serve():
    """The work of a spawner, until its input is closed."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # The output of libraries must not be mixed with answers.
    os.dup2(2, 1)
    while True:
        try:
            function, arguments, keywords, memory = pickle.load(requests)
        except EOFError:
            return
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _answer(write, function, arguments, keywords)
        os.close(write)
        pickle.dump(_watched(child, read, memory), answers)
        answers.flush()


def _answer(write, function, arguments, keywords):
    """Calls the function, writes its outcome, and ends the process without exit handlers."""
    try:
        outcome = True, function(*arguments, **keywords)
    except Exception as error:
        outcome = False, error
    with open(write, "wb") as file:
        pickle.dump(outcome, file)
    os._exit(0)


def _watched(child, read, memory):
    """The exit status of the child (minus the number of a signal), whether it exceeded its memory, and its answer."""
    answer, too_large = [], False
    while True:
        if select.select([read], [], [], _INTERVAL)[0]:
            part = os.read(read, 1 << 20)
            if not part:
                break
            answer.append(part)
        if not too_large and _memory(child) > memory << 20:
            too_large = True
            os.kill(child, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), too_large, b"".join(answer)


def _memory(process):
    """Bytes of private memory of a process, where the system provides them."""
    try:
        with open(f"/proc/{process}/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGESIZE")
