"""The console: pages on which people look at alarms, judge them, and see what was learnt.

| module | what it holds |
|---|---|
| `routes` | all its routes, for the application |
| `pages` | templates to pages: what every page knows, and what is said when something fails |
| `formats`, `assets` | values as words, files that browsers fetch |
| `inbox`, `judging`, `lessons`, `watches`, `administration` | the screens |
"""
