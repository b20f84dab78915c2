"""Serrano & Smith 2019, Is Attention Interpretable?: the runs, tables, figures and claims of its study."""
