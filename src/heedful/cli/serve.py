"""`heedful serve`: the page that people play with, and its API."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import StoreRoot, find_run
from heedful.files import is_file
from heedful.store import MANIFEST

if TYPE_CHECKING:
    from heedful.pipeline import Run
    from heedful.web.served import Served


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|MODEL…",
            help="Runs (a directory, or the beginning of a name in the store) and folders of transformers classifiers.",
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="Who can ask; by default this computer alone.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="A further name by which the server may be called.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Requests a second of each client; default: 500, or 50 with a --host that others can reach."),
    ] = None,
    words: Annotated[int, typer.Option(min=1, help="Words that a text may have.")] = 20_000,
    store: StoreRoot = Path("runs"),
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a page to play with texts: erase words, see decisions flip, compare models. Ends with Ctrl+C."""
    from heedful.web.limits import Hosts, is_local
    from heedful.web.serving import address, limits_for, listen, make_server

    limits, found = limits_for(host, rate, words), [_find(name, store) for name in models]
    with listen(host, port) as taken:  # before models are read, which may take a while
        served = [_ready(one, limits.words) for one in found]
        server = make_server(served, hosts=Hosts.of(host, tuple(allow_host or ())), limits=limits)
        if not is_local(host):
            print(
                f"note: everyone who can reach {host} can ask this server, without a password and unencrypted.",
                file=sys.stderr,
            )
        for one in served:
            print(f"{one.name}: {one.title}" + (f" ({one.notice})" if one.notice else ""))
        print(f"heedful serves {address(taken)} (Ctrl+C ends it)", flush=True)
        if open_page:
            import webbrowser

            webbrowser.open(address(taken))
        server.run(sockets=[taken])


def _find(name: str, store: Path) -> "Run | Path":
    """A run, or a folder that holds a transformers model and no run."""
    place = Path(name)
    if is_file(place / "config.json") and not is_file(place / MANIFEST):
        return place
    return find_run(name, store)


def _ready(found: "Run | Path", words: int) -> "Served":
    from heedful.web.opening import serve_run, serve_subject

    return serve_subject(found, words=words) if isinstance(found, Path) else serve_run(found, words=words)
