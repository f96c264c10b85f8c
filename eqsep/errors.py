"""Errors that the caller can mend; any other exception is a fault of the software."""


class UserError(ValueError):
    """Something that the caller passed cannot be: says what was expected, what came, what to do."""


class UserTypeError(UserError, TypeError):
    """A value of a type that cannot be worked with here."""


class MissingExtraError(UserError, ImportError):
    """A package is not installed that only some of the work needs: says how to install it."""
