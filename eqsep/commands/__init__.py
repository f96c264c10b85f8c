"""What the larger commands do and show; `eqsep.cli` and `detecting` declare their options.

| module | what it knows |
|---|---|
| `detecting` | the commands around a detector: their options |
| `fitting`, `scoring`, `explaining`, `evaluating` | what these do, and what they say at the end |
| `reporting` | the HTML page of a fit |
| `reading`, `text_files`, `writing` | tables from and to files, whole or piece by piece |
| `inputs` | which columns the files have, and what the column of labels says |
| `training_data` | the rows of a fit, at once or in batches with a sample of them |
| `models` | model files, and tables as a model reads them |
| `console` | what is printed: progress, errors and warnings, each as one sentence |
| `demo` | the command of this name |
"""
