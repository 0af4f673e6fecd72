"""The published designs: contents, checksums, and every way of not having them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from paims import datasets, simulators


@pytest.fixture
def data_dir(shared_dir, monkeypatch):
    folder = shared_dir / "data"
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(folder))
    return folder


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """No folder, an empty cache, and a network that refuses; returns the addresses asked for."""
    pooch = pytest.importorskip("pooch")
    requests = pytest.importorskip("requests")
    asked = []

    def refuse(url, *args, **kwargs):
        asked.append(url)
        raise requests.exceptions.ConnectionError("name resolution failed")

    monkeypatch.delenv(datasets.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    monkeypatch.setattr(requests, "get", refuse)
    return asked


def test_branin_is_the_published_design(data_dir):
    data = datasets.load_branin()
    assert data.X.shape == (18, 2)
    assert data.y.shape == (18,)
    np.testing.assert_allclose(simulators.branin(data.X), data.y, rtol=1e-12)
    assert np.max(np.abs(simulators.branin_printed(data.X) / data.y - 1)) > 0.1
    assert data.X_test is None


def test_two_d_model_is_the_published_design(data_dir):
    data = datasets.load_two_d_model()
    assert data.X.shape == (20, 2)
    np.testing.assert_allclose(simulators.two_d_model(data.X), data.y, rtol=1e-12)
    assert np.max(np.abs(simulators.two_d_model_cited(data.X) / data.y - 1)) > 0.05


def test_nilson_kuusk_is_in_raw_units_and_split(data_dir):
    data = datasets.load_nilson_kuusk()
    assert data.X.shape == (100, 5)
    assert data.y.shape == (100,)
    assert data.X_test.shape == (150, 5)
    assert data.y_test.shape == (150,)
    box = np.array([[-60, 1, 0.05, 0.4, 550], [60, 8, 0.35, 1, 850]])
    np.testing.assert_allclose([data.X.min(axis=0), data.X.max(axis=0)], box, rtol=1e-12)
    assert np.all((data.X_test >= box[0]) & (data.X_test <= box[1]))
    assert data.input_names[1] == "leaf area index"
    # Inputs and outputs belong together: the first rows of the four files.
    np.testing.assert_array_equal(data.X[0], [-0.606061, 6.303030, 0.146970, 0.569697, 819.696970])
    assert data.y[0] == 0.659585
    np.testing.assert_array_equal(
        data.X_test[0], [-1.208054, 7.671141, 0.134564, 0.468456, 604.362416]
    )
    assert data.y_test[0] == 0.082791


def test_each_load_is_a_fresh_copy(data_dir):
    first = datasets.load_branin()
    first.X[:] = 0.0
    assert np.all(datasets.load_branin().X > 0.0)


def test_frames_carry_names(data_dir):
    pytest.importorskip("pandas")
    data = datasets.load_nilson_kuusk()
    train, test = data.to_frame(), data.to_frame(test=True)
    assert list(train.columns) == [*data.input_names, "reflectance"]
    np.testing.assert_array_equal(train["reflectance"], data.y)
    np.testing.assert_array_equal(test["lambda"], data.X_test[:, 4])
    with pytest.raises(ValueError, match="'branin' has no test runs"):
        datasets.load_branin().to_frame(test=True)


def test_checksums_are_those_of_the_data_folder(shared_dir):
    lines = (shared_dir / "data" / "SHA256SUMS").read_text().split("\n")
    expected = {file: digest for digest, file in (line.split() for line in lines if line)}
    assert expected == datasets._SHA256


def test_an_altered_file_is_refused(data_dir, tmp_path, monkeypatch):
    shutil.copy(data_dir / "training.txt", tmp_path)
    for file in ("out_5_100.txt", "in_5_150.txt", "out_5_150.txt"):
        shutil.copy(data_dir / file, tmp_path)
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(tmp_path))
    datasets.load_nilson_kuusk()
    altered = tmp_path / "out_5_100.txt"
    altered.chmod(0o644)
    altered.write_bytes(altered.read_bytes().replace(b"0.659585", b"0.659586"))
    with pytest.raises(ValueError, match=r"out_5_100.txt' is not the published file: its SHA-256"):
        datasets.load_nilson_kuusk()


def test_a_folder_without_the_file_says_what_to_do(tmp_path, monkeypatch, no_network):
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no file 'branin_sample.mat'.*unset"):
        datasets.load_branin()
    assert no_network == []


def test_without_network_the_error_names_both_ways(no_network):
    with pytest.raises(ConnectionError, match=r"connect to the network.*PAIMS_DATA_DIR") as caught:
        datasets.load_two_d_model()
    assert "name resolution failed" in str(caught.value)
    assert len(no_network) == 2
    assert (
        "33d21333c7e4a7dd4b3eb8f919e72dd3f6e9d41f/sample-data/bastos_sample.mat" in no_network[0]
    )


def test_a_download_is_checked_cached_and_not_repeated(no_network, shared_dir, monkeypatch):
    requests = pytest.importorskip("requests")
    content = (shared_dir / "data" / "branin_sample.mat").read_bytes()
    served = []

    class Response:
        def __init__(self, body):
            self.body, self.headers = body, {}

        def raise_for_status(self):
            if self.body is None:
                raise requests.exceptions.HTTPError("404")

        def iter_content(self, chunk_size):
            yield self.body

        def close(self):
            pass

    def serve(url, *args, **kwargs):
        served.append(url)
        # The fixed commit has lost the file: the branch must be tried.
        return Response(None if "33d21333" in url else content)

    monkeypatch.setattr(requests, "get", serve)
    data = datasets.load_branin()
    np.testing.assert_allclose(simulators.branin(data.X), data.y, rtol=1e-12)
    assert len(served) == 2
    datasets.load_branin()
    assert len(served) == 2

    content = b"something else"
    with pytest.raises(ConnectionError, match="hash"):
        datasets.load_two_d_model()


@pytest.mark.parametrize("call", ["load_branin", "to_frame"])
def test_a_missing_extra_is_named(call, monkeypatch, data_dir):
    data = datasets.load_branin()
    monkeypatch.delenv(datasets.DATA_DIR_VARIABLE)
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'paims\[app\]'"):
        _ = datasets.load_branin() if call == "load_branin" else data.to_frame()


def test_optional_packages_are_imported_on_use_only():
    code = (
        "import sys, paims.datasets, paims.simulators;"
        "print(sorted({'pooch', 'pandas', 'requests', 'scipy.stats', 'numba'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
