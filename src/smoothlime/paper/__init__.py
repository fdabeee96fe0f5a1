"""The experiments of Agarwal et al. (2021), redone: their data, their networks, and what comes out.

Nothing here is needed to explain a model; `pip install 'smoothlime[paper]'` brings what it uses.
"""
