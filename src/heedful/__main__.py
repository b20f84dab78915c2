"""The command `heedful`, also as `python -m heedful`."""

import _signal as signal  # type: ignore[import-not-found]  # what signal imports takes longer than all the rest
import os
import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl+C ended, as shells have it."""


def main() -> None:
    """Run the command line. Ctrl+C ends it without a word, also while libraries are imported, when nothing is begun."""
    heeded = signal.getsignal(signal.SIGINT)
    if heeded is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        from heedful.cli import main as run

        signal.signal(signal.SIGINT, heeded)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
