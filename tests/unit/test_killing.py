"""Programs that a test lets go on step by step."""

from __future__ import annotations

from tests.killing import Start

TWO_THREADS = """
import threading
from tests.killing import step, tell

def work(name):
    step(name)
    tell(f"{name} went on")

threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_two_releases_at_once_let_two_waiting_threads_go_on(start: Start) -> None:
    program = start("-c", TWO_THREADS)
    program.wait_for_lines(2)
    program.release(2)
    assert sorted(program.wait_for_lines(4)[2:]) == ["a went on", "b went on"]
