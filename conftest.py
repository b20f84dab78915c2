"""Before a test imports anything of the package: its functions are to be checked."""

from tests.checking import check

check("heedful")
