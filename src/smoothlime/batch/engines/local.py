"""The local engine: this process, or several that are started for the job and started again if they die."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import sys
import threading
import types
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument, WrongType
from ..blocks import Block
from ..reference import ModelReference, one_thread
from ..work import Done, Job, explain_block
from .ahead import ahead
from .wire import pack, unpack
from .workers import TRIES, Workers, killed_too_often

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

GUARD = (
    "define the model in a module that can be imported; or, in a script, put the call under"
    " `if __name__ == '__main__':`; or use workers=1"
)


def run_local(
    model: ModelReference, job: Job, blocks: Iterator[Block], workers: Workers
) -> Generator[Done, None, None]:
    """Blocks explained one after the other in this process, or at the same time in several."""
    if workers.count is not None and workers.count > 1:
        yield from _Pool(model, job, workers.count).run(blocks)
        return
    loaded = model.load()
    for block in ahead(blocks, 1):
        with one_thread():
            done = explain_block(loaded, job, block)
        yield done


class _Pool:
    """Processes, each with a thread here that hands it one block after the other."""

    def __init__(self, model: ModelReference, job: Job, workers: int) -> None:
        self.payload = _pickled(model, job)
        self.job, self.workers = job, workers
        self.is_over = threading.Event()
        self.blocks: queue.Queue[Block | None] = queue.Queue(workers)
        self.answers: queue.Queue[Any] = queue.Queue(2 * workers)
        self.starting = threading.Lock()

    def run(self, blocks: Iterator[Block]) -> Generator[Done, None, None]:
        """What came of each block, as it comes."""
        threads = [threading.Thread(target=self._attend, daemon=True) for _ in range(self.workers)]
        threads.append(threading.Thread(target=self._feed, args=(blocks,), daemon=True))
        for each in threads:
            each.start()
        working = self.workers
        try:
            while working:
                answer = self._next()
                if isinstance(answer, BaseException):
                    raise answer
                if answer is None:
                    working -= 1
                else:
                    yield answer
        finally:
            self.is_over.set()
            for each in threads:
                each.join()

    def _next(self) -> Any:
        while True:  # with a timeout, so that Ctrl-C is seen on every system
            with contextlib.suppress(queue.Empty):
                return self.answers.get(timeout=0.5)

    def _feed(self, blocks: Iterator[Block]) -> None:
        try:
            for block in blocks:
                self._put(self.blocks, block)
                if self.is_over.is_set():
                    return
            for _ in range(self.workers):
                self._put(self.blocks, None)
        except BaseException as err:  # raised again in `run`
            self._put(self.answers, err)

    def _put(self, where: Any, item: Any) -> None:
        while not self.is_over.is_set():
            with contextlib.suppress(queue.Full):
                where.put(item, timeout=0.1)
                return

    def _attend(self) -> None:
        """One process kept alive and busy until there is nothing left."""
        worker: _Worker | None = None
        try:
            while not self.is_over.is_set():
                try:
                    block = self.blocks.get(timeout=0.1)
                except queue.Empty:
                    continue
                if block is None:
                    break
                worker, answer = self._explain(worker, block)
                self._put(self.answers, answer)
            self._put(self.answers, None)
        except BaseException as err:  # raised again in `run`
            self._put(self.answers, err)
        finally:
            if worker is not None:
                worker.stop()

    def _explain(self, worker: _Worker | None, block: Block) -> tuple[_Worker | None, Any]:
        """What came of a block, and the process that is left."""
        for _ in range(TRIES):
            if worker is None:
                with self.starting:  # the environment is changed for a moment
                    worker = _Worker.start(self.payload)
                worker.check_ready(self.is_over)
            answer = worker.ask(block, self.is_over)
            if not isinstance(answer, _Died):
                return worker, answer
            worker = None
        return None, killed_too_often(self.job, block, answer.why)


@dataclass(frozen=True, slots=True)
class _Died:
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    """A process, and this end of the pipe to it."""

    process: Any
    pipe: Connection

    @classmethod
    def start(cls, payload: bytes) -> _Worker:
        """A new Python, which has nothing of this process but the payload, and computes with one thread."""
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there,), daemon=True)
        with surroundings(has_main=b"__main__" in payload):
            process.start()
        there.close()
        with contextlib.suppress(OSError):  # it died at once: seen when its answer is waited for
            here.send_bytes(payload)
        return cls(process, here)

    def check_ready(self, is_over: threading.Event) -> None:
        """Wait until it has the model; an error where it cannot have it, which no second try would mend."""
        answer = self._receive(is_over)
        if isinstance(answer, _Died):
            msg = f"a worker process ended before it had the model ({answer.why}): {GUARD}"
            raise InvalidArgument(msg, argument="workers")
        if answer is not None:
            msg = f"model cannot be loaded in another process: {answer}. {GUARD[0].upper()}{GUARD[1:]}"
            raise WrongType(msg, argument="model")

    def ask(self, block: Block, is_over: threading.Event) -> Any:
        """What came of a block: done, what it raised, or how the process died."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(pack(block))
        return self._receive(is_over)

    def _receive(self, is_over: threading.Event) -> Any:
        try:
            while not self.pipe.poll(0.1):
                if is_over.is_set():
                    return _Died("the job is over")
            return unpack(self.pipe.recv_bytes())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            return _Died(f"signal {-code}" if code is not None and code < 0 else f"exit code {code}")

    def stop(self) -> None:
        """End it."""
        self.pipe.close()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextlib.contextmanager
def surroundings(*, has_main: bool) -> Iterator[None]:
    """What a new process sees: libraries told to use one thread, and no main script, if none is needed.

    A new process would run the script first, to have what it defines; without a guard, that would begin the job again.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    main = sys.modules["__main__"]
    os.environ.update(dict.fromkeys(THREADS, "1"))
    if not has_main:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _pickled(model: ModelReference, job: Job) -> bytes:
    try:
        return pickle.dumps((model, job))
    except Exception as err:  # a model may raise anything here
        msg = f"model cannot be sent to other processes: {type(err).__name__}: {err}. {GUARD[0].upper()}{GUARD[1:]}"
        raise WrongType(msg, argument="model") from err


def _work(pipe: Connection) -> None:
    """What a process does: have the model, then block after block until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    try:
        try:
            reference, job = pickle.loads(pipe.recv_bytes())
            model = reference.load()
        except (EOFError, OSError):
            raise
        except Exception as err:  # of a user's model
            pipe.send_bytes(pack(f"{type(err).__name__}: {err}"))
            return
        pipe.send_bytes(pack(None))
        while True:
            block = unpack(pipe.recv_bytes())
            try:
                with one_thread():
                    answer: Any = explain_block(model, job, block)
            except Exception as err:  # raised again in the process that asked
                answer = err
            pipe.send_bytes(pack(answer))
    except (EOFError, OSError):  # nobody is there any more
        return
