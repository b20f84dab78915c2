"""Broken input at every door through which data from elsewhere come in: each must end in a result or in a sentence."""
