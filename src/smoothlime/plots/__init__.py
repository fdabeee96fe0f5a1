"""Explanations as people see them: text, notebook tables, bars. Each takes an Explanation and returns its form."""
