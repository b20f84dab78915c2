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


def find_explainer(by: str | Explainer) -> Explainer:
    """The explainer of that name; `name@number` takes another layer, head, or number of samples or steps."""
    if isinstance(by, Explainer):
        return by
    name, at, _ = by.partition("@")
    if name not in EXPLAINERS:
        raise UnknownName("explainer", name, EXPLAINERS)
    return EXPLAINERS[name].with_name(by) if at else EXPLAINERS[name]
