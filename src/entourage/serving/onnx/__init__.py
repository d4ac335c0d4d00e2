"""A fitted model as an ONNX graph, for anything that runs ONNX: no Python, no torch.

The graph takes cells of a table (or features, where the model was fitted to arrays) and does all that the model does:
imputation, indicators, one-hot and codes, the view of a net, the net itself, probabilities. It is a torch module made
of these stages, which torch exports. Any number of sets, of any size, go through it.
"""

from entourage.serving.onnx.export import Exported, to_onnx
from entourage.serving.onnx.refusal import ExportError

__all__ = ["ExportError", "Exported", "to_onnx"]
