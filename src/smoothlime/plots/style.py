"""The common look of all pictures: colours and sizes.

Blue and vermilion are Okabe and Ito's (2008), told apart by colour-blind readers; both, and the grey, are seen on white
and on black. The side of zero that a bar is on says the same as its colour, so that prints in grey lose nothing.
"""

from __future__ import annotations

RAISES, LOWERS = "#0072b2", "#d55e00"
"""What raises the output, and what lowers it"""

UNSURE = "#949494"
"""What may do either"""

GAP = "#b8a878"
"""What is no feature's: gaps and remainders"""
