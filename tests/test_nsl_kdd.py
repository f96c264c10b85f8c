"""NSL-KDD: on files of a few rows, and on the real ones where they are."""

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eqsep.datasets import load_nsl_kdd
from eqsep.datasets.nsl_kdd import NSL_KDD_COLUMNS

TRAIN = [
    ("udp", "private", "SF", "normal"),
    ("tcp", "http", "SF", "normal"),
    ("tcp", "http", "S0", "neptune"),
    ("icmp", "eco_i", "SF", "ipsweep"),
    ("tcp", "telnet", "SF", "loadmodule"),
]
TEST = [
    ("tcp", "http", "SF", "normal"),
    ("tcp", "http", "SF", "apache2"),
    ("icmp", "eco_i", "SF", "saint"),
    ("tcp", "telnet", "SF", "loadmodule"),
    ("tcp", "http", "SF", "httptunnel"),
    ("tcp", "telnet", "SF", "xlock"),
    ("tcp", "telnet", "SF", "guess_passwd"),
]
VALUES = (
    *("protocol_type=icmp", "protocol_type=tcp", "protocol_type=udp"),
    *("service=eco_i", "service=http", "service=private", "service=telnet"),
    *("flag=S0", "flag=SF"),
)
NUMERIC = tuple(c for c in NSL_KDD_COLUMNS if c not in ("protocol_type", "service", "flag"))


def line(number, protocol, service, flag, attack):
    """A row whose numeric columns are 100 number + 0, 1, 2, ... in the order of the file."""
    numeric = [f"{100 * number + i:.2f}" for i in range(38)]
    return ",".join([numeric[0], protocol, service, flag, *numeric[1:], attack, "21"])


def write(home, *, train=TRAIN, test=TEST):
    (home / "nsl-kdd").mkdir(exist_ok=True)
    for name, rows in {"KDDTrain+.txt": train, "KDDTest+.txt": test}.items():
        text = "\n".join(line(i, *row) for i, row in enumerate(rows))
        (home / "nsl-kdd" / name).write_text(text + "\n")
    return home


@pytest.fixture
def home(tmp_path):
    return write(tmp_path)


def test_training_has_normal_rows_and_denial_of_service(home):
    split = load_nsl_kdd(data_home=home)
    assert split.kind_train.tolist() == ["normal", "normal", "dos"]
    assert split.kind_test.tolist() == (
        ["normal", "dos", "probe", "privilege", "access", "access", "access"]
    )
    assert split.y_train.tolist() == [0, 0, 1]


def test_misspelt_attacks_have_no_kind_in_the_papers_protocol(home):
    split = load_nsl_kdd(data_home=home, protocol="paper")
    assert split.kind_train.tolist() == ["normal", "normal", "dos", "unassigned"]
    assert split.kind_test.tolist() == (
        ["normal", "dos", "probe", "unassigned", "unassigned", "unassigned", "access"]
    )
    assert split.y_train.tolist() == [0, 0, 1, 1]


def test_columns_are_the_values_in_alphabetical_order_then_the_numbers(home):
    split = load_nsl_kdd(data_home=home)
    assert split.feature_names == VALUES + NUMERIC
    assert_array_equal(split.X_train[:, :9][0], [0, 0, 1, 0, 0, 1, 0, 0, 1])
    assert_array_equal(split.X_train[:, :9][2], [0, 1, 0, 0, 1, 0, 0, 1, 0])
    assert_array_equal(split.X_train[:, 9:], 100 * np.arange(3)[:, None] + np.arange(38))
    assert split.X_train.dtype == np.float64


def test_values_of_rows_that_are_not_trained_on_have_columns_too(home):
    split = load_nsl_kdd(data_home=home)
    probed = split.feature_names.index("service=eco_i")
    assert split.X_train[:, probed].tolist() == [0, 0, 0]
    assert split.X_test[:, probed].tolist() == [0, 0, 1, 0, 0, 0, 0]


def test_a_value_that_training_lacks_is_zero_in_all_columns_of_its_feature(home):
    write(home, test=[*TEST, ("tcp", "gopher", "SF", "saint")])
    split = load_nsl_kdd(data_home=home)
    assert split.feature_names == VALUES + NUMERIC
    assert_array_equal(split.X_test[-1, :9], [0, 1, 0, 0, 0, 0, 0, 0, 1])


def test_frames_have_the_columns_of_the_file(home):
    split = load_nsl_kdd(data_home=home, as_frame=True)
    assert tuple(split.X_train.columns) == NSL_KDD_COLUMNS == split.feature_names
    assert split.X_train["service"].tolist() == ["private", "http", "http"]
    arrays = load_nsl_kdd(data_home=home)
    assert_array_equal(split.X_test[list(NUMERIC)].to_numpy(), arrays.X_test[:, 9:])


def test_frames_without_pandas_are_refused_with_advice(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        load_nsl_kdd(data_home=home, as_frame=True)


@pytest.mark.parametrize("protocol", ["corrected", "paper"])
@pytest.mark.parametrize("file", ["train", "test"])
def test_an_unknown_attack_is_an_error_with_its_name(home, protocol, file):
    write(home, **{file: [("tcp", "http", "SF", "normal"), ("tcp", "http", "SF", "Neptun")]})
    with pytest.raises(ValueError, match=r"no kind: \['Neptun'\]"):
        load_nsl_kdd(data_home=home, protocol=protocol)


@pytest.mark.parametrize("text", ["duration,protocol_type\n0,tcp\n", "0,tcp,http,SF,x" + ",0" * 38])
def test_another_kind_of_file_is_refused(home, text):
    (home / "nsl-kdd" / "KDDTest+.txt").write_text(text)
    with pytest.raises(ValueError, match=r"KDDTest\+.txt is not a file of NSL-KDD"):
        load_nsl_kdd(data_home=home)


def test_an_unknown_protocol_is_refused(home):
    with pytest.raises(ValueError, match="Unknown protocol 'Paper'"):
        load_nsl_kdd(data_home=home, protocol="Paper")


def test_the_folder_comes_from_the_caller_else_from_the_environment(home, tmp_path, monkeypatch):
    monkeypatch.setenv("EQSEP_DATA", str(home))
    assert len(load_nsl_kdd().X_train) == 3
    with pytest.raises(FileNotFoundError, match=r"elsewhere.nsl-kdd has no KDDTrain\+.txt"):
        load_nsl_kdd(data_home=tmp_path / "elsewhere")


def test_a_missing_file_is_named_with_its_folder_and_its_source(home):
    (home / "nsl-kdd" / "KDDTest+.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"nsl-kdd has no KDDTest\+.txt.*https://www.unb"):
        load_nsl_kdd(data_home=home)


def test_without_any_folder_the_message_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("EQSEP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="EQSEP_DATA is not set"):
        load_nsl_kdd()


REAL = Path(os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data"))


@cache
def real(protocol):
    return load_nsl_kdd(data_home=REAL, protocol=protocol)


@pytest.mark.skipif(
    not (REAL / "nsl-kdd" / "KDDTrain+.txt").is_file(),
    reason=f"no NSL-KDD in {REAL}: set EQSEP_DATA to the folder that holds nsl-kdd",
)
@pytest.mark.extra
class TestRealFiles:
    @pytest.mark.parametrize(
        ("protocol", "train", "test"),
        [
            (
                "corrected",
                {"normal": 67_343, "dos": 45_927},
                {"normal": 9_711, "dos": 7_460, "probe": 2_421, "privilege": 67, "access": 2_885},
            ),
            (
                "paper",
                {"normal": 67_343, "dos": 45_927, "unassigned": 9},
                {"normal": 9_711, "dos": 7_460, "probe": 2_421, "privilege": 65, "access": 2_743}
                | {"unassigned": 144},
            ),
        ],
    )
    def test_rows_of_each_kind_are_as_many_as_published(self, protocol, train, test):
        split = real(protocol)
        assert counted(split.kind_train) == train
        assert counted(split.kind_test) == test
        assert split.X_train.shape == (sum(train.values()), 122)
        assert split.X_test.shape == (22_544, 122)

    def test_every_row_has_one_protocol_one_service_and_one_flag(self):
        split = real("corrected")
        for feature, width in {"protocol_type": 3, "service": 70, "flag": 11}.items():
            columns = [i for i, c in enumerate(split.feature_names) if c.startswith(f"{feature}=")]
            assert len(columns) == width
            assert (split.X_train[:, columns].sum(axis=1) == 1).all()
            assert (split.X_test[:, columns].sum(axis=1) == 1).all()


def counted(kind):
    names, numbers = np.unique(kind, return_counts=True)
    return dict(zip(names.tolist(), numbers.tolist(), strict=True))
