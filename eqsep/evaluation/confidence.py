"""The confidence that an interval or a critical difference is asked for."""

from eqsep.errors import UserError


def check_confidence(confidence: float) -> None:
    """Refuse what is no share: 95 where 0.95 is meant.

    Examples
    --------
    >>> check_confidence(95)
    Traceback (most recent call last):
        ...
    eqsep.errors.UserError: confidence is a share between 0 and 1, got 95. Take 0.95 for 95 %.
    """
    if not 0 < confidence < 1:
        raise UserError(
            f"confidence is a share between 0 and 1, got {confidence}. Take 0.95 for 95 %."
        )
