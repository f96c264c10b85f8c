"""What the text says of the linear problems: rows on a hyperplane, and two Gaussian clouds."""

from dataclasses import replace

from paper.claims.claim import Claim, Contrast, Value, of
from paper.published import published_tables
from paper.tables.gaussians import SIGMAS
from paper.tables.hyperplane import DIMENSIONS, NOISES

_LOW = ("1.0", "1.5")  # noise multipliers below 2
_MULTIPLIERS = tuple(published_tables()["gaussians_summary"].rows["SVM"])
_PLACES = tuple((k, f"ES (sigma={sigma})") for k in _MULTIPLIERS for sigma in SIGMAS[1:])


def _hyperplane(loss: str, rows: str, noise: str, d: int) -> Value:
    label = f"{loss}, {d} dimensions, noise {noise}, {'100' if rows == '100' else rows} rows"
    return replace(of(f"hyperplane_{loss.lower()}_{rows}", noise, str(d)), label=label)


def _gaussians(loss: str, multiplier: str, method: str) -> Value:
    label = f"{method if method == 'SVM' else f'{loss}, {method}'}, noise multiplier {multiplier}"
    return replace(of(f"gaussians_sigma_{loss.lower()}", multiplier, method), label=label)


def _by_rows(loss: str, first: str, word: str, second: str) -> tuple[Contrast, ...]:
    """Numbers of rows of the hyperplane against each other; in 5 dimensions they are the same."""
    return tuple(
        Contrast(_hyperplane(loss, first, noise, d), word, _hyperplane(loss, second, noise, d))
        for noise in NOISES
        for d in DIMENSIONS
        if d > 5
    )


CLAIMS = [
    Claim(
        "noise lowers the area",
        "More noise on the hyperplane leads to a lower mean area.",
        tuple(
            Contrast(
                _hyperplane("MSE", "100", "0.0", d),
                "above",
                _hyperplane("MSE", "100", "2.0", d),
            )
            for d in DIMENSIONS
        ),
        needed=len(DIMENSIONS) // 2 + 1,
        note="Taken for more than half of the dimensions. The test rows are those before the noise "
        "was added.",
    ),
    *(
        Claim(
            f"more dimensions, {loss}",
            f"In more dimensions the mean area is higher ({words} loss, 100 rows).",
            tuple(
                Contrast(
                    _hyperplane(loss, "100", noise, 35), "above", _hyperplane(loss, "100", noise, 5)
                )
                for noise in NOISES
            ),
            needed=len(NOISES) // 2 + 1,
            note="Taken for 35 against 5 dimensions, in more than half of the noises.",
        )
        for loss, words in {"MSE": "squared", "LL": "logistic"}.items()
    ),
    Claim(
        "more rows",
        "20 rows a dimension instead of 100 do not affect the mean area (squared loss).",
        _by_rows("MSE", "20d", "same", "100"),
    ),
    Claim(
        "more rows, LL",
        "20 rows a dimension instead of 100 do not raise the mean area (logistic loss).",
        _by_rows("LL", "100", "no worse", "20d"),
    ),
    Claim(
        "competitive with the SVM",
        "Equality separators perform as well as the SVM on Gaussians.",
        tuple(
            Contrast(
                _gaussians("MSE", k, "ES (sigma=10.0)"),
                "no worse",
                _gaussians("MSE", k, "SVM"),
                paired=True,
            )
            for k in _MULTIPLIERS
        ),
    ),
    Claim(
        "small sigma on Gaussians",
        "With sigma = 0.1 the area is lower where there is little noise.",
        tuple(
            Contrast(
                _gaussians("MSE", k, "ES (sigma=0.1)"),
                "below",
                _gaussians("MSE", k, "ES (sigma=10.0)"),
                paired=True,
            )
            for k in _LOW
        ),
    ),
    Claim(
        "small sigma and the SVM",
        "From a noise multiplier of 2 on, sigma = 0.1 is competitive with the SVM.",
        tuple(
            Contrast(
                _gaussians("MSE", k, "ES (sigma=0.1)"),
                "no worse",
                _gaussians("MSE", k, "SVM"),
                paired=True,
            )
            for k in ("2.0", *_MULTIPLIERS[1:])
        ),
    ),
    Claim(
        "losses on Gaussians",
        "The logistic loss is generally slightly less competitive than the squared one.",
        tuple(
            Contrast(_gaussians("LL", *at), "below", _gaussians("MSE", *at), paired=True)
            for at in _PLACES
        ),
        needed=len(_PLACES) // 2 + 1,
        note="Generally is taken for more than half, over the multipliers of the summary and the "
        "sigmas from 0.5.",
    ),
    Claim(
        "losses on Gaussians, significantly",
        "The logistic loss is not significantly less competitive than the squared one.",
        tuple(
            Contrast(_gaussians("LL", *at), "no worse", _gaussians("MSE", *at), paired=True)
            for at in _PLACES
        ),
        note="The other half of the same sentence. A test of as many runs as one likes would tell "
        "any two figures apart: it is taken for no more than the margin.",
    ),
    Claim(
        "sigma with the logistic loss",
        "With the logistic loss a smaller sigma does better.",
        tuple(
            Contrast(
                _gaussians("LL", k, "ES (sigma=0.1)"),
                "above",
                _gaussians("LL", k, "ES (sigma=10.0)"),
                paired=True,
            )
            for k in _MULTIPLIERS
        ),
        needed=len(_MULTIPLIERS) // 2 + 1,
        note="Taken for more than half of the multipliers.",
    ),
]
