"""Compilations in processes of their own, so that no crash of LLVM or MLIR ends the user's process.

A process that has threads, locks and a GPU cannot split in two: its child would have all of their states and nobody to
change them. So another one, the *spawner*, is started once. It has the library and a single thread, and does nothing but
split in two for each compilation. The child compiles and hands over what came out, by a pipe; the spawner watches its
memory and says how it ended. A spawner is used by one thread at a time; there are as many as threads that compile at the
same time.

To whoever compiles, a crash is an :class:`~triton_llopt.InternalError` with a file that shows it, and a compilation that
needs more memory than its budget an :class:`~triton_llopt.InvalidKernelError`.
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

# Seconds between two looks at the memory of a compilation.
_INTERVAL = 0.02
# MiB that a compilation may have, unless LLOPT_MAX_MEMORY says another number.
_MEMORY = 1024
_SPAWNER = "import sys; sys.path.insert(0, sys.argv[1]); from triton_llopt import isolation; isolation.serve()"


@dataclass(frozen=True)
class Compiled:
    """What ``_llopt.compile`` returns, as it passes from one process to another."""

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
    """``_llopt.compile`` in a process of its own."""
    try:
        return run(_compile, source, name, target, forms, **options)
    except InternalError as error:
        if "reproducer" not in error.text and "written to" not in error.text:
            with tempfile.NamedTemporaryFile(prefix="llopt-reproducer-", suffix=".mlir", delete=False) as file:
                file.write(f"// llopt {_llopt.VERSION}\n// {error.text}\n".encode() + source)
            error.text += f"\nnote: please report this with the input; it was written to {file.name}"
        raise


def run(function, *arguments, **keywords):
    """Calls a function in a process of its own; returns what it returns and raises what it raises."""
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
        # Whoever interrupts does not wait for the answer, and nobody else must read it.
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
    # The spawners are those of the process that split.
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
        # An interrupt at the keyboard is for the process that asks.
        start_new_session=True,
    )


def serve():
    """What a spawner does until nobody asks any more."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What libraries print is no answer.
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
    """Calls the function, hands over what came out, and ends the process without any clearing up."""
    try:
        outcome = True, function(*arguments, **keywords)
    except Exception as error:
        outcome = False, error
    with open(write, "wb") as file:
        pickle.dump(outcome, file)
    os._exit(0)


def _watched(child, read, memory):
    """The status of the child's end (of a signal: its negative), whether it had too much memory, and its answer."""
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
    """Bytes of memory that a process has for itself, where the system says."""
    try:
        with open(f"/proc/{process}/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGESIZE")
