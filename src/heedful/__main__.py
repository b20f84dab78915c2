"""`python -m heedful`"""

from heedful.cli import main

if __name__ == "__main__":
    main()
