"""Tables that show themselves: data frames as any other, with a view of what they are about.

What is computed from one (rows, columns, copies) is a plain data frame again, of which nothing is claimed.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import pandas as pd
from pandas.plotting import PlotAccessor

from heedful.notebook import View, Viewed

Look = Callable[[pd.DataFrame], View]


class _Plots(PlotAccessor):
    """The plots of pandas; called with nothing but axes, the picture of the view."""

    _parent: "ShownTable"

    def __call__(self, *args: Any, **how: Any) -> Any:
        if args or how.keys() - {"ax"}:
            return super().__call__(*args, **how)
        return self._parent.view.plot(how.get("ax"))


class _AnyTable(type):
    """Every data frame counts as one, so that tables are compared by what they hold."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, pd.DataFrame)


class ShownTable(Viewed, pd.DataFrame, metaclass=_AnyTable):
    """A data frame with a view."""

    _look: Look
    _metadata: ClassVar = ["_look"]
    """Attributes that pandas keeps; it takes no others."""

    @classmethod
    def of(cls, table: pd.DataFrame, look: Look) -> "ShownTable":
        """The table, shown by a function of it."""
        shown = cls(table)
        shown._look = look
        return shown

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def view(self) -> View:
        return self._look(self)

    @property
    def plot(self) -> _Plots:
        """`plot()` and `plot(ax=…)` draw the view and return the axes; all else is as pandas has it."""
        return _Plots(self)

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame(self)

    def to_html(self, *args: Any, **how: Any) -> Any:
        """The view as a page of HTML; with arguments, the table as pandas writes it."""
        return pd.DataFrame(self).to_html(*args, **how) if args or how else self.view.page()
