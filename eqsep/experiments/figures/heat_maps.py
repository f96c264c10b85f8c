"""Heat maps on the circles: the models of the paper's figure, and two ensembles."""

from typing import Any

from eqsep.experiments.figures.figure import Drawn, Figure
from eqsep.experiments.methods import DETERMINISTIC
from eqsep.experiments.table import Place
from eqsep.experiments.tables import circle_networks, circles


def _draw(results: Drawn) -> Any:
    from eqsep.experiments.figures.drawing import heat_map_figure

    return heat_map_figure(
        [(method, result["more"]["heat_map"]) for (_, method), result in results.items()]
    )


def _shallow(method: str) -> Place:
    return Place("circles", method, "", seeds=1 if method in DETERMINISTIC else 20)


FIGURES = [
    Figure(
        "heat_maps",
        "Heat maps of shallow models",
        "From the first seed. The normal circle is the middle one; the outer circle is trained on, "
        "the inner one is not.",
        circles.STUDY.name,
        tuple(map(_shallow, circles.DRAWN)),
        _draw,
    ),
    Figure(
        "network_heat_maps",
        "Heat maps of networks",
        "The first member of each: a halfspace over bumps, an equality separator over RBFs, an RBF "
        "separator over RBFs.",
        circle_networks.STUDY.name,
        tuple(Place("circles", name, "") for name in circle_networks.ONE_DRAWN),
        _draw,
    ),
    Figure(
        "ensembles",
        "Ensembles",
        "The mean output of all members, equality separators over bumps with sigma 0.5.",
        circle_networks.STUDY.name,
        tuple(Place("circles", name, "") for name in circle_networks.ALL_DRAWN),
        _draw,
    ),
]
