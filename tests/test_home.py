"""Files with the class in the last column: read alike, refused alike."""

import numpy as np
import pytest
from benches import bench

from eqsep.datasets import load_thyroid

load_satimage, load_shuttle = bench("statlog").load_satimage, bench("statlog").load_shuttle

# For every file with the class in its last column: loader, folder, files, number of features.
LOADERS = [
    (load_thyroid, "ann-thyroid", ("ann-train.data", "ann-test.data"), 21),
    (load_shuttle, "shuttle", ("shuttle.trn", "shuttle.tst"), 9),
    (load_satimage, "satimage", ("sat.trn", "sat.tst"), 36),
]
every_loader = pytest.mark.parametrize(
    ("load", "folder", "files", "width"), LOADERS, ids=lambda value: getattr(value, "__name__", "")
)


@every_loader
def test_an_unknown_class_is_an_error_with_its_number(load, folder, files, width, write_classes):
    home = write_classes(folder, files[0], width=width, classes=[1, 2, 3])
    write_classes(folder, files[1], width=width, classes=[1, 8, 3])
    with pytest.raises(ValueError, match=rf"{files[1]} names what belongs to no kind: \[8\]"):
        load(data_home=home)


@every_loader
@pytest.mark.parametrize("text", ["1 2 3\n", "", "a b c\n", "wide"])
def test_another_kind_of_file_is_refused(load, folder, files, width, text, write_classes):
    home = write_classes(folder, files[0], width=width, classes=[1, 2, 3])
    write_classes(folder, files[1], width=width + 1, classes=[1, 2, 3])
    if text != "wide":
        (home / folder / files[1]).write_text(text)
    with pytest.raises(ValueError, match=rf"{files[1]} is not a file of .*{width} numbers"):
        load(data_home=home)


@every_loader
def test_a_missing_file_is_named_with_its_folder_and_its_source(
    load, folder, files, width, write_classes
):
    home = write_classes(folder, files[0], width=width, classes=[1, 2, 3])
    with pytest.raises(FileNotFoundError, match=rf"{folder} has no {files[1]}.*https://archive"):
        load(data_home=home)


@every_loader
def test_frames_hold_what_arrays_hold_under_the_names_of_the_features(
    load, folder, files, width, write_classes
):
    for file in files:
        home = write_classes(folder, file, width=width, classes=[1, 3, 2, 3])
    arrays, frames = (load(data_home=home, as_frame=as_frame) for as_frame in (False, True))
    assert len(set(arrays.feature_names)) == width
    name = "X_test" if hasattr(arrays, "X_test") else "X"
    assert tuple(getattr(frames, name).columns) == arrays.feature_names == frames.feature_names
    assert np.array_equal(getattr(frames, name).to_numpy(), getattr(arrays, name))
