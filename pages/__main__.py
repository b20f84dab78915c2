"""Write every page and picture that is made from the code."""

import sys

from pages import FOLDER, PAGES, made
from pages.pictures import PICTURES, save


def main() -> None:
    for name in PAGES:
        (FOLDER / name).write_text(made(name), encoding="utf-8")
        print(f"docs/{name}", file=sys.stderr)
    folder = FOLDER / "images" / "concepts"
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        save(name, folder / f"{name}.svg")
        print(f"docs/images/concepts/{name}.svg", file=sys.stderr)


if __name__ == "__main__":
    main()
