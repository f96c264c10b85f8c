"""What a detector says of each row, as columns of a table."""

from typing import Any

import numpy as np

from eqsep.tables.reading import read_table

ANSWERS = ("score", "p_value", "alarm", "kind")


def verdicts(detector: Any, X: Any) -> dict[str, np.ndarray]:
    """Score, p_value, alarm and kind of each row of the table `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, random_state=0).fit(X)
    >>> {name: column.tolist() for name, column in verdicts(detector, [[0, 9]]).items()}
    {'score': [0.6...], 'p_value': [0.01], 'alarm': [True], 'kind': ['unseen']}
    """
    rows = read_table(X, name=type(detector).__name__)
    score = detector.score_samples(rows)
    alarm = score > detector.threshold_
    kind = np.full(len(score), "normal", dtype=object)
    if alarm.any():
        kind[alarm] = detector.predict_kind(rows.take(np.flatnonzero(alarm)))
    p_value = detector.calibration_.p_value(score)
    return dict(zip(ANSWERS, (score, p_value, alarm, kind), strict=True))
