"""The paper's figures as plain data: panels of curves, ready to be drawn and to be written to results.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from .study import NAMES, VARIANCES, Curve, Study

TITLES = {"simulated": "Simulated", "bankruptcy": "Bankruptcy", "shopping": "Online Shopping"}
METHODS = {"smoothgrad": "SmoothGrad", "clime": "C-LIME"}
ROLES = ("a", "b", "c")


def title_of(study: Study, name: str) -> str:
    """Name of a data set as readers know it; a stand-in is called one."""
    if study.data[name].source == "stand-in":
        return f"stand-in for {TITLES[name]}"
    return TITLES[name]


def curve(found: Curve, label: str, role: str, *, dashed: bool = False) -> dict[str, Any]:
    """A line with its band."""
    mean, reach = np.array(found.mean), np.array(found.half_width)
    return {
        "label": label,
        "x": found.draws,
        "y": found.mean,
        "low": np.maximum(mean - reach, 0).tolist(),
        "high": (mean + reach).tolist(),
        "role": role,
        "dashed": dashed,
    }


def panel(title: str, lines: list[dict[str, Any]], y_label: str = "L1 distance", **more: Any) -> dict[str, Any]:
    """Lines against the number of draws, on log axes."""
    return {
        "kind": "curves",
        "title": title,
        "x_label": "perturbations per explanation",
        "y_label": y_label,
        "x_scale": "log",
        "y_scale": "log",
        "curves": lines,
        "marks": [],
        **more,
    }


def figure1(study: Study) -> dict[str, Any]:
    """The decision boundary on Simulated."""
    data = study.data["simulated"]
    everyone, labels = np.concatenate([data.x_train, data.x_test]), np.concatenate([data.y_train, data.y_test])
    low, high = everyone.min(axis=0) - 0.5, everyone.max(axis=0) + 0.5
    x, y = np.linspace(low[0], high[0], 81), np.linspace(low[1], high[1], 81)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(np.float32)
    z = np.asarray(study.network("simulated").model.values(points))[:, 1].reshape(len(y), len(x))
    return {
        "title": "Decision boundary on Simulated",
        "caption": "Probability of class 1 by the network trained on the simulated data, its boundary at one half, and"
        " all 1,000 points by their labels. The clusters overlap: no rule can be right more than 92.1% of the time.",
        "paper": "Figure 1",
        "panels": [
            {
                "kind": "field",
                "title": "Simulated",
                "x_label": "x₁",
                "y_label": "x₂",
                "x": x.tolist(),
                "y": y.tolist(),
                "z": z.astype(float).round(5).tolist(),
                "points": [
                    {
                        "x": everyone[labels == k, 0].tolist(),
                        "y": everyone[labels == k, 1].tolist(),
                        "label": f"label {k}",
                    }
                    for k in (0, 1)
                ],
                "level": 0.5,
            }
        ],
    }


def figure2(study: Study) -> dict[str, Any]:
    """Equivalence."""
    rows = study.scale.equivalence_rows
    return {
        "title": "SmoothGrad and C-LIME come together",
        "caption": "Mean over test rows of the L1 distance between the two explanations, σ² = 1, with 95% bands."
        " Solid: the paper's protocol, iid draws, independent for every explanation,"
        f" {'all test rows' if rows is None else f'{rows} test rows at most'}. Dashed: draws"
        f" shared between rows and methods, SmoothGrad's default design, {4 * study.scale.shared_rows} rows at most and"
        f" {study.scale.shared_seeds} seeds, whose scatter is in the bands. Fewer draws than twice the unknowns of the"
        " fit are left out.",
        "paper": "Figure 2",
        "panels": [
            panel(
                "Distance between the methods",
                [
                    curve(
                        study.equivalence(name, protocol=protocol),
                        f"{title_of(study, name)}{'' if protocol == 'paper' else ', shared draws'}",
                        name,
                        dashed=protocol == "ours",
                    )
                    for protocol in PROTOCOLS
                    for name in NAMES
                ],
            )
        ],
    }


def figure3(study: Study) -> dict[str, Any]:
    """Robustness."""
    return {
        "title": "Distance to the explanations of neighbours",
        "caption": "Mean over rows of the largest L1 distance between the explanation of a row and those of ten"
        " neighbours N(x, 0.01·I), σ² = 1, with 95% bands. Solid: the paper's protocol. Dashed: shared draws and"
        f" default designs, {study.scale.shared_rows} of the rows at most and {study.scale.shared_seeds} seeds: much of"
        " the sampling noise cancels. The curves do not fall to zero: they fall to the distance between"
        " the expected explanations, which no number of draws changes, and which is the same for both methods.",
        "paper": "Figure 3",
        "panels": [
            panel(
                title_of(study, name),
                [
                    curve(
                        study.robustness(name, method, protocol=protocol),
                        f"{label}{'' if protocol == 'paper' else ', shared draws'}",
                        method,
                        dashed=protocol == "ours",
                    )
                    for protocol in PROTOCOLS
                    for method, label in METHODS.items()
                ],
                "mean of the largest L1 distance",
            )
            for name in NAMES
        ],
    }


def figure4(study: Study, name: str) -> dict[str, Any]:
    """Sensitivity to σ²."""
    return _both_measures(
        study,
        name,
        title=f"Sensitivity to σ² on {title_of(study, name)}",
        paper="Figure 4" if name == "bankruptcy" else "Appendix, twin of Figure 4",
        settings=[(f"σ² = {variance:g}", {"variance": variance}) for variance in VARIANCES],
        caption="Distance between the methods, and robustness of each, for three sizes of the neighbourhood.",
    )


def figure5(study: Study, name: str) -> dict[str, Any]:
    """Sensitivity to the model."""
    settings: list[tuple[str, dict[str, Any]]] = [
        (f"{quality}: {study.network(name, quality).accuracy:.1%}", {"quality": quality})
        for quality in ("good", "weak")
    ]
    return _both_measures(
        study,
        name,
        title=f"Sensitivity to the model on {title_of(study, name)}",
        paper="Figure 5" if name == "bankruptcy" else "Appendix, twin of Figure 5",
        settings=settings,
        caption="The same measures at σ² = 1 for the good network and one trained for fewer epochs, which alone would"
        " not make it weak: it also takes all rows in one step, at another rate and seed on the real data. Legends show"
        " test accuracy.",
    )


PROTOCOLS: tuple[Any, ...] = ("paper", "ours")


def _both_measures(
    study: Study, name: str, *, title: str, paper: str, settings: list[tuple[str, dict[str, Any]]], caption: str
) -> dict[str, Any]:
    def lines(measure: Any) -> list[dict[str, Any]]:
        return [
            curve(
                measure(protocol=protocol, **setting),
                label if protocol == "paper" else f"{label}, shared draws",
                role,
                dashed=protocol == "ours",
            )
            for protocol in PROTOCOLS
            for (label, setting), role in zip(settings, ROLES, strict=False)
        ]

    panels = [panel("Equivalence", lines(lambda **how: study.equivalence(name, **how)))]
    panels += [
        panel(
            f"Robustness of {label}",
            lines(lambda method=method, **how: study.robustness(name, method, **how)),
            "mean of the largest L1 distance",
        )
        for method, label in METHODS.items()
    ]
    return {
        "title": title,
        "caption": f"{caption} Solid: the paper's protocol; dashed: shared draws and default designs; 95% bands.",
        "paper": paper,
        "panels": panels,
    }
