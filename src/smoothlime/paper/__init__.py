"""The paper behind this library, reproduced and checked: data, networks, figures, claims, report."""
