"""heedful: can you trust attention as an explanation of this text classifier, on this data?"""
