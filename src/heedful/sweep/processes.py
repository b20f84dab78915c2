"""Processes of this machine that share out calls of a function, and that end with the one that started them."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def processes(workers: int) -> ProcessPoolExecutor:
    """So many, begun afresh: nothing of this process is copied into them, neither threads nor what they hold."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Whoever started this process may be killed; it then ends too, whatever it is doing."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
