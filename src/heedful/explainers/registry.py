"""All explainers by name."""

from collections.abc import Mapping

from heedful.errors import UnknownName
from heedful.explainers.asked import ASKED
from heedful.explainers.attention import ATTENTION
from heedful.explainers.explainer import Explainer
from heedful.explainers.gradients import GRADIENTS
from heedful.explainers.rankings import RANKINGS
from heedful.explainers.values import VALUES_EXPLAINERS

EXPLAINERS: Mapping[str, Explainer] = {
    explainer.name: explainer for explainer in (*ATTENTION, *VALUES_EXPLAINERS, *GRADIENTS, *RANKINGS, *ASKED)
}


def explainer_cards() -> str:
    """All explainers as Markdown, for docs/explainers.md."""
    return "\n".join(map(_card, EXPLAINERS.values()))


def _card(one: Explainer) -> str:
    own = ", ".join(f"`{option}`" for option in one.known_options)
    in_name = f" (`{one.name}@{'.'.join(f'<{option}>' for option in one.at)}`)" if one.at else ""
    rows = {
        "formula": one.formula,
        "source": one.source,
        "signed": "yes" if one.signed else "no",
        "needs": f"{one.needs}, captum" if one.extra and one.extra not in one.needs else one.needs,
        "options": f"{own}{in_name}" if own else "none",
    }
    return "\n".join(
        [f"### `{one.name}`", "", one.words, "", *(f"- **{name}**: {text}" for name, text in rows.items()), ""]
    )


def find_explainer(by: str | Explainer) -> Explainer:
    """The explainer of that name; `name@number` takes another layer, head, or number of samples or steps."""
    if isinstance(by, Explainer):
        return by
    name, at, _ = by.partition("@")
    if name not in EXPLAINERS:
        raise UnknownName("explainer", name, EXPLAINERS)
    return EXPLAINERS[name].with_name(by) if at else EXPLAINERS[name]
