"""In place of measuring a cell: alone in its module, so that a process that ends imports little."""

import os


def end_at_once(cell, out):  # noqa: ARG001
    os._exit(3)
