"""Groups of commands that `heedful.cli` registers. Importing them loads nothing heavy."""
