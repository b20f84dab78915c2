"""The page that people play with, and the same as an API: models that are ready, served to this computer alone."""
