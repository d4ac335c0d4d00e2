"""The pretrained net against tuned rivals on few labelled sets: ``python -m benchmarks.pretrained``.

People (households, seasons) are held out. Settings of rivals are chosen by inner folds of the labelled sets, which keep
people together. ``python -m benchmarks.pretrained.simulated`` does the same on simulated worlds with a known oracle.
"""
