"""Pictures of results, drawn with matplotlib, which is loaded when one is drawn.

Each takes a result, and `ax`: the axes to draw into, a new figure where it is left out. All show errors. Results draw
themselves with these: `e.plot()`, `path.plot()`.

>>> import smoothlime as sl
>>> e = sl.explain(lambda a: 2 * a[:, 0] - a[:, 1], [0.3, 0.7], sigma=0.5)
>>> ax = sl.plots.bars(e)
>>> [label.get_text() for label in ax.get_yticklabels()]
['x0 = 0.3', 'x1 = 0.7']
"""

from .agreement import agreement
from .bars import bars
from .beeswarm import beeswarm
from .comparison import comparison
from .convergence import convergence
from .curve import curve
from .effects import effects
from .heat import heat
from .image import image
from .interactions import interactions
from .path import path
from .robustness import robustness
from .waterfall import waterfall

__all__ = [
    "agreement",
    "bars",
    "beeswarm",
    "comparison",
    "convergence",
    "curve",
    "effects",
    "heat",
    "image",
    "interactions",
    "path",
    "robustness",
    "waterfall",
]
