"""Pages of docs/ that are made from the code: `python -m pages` writes them again.

    docs/api.md        the public names, from their docstrings
    docs/claims.md     every claim, from the values that judge
    docs/metrics.md    every metric, from its card
    docs/images/concepts/*.svg    the pictures of the concept pages

Tests say that the pages are what the code makes of them; pictures are drawn anew here alone.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from heedful.analysis.faithfulness.metrics import metric_page
from pages.api import api_page
from pages.claims import claim_page

FOLDER = Path(__file__).parents[1] / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api_page,
    "claims.md": claim_page,
    "metrics.md": metric_page,
}
"""What each page is made by."""


def made(name: str) -> str:
    """The text of a page, as it is in its file."""
    return PAGES[name]().rstrip("\n") + "\n"
