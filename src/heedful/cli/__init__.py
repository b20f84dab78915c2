"""The command line: parse, call one public function, print. Nothing heavy is imported before it is needed."""

import os
import resource
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.audit import attack, audit, erase, explain, train
from heedful.cli.data import data_app, doctor
from heedful.cli.explainers import explainers_app
from heedful.cli.faithfulness import faithfulness
from heedful.cli.help import add_endings, ending
from heedful.cli.report import report
from heedful.cli.runs import runs_app
from heedful.cli.serve import serve
from heedful.cli.sweep import calibrate, reproduce, sweep
from heedful.cli.traces import trace
from heedful.cli.zoo import zoo_app
from heedful.errors import HeedfulError, reason
from heedful.version import __version__

app = typer.Typer(
    help="Can you trust attention as an explanation of this text classifier, on this data?",
    no_args_is_help=True,
    epilog=ending(),
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would double the time that --help takes
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
for command in (
    audit, train, trace, explain, erase, attack, faithfulness, report, serve, reproduce, sweep, calibrate, doctor,
):  # fmt: skip
    app.command()(command)
app.add_typer(data_app, name="data")
app.add_typer(explainers_app, name="explainers")
app.add_typer(runs_app, name="runs")
app.add_typer(zoo_app, name="zoo")
add_endings(app)

UNREAD = 141
"""The exit code where nobody reads the output any more: 128 and the number of the signal of a closed pipe."""


UNFORESEEN = 70
"""The exit code of an error inside the program, as sysexits has it."""


MORE_MEMORY = (
    "Give this process more (`ulimit -v`, the limit of its container), or it less to do: smaller data or models, fewer "
    "workers (-j). What was finished before is kept."
)
_NO_MEMORY = ("allocate memory", "map segment", "out of memory")
"""What libraries say that are refused memory."""


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"heedful {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; an error the user can mend is one sentence and exit code 1.

    A reader of the output that went away, as `head` does when it has seen enough, is no error: the command ends without
    a word, with the exit code that shells give to one that a closed pipe ended.
    """
    try:
        _run()
    except BrokenPipeError:
        _end_unread()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer and rich turn it into exit code 1
            _end_unread()
        raise


def _run() -> None:
    try:
        app(prog_name="heedful")  # as it is installed, also where it is called as a module
    except HeedfulError as error:
        print(f"heedful: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        raise
    except Exception as error:
        if _is_short_of_memory(error):
            print(f"heedful: memory ran out ({reason(error)}). {MORE_MEMORY}", file=sys.stderr)
            sys.exit(1)
        _end_unforeseen(error)
    finally:
        sys.stdout.flush()  # here, and not when the interpreter ends: that would complain of a closed pipe


def _is_short_of_memory(error: BaseException | None) -> bool:
    """Also in the words of libraries; where there is a limit, one that cannot be loaded is short of it too."""
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    while error is not None:
        loading = limited and isinstance(error, (ImportError, OSError))
        if loading or isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end_unforeseen(error: Exception) -> None:
    """A defect of heedful: one sentence here, and the details in a file that only its owner can read."""
    details = Path(tempfile.mkdtemp(prefix="heedful-")) / "details.txt"
    called = f"heedful {__version__}, Python {sys.version.split()[0]}, {sys.argv[1:]}"
    details.write_text(f"{called}\n{''.join(traceback.format_exception(error))}", encoding="utf-8", errors="replace")
    print(
        f"heedful: this is a defect of heedful, not of what you gave: {type(error).__name__}, {reason(error)}. Details "
        f"are in '{details}'; please report it with that file. What was finished before is kept.",
        file=sys.stderr,
    )
    sys.exit(UNFORESEEN)


def _end_unread() -> None:
    """What is still to be written goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(UNREAD)
