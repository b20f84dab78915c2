"""The application: the page's files from a fixed table, and the API."""

import json
import logging
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from heedful.errors import HeedfulError, UnknownName
from heedful.report import plain
from heedful.studies.attack import Kind
from heedful.version import __version__
from heedful.web import forms
from heedful.web.guard import Guard, Refused
from heedful.web.limits import Hosts, Limits
from heedful.web.served import Answer, Attack, Served, Wanted
from heedful.web.work import Check, Left, Work

API = "/api/v1"
HTML, CSS, SCRIPT, SVG = "text/html", "text/css", "text/javascript", "image/svg+xml"
FILES = {
    "/": ("index.html", HTML),
    "/icon.svg": ("icon.svg", SVG),
    "/style.css": ("style.css", CSS),
    **{
        f"/{name}.js": (f"{name}.js", SCRIPT)
        for name in ("main", "api", "dom", "erasing", "other", "scores", "state", "strips", "words")
    },
}
"""Every path of the page, and the file of the package that stands for it. There are no others."""

QUICK = 2_000
"""Letters of a text that is explained without a thread: handing over costs more than a millisecond of work."""

LEFT = 499
ODD = "Something went wrong inside heedful. The server's own output says more."
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": forms.Problem, "description": words}
    for status, words in {
        400: "Not JSON, or no address.",
        403: "A page of another server.",
        404: "No such model.",
        408: "The body takes too long.",
        413: "Too long.",
        421: "Another name of the server.",
        422: "Something that cannot be used.",
        429: "Too often; Retry-After says when.",
        503: "Too much at once; Retry-After says when.",
    }.items()
}
log = logging.getLogger("heedful.web")


def create_app(served: Sequence[Served], *, hosts: Hosts, limits: Limits) -> Guard:
    """The application (ASGI) behind its guard."""
    app = FastAPI(
        title="heedful",
        version=__version__,
        summary="What a text classifier attends to, and what it uses.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        responses=REFUSALS,
    )
    _answer_errors(app)
    _serve_api(app, {one.name: one for one in served}, limits)
    _serve_files(app)
    return Guard(app, hosts, limits)


def _serve_files(app: FastAPI) -> None:
    folder = resources.files("heedful.web") / "static"
    for path, (name, kind) in FILES.items():
        app.add_api_route(path, _file((folder / name).read_bytes(), kind), include_in_schema=False, methods=["GET"])


def _file(content: bytes, kind: str) -> Callable[[], Any]:
    async def send() -> Response:
        return Response(content, media_type=kind)

    return send


def _answer_errors(app: FastAPI) -> None:
    async def mended(_: Request, error: Exception) -> Response:
        return problem(422, str(error))

    async def unknown(_: Request, error: Exception) -> Response:
        return problem(404, str(error))

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return problem(error.status, str(error), error.headers)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, _sentence(error))

    async def usual(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem(error.status_code, f"{error.detail}.", error.headers)

    async def left(_: Request, __: Exception) -> Response:
        return Response(status_code=LEFT)

    async def odd(_: Request, __: Exception) -> Response:
        return problem(500, ODD)

    for kind, handler in {
        HeedfulError: mended,
        UnknownModel: unknown,
        Refused: refused,
        RequestValidationError: invalid,
        HTTPException: usual,
        Left: left,
        Exception: odd,
    }.items():
        app.add_exception_handler(kind, handler)


class UnknownModel(UnknownName):
    """A model that is not served."""


def _sentence(error: RequestValidationError) -> str:
    """What is wrong, without what was sent."""
    wrong = error.errors()[0]
    if wrong["type"] == "json_invalid":
        return "The body is no JSON."
    place = ".".join(str(part) for part in wrong["loc"] if part not in {"body", "query"})
    return f"{place or 'The body'}: {wrong['msg']}."


def problem(status: int, sentence: str, headers: Any = None) -> Response:
    return Response(json.dumps({"error": sentence}), status_code=status, headers=headers, media_type="application/json")


def encoded(value: Answer) -> bytes:
    """Strict JSON: what is not a number is null."""
    try:
        content = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError):
        content = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return content.encode("utf-8", "replace")


def answered(value: Answer) -> Response:
    return Response(encoded(value), media_type="application/json")


def _serve_api(app: FastAPI, served: dict[str, Served], limits: Limits) -> None:
    work = Work(limits.threads, limits.waiting)

    async def worked(request: Request, function: Callable[[Check], Answer]) -> Response:
        """The answer, computed and written in a thread: a long one takes a while to write, too."""
        return Response(await work.do(request, lambda check: encoded(function(check))), media_type="application/json")

    def model(name: str) -> Served:
        if name and name not in served:
            raise UnknownModel("model", name, served)
        return served[name or next(iter(served))]

    @app.get(f"{API}/runs", response_model=forms.Runs)
    async def runs() -> Response:
        """The models that are served, what they offer, and texts to start from."""
        bounds = {"words": limits.words, "body_bytes": limits.body_bytes}
        return answered({"heedful": __version__, "runs": [one.summary() for one in served.values()], "limits": bounds})

    @app.get(f"{API}/tokens", response_model=forms.TokenTable)
    async def tokens(
        request: Request,
        name: Annotated[str, Query(alias="model", max_length=300)] = "",
        find: Annotated[str, Query(max_length=200, description="A part of the word.")] = "",
        by: Annotated[str, Query(max_length=100, description="The column to sort by.")] = "",
        descending: bool = True,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> Response:
        """Words of a model's vocabulary: counts per class, group, polarity and attention scores."""
        found = model(name)
        wanted = Wanted(find=find, by=by, descending=descending, offset=offset, limit=limit)
        return await worked(request, lambda _: found.tokens(wanted))

    @app.post(f"{API}/explain", response_model=forms.Explained)
    async def explain(form: forms.TextForm, request: Request) -> Response:
        """What is attended to and what is used in a text."""
        found = model(form.model)
        if found.quick and len(form.text) <= QUICK:
            return answered(found.explain(form.text, lambda: None))
        return await worked(request, lambda check: found.explain(form.text, check))

    @app.post(f"{API}/erase", response_model=forms.Erased)
    async def erase(form: forms.EraseForm, request: Request) -> Response:
        """What is said without some units, and how far each ranking goes until the decision flips."""
        found = model(form.model)
        rankings = found.rankings if form.rankings is None else form.rankings

        def do(check: Check) -> Answer:
            return found.erase(form.text, form.positions, rankings, form.seed, check)

        if found.quick and len(form.text) <= QUICK and not rankings:
            return answered(do(lambda: None))
        return await worked(request, do)

    @app.post(f"{API}/minimum", response_model=forms.Minimum)
    async def minimum(form: forms.TextForm, request: Request) -> Response:
        """A smallest set of units whose erasure flips the decision, provably."""
        found = model(form.model)
        return await worked(request, lambda _: found.minimum(form.text))

    @app.post(f"{API}/adversary", response_model=forms.Adversary)
    async def adversary(form: forms.AdversaryForm, request: Request) -> Response:
        """The attention farthest from the model's own that gives the same output, or one within epsilon of it."""
        found, kind = model(form.model), Kind.asked(form.epsilon, form.floor, form.without_top)
        attack = Attack(kind=kind, shuffles=form.shuffles, seed=form.seed)
        return await worked(request, lambda _: found.adversary(form.text, attack))
