"""Sun & Lu 2020, "Understanding Attention for Text Classification": its runs, tables, figures and claims."""
