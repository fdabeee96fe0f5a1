"""Tree ensembles in closed form: their format, layout, kernel and rounding."""
