"""The package's version, and the version of everything that can change a result."""

__version__ = "0.1.0"

RESULTS_VERSION = 7
"""Raised whenever the same configuration would give other numbers; part of a run's identity."""
