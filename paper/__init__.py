"""The paper's tables and figures as data: measured cell by cell, judged and rendered.

A cell names a method, a data set and a protocol; measuring it writes one small JSON; tables,
figures and pages read nothing else.
"""
