"""Rows that come in batches: more of them than memory holds, and samples of bounded size.

| module | what it knows |
|---|---|
| `sources` | folders of files, iterables and iterators as batches, the next one read meanwhile |
| `sampling` | a uniform sample of rows that are seen once, and counts of names, both bounded |
| `joining` | batches of one table as one table again |
"""
