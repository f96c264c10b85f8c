"""Downloads: from local addresses, checked, whole or not at all; never from the network."""

import hashlib
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from benches import bench
from invoking import CliRunner

from eqsep.cli import app
from eqsep.datasets.catalogue import DATA_FILES, DataFile
from eqsep.datasets.fetching import fetch_data, is_published
from paper.vectors import load_mvtec_embeddings

load_satimage, load_shuttle = bench("statlog").load_satimage, bench("statlog").load_shuttle
TIDES = b"1.5 0.2 1\n1.1 0.3 2\n1.2 0.1 1\n"
TIDES_Z = bytes.fromhex("1f9d90315cd40001c3850c103114048c41d0c50c1032141a6cc83021")


def checksum(data):
    return hashlib.sha256(data).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder; /short promises more than it sends."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path != "/short":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(TIDES)
        return None


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A web site on this machine with tides.txt and tides.txt.Z; its address."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "tides.txt").write_bytes(TIDES)
    (folder / "tides.txt.Z").write_bytes(TIDES_Z)
    (folder / "damaged.Z").write_bytes(TIDES_Z[:9] + bytes([255] * 9))
    (folder / "plain.Z").write_bytes(TIDES)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def tides(url, **changes):
    known = {"folder": "tides", "name": "tides.txt", "url": url, "size": len(TIDES)}
    return DataFile(**(known | {"sha256": (checksum(TIDES),)} | changes))


def left_in(home):
    return sorted(path.name for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["tides.txt", "tides.txt.Z"])
def test_a_file_comes_by_http_and_is_unpacked(site, tmp_path, name):
    told = []
    home = tmp_path / "home"
    [path] = fetch_data(
        "tides",
        data_home=home,
        files=[tides(f"{site}/{name}")],
        progress=lambda *step: told.append(step[1:]),
    )
    assert path == home / "tides" / "tides.txt"
    assert path.read_bytes() == TIDES
    assert told[-1][0] == told[-1][1] == (tmp_path / "site" / name).stat().st_size
    assert left_in(home) == ["tides.txt"]


def test_a_file_comes_from_a_file_address_into_the_named_variable(tmp_path, monkeypatch):
    (tmp_path / "source.txt").write_bytes(TIDES)
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path / "home"))
    [path] = fetch_data("tides", files=[tides((tmp_path / "source.txt").as_uri())])
    assert path == tmp_path / "home" / "tides" / "tides.txt"


def test_what_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "tides").mkdir()
    (tmp_path / "tides" / "tides.txt").write_bytes(TIDES)
    unreachable = tides("http://127.0.0.1:9/tides.txt")
    assert fetch_data("tides", data_home=tmp_path, files=[unreachable])[0].read_bytes() == TIDES


def test_another_file_of_the_same_name_is_not_overwritten(site, tmp_path):
    (tmp_path / "tides").mkdir()
    mine = tmp_path / "tides" / "tides.txt"
    mine.write_bytes(b"my notes")
    with pytest.raises(ValueError, match=r"is not the tides\.txt that was published.*Move it away"):
        fetch_data("tides", data_home=tmp_path, files=[tides(f"{site}/tides.txt")])
    assert mine.read_bytes() == b"my notes"


@pytest.mark.parametrize(
    ("page", "changes", "error", "message"),
    [
        ("tides.txt", {"sha256": ("0" * 64,)}, ValueError, r"What came from http.*sha256 0{64}"),
        ("missing.txt", {}, ConnectionError, r"cannot be fetched: .*File not found.*by hand"),
        ("short", {}, ConnectionError, "broke off after 30 of 1,000 bytes"),
        (
            "damaged.Z",
            {},
            ValueError,
            r"not a \.Z file, or a damaged one: .*unpacked, there by hand",
        ),
        ("plain.Z", {}, ValueError, r"not a \.Z file, or a damaged one: .*not in gzip format"),
        ("tides.txt", {"size": -(2**20)}, ValueError, "gives more than"),
        ("tides.txt", {"url": "file:///nowhere/tides.Z"}, ConnectionError, "unpacked, there by ha"),
    ],
)
def test_a_download_that_fails_leaves_nothing_behind(site, tmp_path, page, changes, error, message):
    home = tmp_path / "home"
    with pytest.raises(error, match=message):
        fetch_data("tides", data_home=home, files=[tides(**({"url": f"{site}/{page}"} | changes))])
    assert left_in(home) == []


def test_without_gzip_the_file_is_put_there_by_hand(site, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"gzip, which is not installed.*unpacked, there by hand"):
        fetch_data("tides", data_home=tmp_path / "home", files=[tides(f"{site}/tides.txt.Z")])


def test_without_a_network_the_error_says_what_to_put_where(tmp_path):
    unreachable = tides("http://127.0.0.1:9/tides.txt")
    with pytest.raises(ConnectionError) as told:
        fetch_data("tides", data_home=tmp_path, files=[unreachable])
    for part in (unreachable.url, tmp_path / "tides" / "tides.txt", checksum(TIDES), "EQSEP_DATA"):
        assert str(part) in str(told.value)


def test_an_interruption_leaves_nothing_behind(site, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    home = tmp_path / "home"
    with pytest.raises(KeyboardInterrupt):
        fetch_data("tides", data_home=home, files=[tides(f"{site}/tides.txt")], progress=interrupt)
    assert left_in(home) == []


@pytest.mark.parametrize(
    ("copy", "same"),
    [
        (TIDES.replace(b" ", b"\t"), True),
        (TIDES.replace(b"\n", b"  \r\n"), True),
        (TIDES[:-10], False),
        (TIDES.replace(b" 2\n", b" 1\n"), False),
        (b"", False),
    ],
)
def test_a_copy_in_another_layout_is_known_by_its_classes(tmp_path, copy, same):
    path = tmp_path / "tides.txt"
    path.write_bytes(copy)
    file = tides("nowhere", classes={"1": 2, "2": 1})
    assert is_published(path, file) == same
    assert not is_published(path, replace(file, classes=None))


def test_a_loader_without_its_file_names_the_command(tmp_path):
    with pytest.raises(FileNotFoundError, match="`eqsep data fetch satimage`"):
        load_satimage(data_home=tmp_path)
    with pytest.raises(FileNotFoundError) as told:
        load_mvtec_embeddings("wood", data_home=tmp_path)  # which the command cannot fetch
    assert "eqsep data" not in str(told.value)


def test_an_unknown_data_set_and_no_folder_are_told(monkeypatch):
    monkeypatch.delenv("EQSEP_DATA", raising=False)
    with pytest.raises(ValueError, match="'iris': expected one of ai4i2020, ann-thyroid, nsl-kdd"):
        fetch_data("iris")
    with pytest.raises(FileNotFoundError, match="No folder was named"):
        fetch_data("satimage")


def test_the_catalogue_is_well_formed():
    places = [(file.folder, file.name) for file in DATA_FILES]
    assert len(set(places)) == len(places) == 9
    for file in DATA_FILES:
        assert file.url.startswith("https://")
        assert all(len(bytes.fromhex(known)) == 32 for known in file.sha256)


@pytest.mark.parametrize("file", DATA_FILES, ids=lambda file: file.name)
def test_the_real_files_are_known(file, home_of):
    path = home_of(file.folder) / file.folder / file.name
    assert is_published(path, replace(file, classes=None))
    assert is_published(path, replace(file, sha256=())) == (file.classes is not None)
    assert path.stat().st_size == file.size


@pytest.mark.parametrize("load", [load_satimage, load_shuttle])
def test_a_loader_reads_what_was_fetched(load, home_of, tmp_path):
    """From one folder to another by file addresses, then by the loader."""
    name = load.__name__.removeprefix("load_")
    source = home_of(name) / name
    files = [
        replace(file, url=(source / file.name).as_uri())
        for file in DATA_FILES
        if file.folder == name
    ]
    fetch_data(name, data_home=tmp_path, files=files)
    assert repr(load(data_home=tmp_path)) == repr(load(data_home=home_of(name)))


def run(*words, columns="200"):
    return CliRunner().invoke(app, ["data", *map(str, words)], env={"COLUMNS": columns})


@pytest.mark.parametrize("columns", ["60", "200"])
def test_the_command_lists_every_file_with_its_address(columns):
    output = run("list", columns=columns).stdout
    for file in DATA_FILES:
        assert file.name in output
        assert file.url in output


def test_the_command_says_what_is_where(tmp_path, monkeypatch):
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path))
    (tmp_path / "satimage").mkdir()
    (tmp_path / "satimage" / "sat.trn").write_text("my own rows")
    output = run("where").stdout
    assert str(tmp_path) in output
    assert "satimage/sat.trn not the published file" in " ".join(output.split())
    assert output.count("missing") == len(DATA_FILES) - 1


def test_the_command_fetches_and_says_where_to(site, tmp_path, monkeypatch):
    known = partial(fetch_data, files=(tides(f"{site}/tides.txt"),))
    monkeypatch.setattr("eqsep.cli.data.fetch_data", known)
    result = run("fetch", "tides", "--data-home", tmp_path / "home")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "home" / "tides" / "tides.txt")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fetch", "iris", "--data-home", "home"), "Unknown data set 'iris'"),
        (("fetch", "tides", "--data-home", "home"), "cannot be fetched"),
        (("fetch", "tides"), "No folder was named"),
        (("fetch", "tides"), "--data-home FOLDER"),
        (("where",), "No folder was named"),
    ],
)
def test_the_command_tells_errors_and_leaves_with_two(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQSEP_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    known = partial(fetch_data, files=(tides("http://127.0.0.1:9/tides.txt"),))
    monkeypatch.setattr("eqsep.cli.data.fetch_data", known)
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
