"""Check what ``make dist`` built: ``python tests/release/contents.py dist``.

The wheel holds what is under ``src/entourage`` and the paper's figures, nothing more and nothing less, with types,
pages, vendored files and licences. The source distribution builds the same wheel, byte for byte.
"""

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "entourage"
NEEDED = [
    "py.typed",
    "pretrained/MODEL_CARD.md",
    "pretrained/weights.safetensors",
    "pretrained/weights.sha256",
    "serving/api_page.html",
    "serving/explorer/web/main.js",
    "serving/explorer/web/page.html",
    "serving/explorer/vendor/README.md",
    "serving/explorer/vendor/ThirdPartyNotices.txt.gz",
    "serving/explorer/vendor/ort-wasm-simd-threaded.wasm.gz",
    "serving/explorer/vendor/ort.wasm.bundle.min.mjs.gz",
    "paper/table1.toml",
]
LICENCES = ["LICENSE", "src/entourage/serving/explorer/vendor/README.md"]
BESIDE = [
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
]
MOST_MEGABYTES = 30


def expected() -> set[str]:
    """Return the files of the checkout that belong into a wheel, by their names there."""
    package = {file.relative_to(PACKAGE.parent) for file in PACKAGE.rglob("*") if file.is_file()}
    code = {str(PurePosixPath(file)) for file in package if "__pycache__" not in file.parts}
    return code | {f"entourage/paper/{file.name}" for file in (ROOT / "paper").glob("*.toml")}


def wheel_errors(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if not name.endswith("/")}
    folder = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    inside = {name for name in names if not name.startswith(f"{folder}/")}
    licences = {f"{folder}/licenses/{name}" for name in LICENCES}
    return [
        *(f"the wheel lacks {name}" for name in sorted(expected() - inside)),
        *(f"the wheel has {name}, which is not of the package" for name in sorted(inside - expected())),
        *(f"the wheel should have entourage/{name}" for name in NEEDED if f"entourage/{name}" not in inside),
        *(f"the wheel lacks {name}" for name in sorted(licences - names)),
        *(
            [f"the wheel has more than {MOST_MEGABYTES} MB"]
            if wheel.stat().st_size > MOST_MEGABYTES * 1e6
            else []
        ),
    ]


def sdist_errors(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as file:
        names = {
            PurePosixPath(*PurePosixPath(one.name).parts[1:]) for one in file.getmembers() if one.isfile()
        }
    texts = {str(name) for name in names}
    code = {f"src/{name}" for name in expected() if not name.startswith("entourage/paper/")}
    paper = {
        name.removeprefix("entourage/") for name in expected() - {one.removeprefix("src/") for one in code}
    }
    belongs = code | paper | set(BESIDE) | {".gitignore"}
    return [
        *(f"the source distribution lacks {name}" for name in sorted(belongs - texts - {".gitignore"})),
        *(
            f"the source distribution has {name}, which nobody needs to build"
            for name in sorted(texts - belongs)
        ),
    ]


def main() -> int:
    folder = Path(sys.argv[1])
    (wheel,), (sdist,), (direct,) = (
        sorted(folder.glob(pattern)) for pattern in ("*.whl", "*.tar.gz", "from-tree/*.whl")
    )
    errors = wheel_errors(wheel) + sdist_errors(sdist)
    if wheel.read_bytes() != direct.read_bytes():
        errors.append("the wheel of the source distribution is not the wheel of the checkout")
    print(
        "\n".join(errors)
        or f"{wheel.name} and {sdist.name}: {wheel.stat().st_size / 1e6:.1f} and "
        f"{sdist.stat().st_size / 1e6:.1f} MB, what belongs there and nothing else; both give the same wheel."
    )
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
