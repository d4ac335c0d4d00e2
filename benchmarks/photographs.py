"""What cutting and describing a photograph of Make3D's size costs: ``python -m benchmarks.photographs``.

The photograph is scikit-image's motorcycle, enlarged to 1704 x 2272; one thread.
"""

import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import skimage
from skimage.transform import resize

from entourage.data.photographs.cues import describe
from entourage.data.photographs.depth import cut
from entourage.data.photographs.photographs import load_motorcycle

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    image = load_motorcycle().read()[0]
    image = (255 * resize(np.rot90(image), (2272, 1704))).astype(np.uint8)
    seconds = {}
    for how in ("grid", "superpixels"):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            regions = cut(image, how)
            describe(image, regions)
            times.append(time.perf_counter() - start)
        seconds[how] = round(statistics.median(times), 2)
        print(f"{how}: {regions.count} regions cut and described in {seconds[how]} s")
    about = {"machine": f"{platform.machine()}, one process", "scikit-image": skimage.__version__}
    (RESULTS / "photographs.json").write_text(json.dumps({"seconds": seconds} | about, indent=2) + "\n")


if __name__ == "__main__":
    main()
