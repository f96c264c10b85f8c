"""What the larger commands do and show; `eqsep.cli` and `detecting` declare their options.

| module | what it knows |
|---|---|
| `detecting` | the commands around a detector: their options |
| `fitting`, `scoring`, `explaining`, `evaluating` | what these do, and what they say at the end |
| `ranking` | the rows with the highest scores |
| `reporting` | the HTML page of a fit |
| `reading`, `text_files`, `writing` | tables from and to files, whole or piece by piece |
| `labelled`, `parts`, `labelling` | labelled rows, at once or in parts, and the column of labels |
| `models` | model files, and tables as a model reads them |
| `columns`, `dates` | columns that spoil a model |
| `telling` | errors and warnings, each as one sentence |
| `demo`, `data`, `reproduce` | the commands of these names |
"""
