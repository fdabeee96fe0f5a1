"""Explanations in closed form, for models whose structure is known."""
