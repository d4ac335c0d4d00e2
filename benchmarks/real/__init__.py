"""What models are worth on real data, with the figures that issue 17 asks for: ``python -m benchmarks.real``.

One file a data set. Each returns parts with the sets that models learn from, in one or more *views* (the same sets with
other features), the people who answered, and the folds; and names the models to fit. Everything that is chosen is
chosen on training sets.
"""
