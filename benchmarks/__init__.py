"""Measurements of speed: ratios against a plain baseline in the same run, printed as tables. `make bench` runs them."""
