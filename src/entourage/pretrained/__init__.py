"""The pretrained net: it reads labelled sets and scores new ones, without being trained on them."""
