"""The command's words for what the library says: options in place of parameters.

The library words its errors and warnings for Python, and knows no option. What is the matter reads
the same here; the hint is the one below, where there is one for its topic, and else the library's.
"""

from eqsep.errors import Message, ParameterError, joined

HINTS = {  # by topic, made of the message's fields
    # columns
    "CountingColumnWarning": "If it only counts the rows, leave it out: --drop {column!r}.",
    "DateColumnWarning": "Unless the date matters, leave it out: --drop {column!r}.",
    "DecimalCommaWarning": "If they are names, say so: --names {column!r}{others}.",
    "DroppedColumnWarning": "If these are numbers or dates stored as text, convert them.",
    "LeakingColumnWarning": "If it is known only together with the label, leave it out: "
    "--drop {column!r}.",
    "NewDateWarning": "Fit to rows of their time, or without the column: eqsep fit … "
    "--drop {column!r}.",
    "UnreadableError": "Correct the value, or leave it empty where it is missing.",
    "missing_columns": "Add them, empty where a value is not known.",
    "no_column": "If these are numbers or dates stored as text, convert them, a decimal comma to a "
    "point too.",
    "unlike_batches": "Pass files of one table, empty where a value is not known.",
    # labels
    "GuessedLabelWarning": "Say which one is: --normal {label}, for example.",
    "many_names": "Say which of these names is the normal one: --normal {label}, for example.",
    "many_numbers": "Several kinds of anomaly go by names, not numbers: write names, or label "
    "normal rows 0 and all others 1.",
    "no_label": "Leave out --label to learn all rows as normal ones, or check where the labels "
    "were lost.",
    "no_normal_label": "Say which label is normal, --normal LABEL, or {other}",
    "numbers_for_names": "Say which label is normal, --normal 0 for example, or write names.",
    "one_label": "Say which label is normal: --normal {label}, if these rows are.",
    # rows that nobody has labelled, and the threshold
    "DoubtedThresholdWarning": "eqsep suspects lists them: label the anomalies among them, or "
    "allow a higher --false-alarm-rate.",
    "HighThresholdWarning": "Leave out columns of codes or ids with --drop, take more --landmarks, "
    "or allow a higher --false-alarm-rate.",
    "UnusedDoubtWarning": "Label some anomalies, or leave out --unlabelled.",
    "contrary_trust": "The model that --like names has settled it, as it knew no labelled anomaly. "
    "Fit that one again with some, or leave out --unlabelled.",
    # what is promised
    "higher_rate": "Add {more}, or pass --false-alarm-rate {rate:g}.",
    "higher_rate_or_no_confidence": "Add {more}, pass --false-alarm-rate {rate:g}, or leave out "
    "--confidence: on average it can be promised.",
    "no_fdr": "Leave out --fdr, or fit without --group and --time.",
    "none_selected": "Add normal rows, pass fewer rows at a time, or allow a higher --fdr.",
    "short_memory": "Add normal rows, or allow a higher --fdr.",
    # rows in groups and in time
    "DependentRowsWarning": "Pass the column that says which of these a row is from as --group, or "
    "one of times as --time.",
    "DriftWarning": "Fit again as rows come, or leave out columns that do not matter with --drop.",
    "TimeOrderWarning": "Pass the column that says which run or machine a row is from as --group.",
    "lost_groups": "They are not a column of the files, so this model can learn and forget only in "
    "Python.",
    "no_windows": "Leave out --window.",
    "unknown_runs": "They are not a column of the files, so this model can score only in Python.",
    "windows_on_cluster": "Leave out --ray.",
    # learning more rows
    "RepeatedRowsWarning": "If that is meant, pass --again.",
    "picked_rows": "Fit again with these rows among the others; or, if they were picked because "
    "they raised an alarm, pass --judged.",
    # evaluation, watching, clusters, data sets
    "MissingDataError": "Or name a folder{where}: --data-home FOLDER, or {variable}=FOLDER.",
    "WorkerDiedError": "Divide the rows into smaller files.",
    "damaged_watch": "Name another file as --state: it is written anew.",
    "lone_cost": "Pass both --cost-alarm and --cost-miss, or neither.",
    "no_first_model": "Pass more rows, a shorter --delay, or a lower --first.",
}
OPTIONS = {"groups": "--group", "n_landmarks": "--landmarks", "y": "--label"}  # named otherwise


def in_command(message: Message) -> str:
    """What the command says where the library gives this message.

    Examples
    --------
    >>> in_command(ParameterError("false_alarm_rate", expected="a number above 0", got=-1))
    '--false-alarm-rate must be a number above 0, got -1.'
    """
    text, hint, fields = message.message, message.hint, message.fields
    if isinstance(message, ParameterError):
        text = "{option} must be {expected}, got {got!r}.".format(
            option=option(fields["parameter"]), **fields
        )
    if message.topic in HINTS:
        hint = HINTS[message.topic].format_map(fields)
    return joined(message.place and f"{message.place}:", text, hint)


def option(parameter: str) -> str:
    """The option that stands for a parameter.

    Examples
    --------
    >>> option("unseen_rate"), option("n_landmarks")
    ('--unseen-rate', '--landmarks')
    """
    return OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")
