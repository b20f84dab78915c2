"""What this installation has: versions, device, data folder."""

import importlib.metadata
import os

import torch

from heedful.pipeline import environment
from heedful.text.datasets import DATASETS, data_folder


def examine() -> dict[str, str]:
    """Name and value of everything worth knowing before reporting a problem."""
    versions = {
        name: importlib.metadata.version(name) for name in ("numpy", "pandas", "scipy", "tokenizers", "safetensors")
    }
    folder = data_folder()
    missing = [name for name, dataset in DATASETS.items() if not dataset.available]
    return {
        **environment(),
        **versions,
        "device": f"cuda ({torch.cuda.get_device_name(0)})" if torch.cuda.is_available() else "cpu",
        "cores": str(os.cpu_count()),
        "data folder": f"{folder}{'' if folder.is_dir() else ' (not there)'}",
        "corpora": ", ".join(name for name in DATASETS if name not in missing),
        "not at hand": ", ".join(missing) or "none",
    }
