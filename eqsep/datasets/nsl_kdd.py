"""NSL-KDD: network connections, normal or one of 39 attacks in four kinds."""

from pathlib import Path
from typing import Any

import numpy as np

from eqsep.datasets.home import DatasetSource
from eqsep.datasets.records import TrainTestSplit, for_protocol, frame_of, split_of

_SOURCE = DatasetSource(
    title="NSL-KDD", folder="nsl-kdd", url="https://www.unb.ca/cic/datasets/nsl.html"
)

NSL_KDD_COLUMNS = (
    *("duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land"),
    *("wrong_fragment", "urgent", "hot", "num_failed_logins", "logged_in", "num_compromised"),
    *("root_shell", "su_attempted", "num_root", "num_file_creations", "num_shells"),
    *("num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login", "count"),
    *("srv_count", "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate"),
    *("same_srv_rate", "diff_srv_rate", "srv_diff_host_rate", "dst_host_count"),
    *("dst_host_srv_count", "dst_host_same_srv_rate", "dst_host_diff_srv_rate"),
    *("dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate"),
    *("dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate"),
)
_NAMED = ("protocol_type", "service", "flag")
_NUMERIC = tuple(name for name in NSL_KDD_COLUMNS if name not in _NAMED)
_ATTACK = "attack"
# A file has one more column, how hard the row was for others to classify; it is not read.
_RECORD = np.dtype(
    [(name, "U64" if name in (*_NAMED, _ATTACK) else "f8") for name in (*NSL_KDD_COLUMNS, _ATTACK)]
)

_ATTACKS = {
    "dos": (
        *("apache2", "back", "land", "mailbomb", "neptune", "pod", "processtable", "smurf"),
        *("teardrop", "udpstorm", "worm"),
    ),
    "probe": ("ipsweep", "mscan", "nmap", "portsweep", "saint", "satan"),
    "privilege": ("buffer_overflow", "loadmodule", "perl", "ps", "rootkit", "sqlattack", "xterm"),
    "access": (
        *("ftp_write", "guess_passwd", "httptunnel", "imap", "multihop", "named", "phf"),
        *("sendmail", "snmpgetattack", "snmpguess", "spy", "warezclient", "warezmaster"),
        *("xlock", "xsnoop"),
    ),
}
_KIND_OF = {"normal": "normal"} | {name: kind for kind in _ATTACKS for name in _ATTACKS[kind]}
# The published lists misspell three names, so these attacks belong to no kind there.
_MISSPELT = dict.fromkeys(("httptunnel", "loadmodule", "xlock"), "unassigned")
_KINDS = {"corrected": _KIND_OF, "paper": _KIND_OF | _MISSPELT}
_TRAINED_ON = ("normal", "dos", "unassigned")


def load_nsl_kdd(
    *, data_home: Any = None, protocol: str = "corrected", as_frame: bool = False
) -> TrainTestSplit:
    """NSL-KDD's network connections: normal ones and denial of service to learn from.

    The test has three kinds of attack that training lacks (probing, gaining privileges, gaining
    access), and DoS attacks that it lacks.

    Parameters
    ----------
    data_home : path-like or None, default=None
        The folder that holds `nsl-kdd/KDDTrain+.txt` and `nsl-kdd/KDDTest+.txt`, from
        https://www.unb.ca/cic/datasets/nsl.html. Default: the variable EQSEP_DATA.
    protocol : {"corrected", "paper"}, default="corrected"
        "corrected": every attack belongs to one of the four kinds, and training has the normal rows
        and all DoS rows. "paper": three attacks that the published lists misspell (httptunnel,
        loadmodule, xlock) are of the kind "unassigned", in training as well.
    as_frame : bool, default=False
        Whether the rows are pandas frames of the 41 columns of the files, rather than arrays of the
        122 columns below.

    Returns
    -------
    TrainTestSplit
        With the kinds "normal", "dos", "probe", "privilege", "access" and, by the paper's protocol,
        "unassigned". The rows are in the order of the files.

    Notes
    -----
    The 122 columns: one of 0 and 1 for each value of `protocol_type`, then of `service`, then of
    `flag`, in alphabetical order over *all* rows of KDDTrain+ (84 columns, some of them constant
    over the training rows); then the 38 numeric columns. Nothing is scaled: bytes go up to 10⁹.
    """
    kind_of = for_protocol(protocol, _KINDS)
    paths = [_SOURCE.file(f"KDD{part}+.txt", data_home=data_home) for part in ("Train", "Test")]
    train, test = map(_read, paths)
    kind_train, kind_test = (
        _SOURCE.kinds(table[_ATTACK], kind_of, path=path)
        for table, path in zip((train, test), paths, strict=True)
    )
    categories = {name: np.unique(train[name]) for name in _NAMED}
    used = np.isin(kind_train, _TRAINED_ON)
    if as_frame:
        names: tuple[str, ...] = NSL_KDD_COLUMNS
        X_train, X_test = (frame_of({n: t[n] for n in names}) for t in (train[used], test))
    else:
        values = [f"{name}={value}" for name in _NAMED for value in categories[name]]
        names = (*values, *_NUMERIC)
        X_train, X_test = (_array(t, categories) for t in (train[used], test))
    return split_of((X_train, kind_train[used]), (X_test, kind_test), names)


def _read(path: Path) -> np.ndarray:
    """The rows of a file as records."""
    layout = "no header and, in every row, 41 columns and the attack's name, separated by commas"
    options: dict[str, Any] = {"delimiter": ",", "usecols": range(42), "encoding": "utf-8"}
    return _SOURCE.records(path, _RECORD, layout=layout, **options)


def _array(table: np.ndarray, categories: dict[str, np.ndarray]) -> np.ndarray:
    """The columns of 0 and 1 for each value, then the numeric ones.  -> (n, 122)"""
    named = [table[name][:, None] == categories[name] for name in _NAMED]
    return np.hstack([*named, *[table[name][:, None] for name in _NUMERIC]], dtype=np.float64)
