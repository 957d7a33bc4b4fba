"""Sessions, batches and streams after a fork."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import pytest

import haul
from conftest import run_python


def _fetch(url: str) -> str:
    return haul.get(url).text


_shared = haul.Session()


def _fetch_shared(url: str) -> str:
    return _shared.get(url).text


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_can_use_an_inherited_session(pages: Any, method: str) -> None:
    assert _fetch_shared(f"{pages.url}/parent") == "page /parent"
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        urls = [f"{pages.url}/{i}" for i in range(20)]
        for work in (_fetch, _fetch_shared):
            assert pool.map(work, urls) == [f"page /{i}" for i in range(20)]
    # The children have not used or closed the connection of the parent.
    assert _fetch_shared(f"{pages.url}/parent") == "page /parent"


def test_fork_during_fetch_many_affects_neither_process(pages: Any) -> None:
    results = haul.fetch_many([f"{pages.url}/{i}" for i in range(50)], 4)
    assert next(results).text == "page /0"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = [result.text for result in haul.fetch_many([f"{pages.url}/c{i}" for i in range(10)], 4)]
            code = 0 if found == [f"page /c{i}" for i in range(10)] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [result.text for result in results] == [f"page /{i}" for i in range(1, 50)]


@pytest.mark.parametrize("module", ["haul.many", "haul.aio"])
def test_fork_waits_for_imports_in_other_threads(module: str) -> None:
    out = run_python(
        """
        import importlib, os, sys, threading, haul
        name = sys.argv[1]
        from importlib.machinery import SourceFileLoader
        begun, released = threading.Event(), threading.Event()
        own_exec = SourceFileLoader.exec_module

        def exec_module(self, module):
            if module.__name__ == name:
                begun.set()
                released.wait(20)
            own_exec(self, module)

        own_import = importlib.import_module

        def import_module(wanted):
            if wanted == name:
                released.set()
            return own_import(wanted)

        SourceFileLoader.exec_module = exec_module
        threading.Thread(target=__import__, args=[name]).start()
        begun.wait(20)
        importlib.import_module = import_module
        haul._FORK_WAIT = 20
        child = os.fork()
        if child == 0:
            os._exit(0 if name.partition(".")[2] in vars(haul) else 1)
        released.set()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        module,
    )
    assert out == "0\n"


#: A thread whose import of a module ends after the fork.
_STUCK_IMPORT = """
import os, signal, sys, threading, haul
from importlib.machinery import SourceFileLoader
begun, released = threading.Event(), threading.Event()
own_exec = SourceFileLoader.exec_module

def exec_module(self, module):
    if module.__name__ == sys.argv[1] and not begun.is_set():
        begun.set()
        stay()
    own_exec(self, module)

def fork():
    SourceFileLoader.exec_module = exec_module
    threading.Thread(target=__import__, args=[sys.argv[1]]).start()
    begun.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        __import__(sys.argv[1])
        os._exit(0)
    released.set()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("module", ["haul.many", "haul.aio"])
def test_child_imports_anew_what_stayed_unfinished(module: str) -> None:
    code = """
stay = lambda: released.wait(20)
haul._FORK_WAIT = 0.01
fork()
"""
    assert run_python(_STUCK_IMPORT + code, module) == "0\n"


def test_import_that_needs_logging_does_not_stop_fork() -> None:
    # The hooks that are registered last run first: that of logging takes its lock before haul waits.
    code = """
held = threading.Event()
assert "logging" not in sys.modules
os.register_at_fork(before=held.set)
import logging

def stay():
    held.wait(20)
    logging.getLogger("in the import")

fork()
"""
    assert run_python(_STUCK_IMPORT + code, "haul.many") == "0\n"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_child_cannot_read_a_stream_of_its_parent(pages: Any, secure_pages: Any, scheme: str) -> None:
    url = f"{(secure_pages if scheme == 'https' else pages).url}/bytes/3000000"
    with haul.get(url, stream=True, verify=False) as response:
        begun = response.raw.read(1000)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                response.raw.read()
            except haul.exceptions.ChunkedEncodingError as error:
                status = 0 if "belongs to the parent" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(begun + response.content) == 3_000_000
