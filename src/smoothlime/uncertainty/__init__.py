"""Standard errors from groups of draws."""
