"""What the commands do and show; `eqsep.cli` declares their options.

| module | what it knows |
|---|---|
| `fitting`, `scoring`, `explaining`, `evaluating` | what these do, and what they say at the end |
| `assessing`, `replaying` | a model on labelled rows that one has, at once or played back in time |
| `informing` | what is in a model file |
| `watching` | whether rows still are as those that set the threshold |
| `suspecting` | rows that set the threshold and may be anomalies |
| `reporting` | the HTML page of a fit |
| `reading`, `text_files`, `writing` | tables from and to files, whole or piece by piece; models |
| `sheets`, `cells`, `arrow_files` | spreadsheets, and files with types of their own |
| `bad_rows` | rows that cannot be read, set aside |
| `streams`, `dialects`, `aligned` | the bytes of text files, and how these are written |
| `notation`, `texts` | how values are written, and columns of text in types of their own |
| `inputs` | which columns the files have, and what the column of labels says |
| `training_data` | the rows of a fit, at once or in batches with a sample of them |
| `console` | what is printed: progress, errors and warnings, each as one sentence |
| `serving`, `assisting` | the service, and its alarms for assistants |
| `demo`, `live_demo`, `theory`, `data` | the commands of these names |
"""
