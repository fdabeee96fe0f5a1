"""The version of smoothlime, in one place, and the versions of what its numbers depend on."""

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions of Python, smoothlime and the libraries that draws are made with."""
    import platform

    import numpy
    import scipy

    return {
        "smoothlime": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }
