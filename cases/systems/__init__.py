"""Four systems of parts, a file each; what a file is and what to look at is said at its head."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def system_files() -> dict[str, Path]:
    """Return the files by the names of the systems."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def found(path: Path) -> Path:
    """Return a path, or the file of the system that it names, if there is none at the path itself.

    So ``cases/systems/pooled-memory.toml`` is found from any folder and in an installed package, and
    ``pooled-memory`` is enough.
    """
    files = system_files()
    named = path.suffix in ("", ".toml") and path.parent in (Path(), Path("cases/systems"))
    return files[path.stem] if named and path.stem in files and not path.exists() else path
