"""Processes that share out calls end with the process that started them, however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os
import time
from heedful.sweep.processes import processes

if __name__ == "__main__":
    with processes(2) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        list(pool.map(time.sleep, [600, 600]))
"""


def alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc")
def test_they_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 20
    while alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(child)
    parent.stdout.close()
