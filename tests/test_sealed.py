"""Forged files: the checksum fits, and what is inside wants to do harm."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import paims
from paims._sealed import SealError, open_sealed, put_array, put_json, whole_file, write_sealed
from paims.sampling import CheckpointError

SECRET = b"a secret of 36 bytes that is not ours"
Fill = Callable[[Any, Path], None]


def _external(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", (36,), "u1", external=[(str(secret), 0, 36)])


def _virtual(file: Any, secret: Path) -> None:
    layout = h5py.VirtualLayout((36,), "u1")
    layout[:] = h5py.VirtualSource(str(secret), "x", (36,))
    file.create_virtual_dataset("runs/X", layout)


def _external_link(file: Any, secret: Path) -> None:
    file["runs/X"] = h5py.ExternalLink(str(secret), "/x")


def _soft_link(file: Any, secret: Path) -> None:
    file["runs/X"] = h5py.SoftLink("/elsewhere")


def _second_name(file: Any, secret: Path) -> None:
    file["runs/X"] = np.arange(3.0)
    file["runs/y"] = file["runs/X"]


def _circle(file: Any, secret: Path) -> None:
    file.create_group("runs")
    file["runs/again"] = file["runs"]


def _fill_value(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", (2**32,), "f8", chunks=(2**10,), fillvalue=1.0)


def _shape_without_storage(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", (2**20, 2**20), "f8")


def _many_zeros(file: Any, secret: Path) -> None:
    for i in range(40):
        zeros = np.zeros(2**18)
        file.create_dataset(f"runs/{i}", data=zeros, compression="gzip", compression_opts=9)


def _huge_chunk(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", (1,), "f8", chunks=(2**28,), maxshape=(None,))


def _chunk_that_swells(file: Any, secret: Path) -> None:
    import zlib

    dataset = file.create_dataset("runs/X", (8,), "f8", chunks=(8,), compression="gzip")
    dataset.id.write_direct_chunk((0,), zlib.compress(bytes(2**25)))


def _chunk_that_is_no_gzip(file: Any, secret: Path) -> None:
    dataset = file.create_dataset("runs/X", (8,), "f8", chunks=(8,), compression="gzip")
    dataset.id.write_direct_chunk((0,), b"nonsense")


def _gzip_of_gzip(file: Any, secret: Path) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((8,))
    plan.set_deflate(9)
    plan.set_deflate(9)
    space = h5py.h5s.create_simple((8,))
    h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, plan)


def _other_filter(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", data=np.arange(9.0), compression="lzf")


def _objects(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", data=["text", "of any length"], dtype=h5py.string_dtype())


def _references(file: Any, secret: Path) -> None:
    file.create_dataset("runs/X", data=[file.ref], dtype=h5py.ref_dtype)


def _committed_type(file: Any, secret: Path) -> None:
    file["runs/X"] = np.dtype("f8")


FORGED: dict[str, tuple[Fill, str]] = {
    "external": (_external, "kept in another file"),
    "virtual": (_virtual, "kept in another file"),
    "external link": (_external_link, "points at something outside"),
    "soft link": (_soft_link, "points at something outside"),
    "second name": (_second_name, "second name"),
    "circle": (_circle, "second name"),
    "fill value": (_fill_value, r"would take 3.44e\+10 bytes"),
    "shape without storage": (_shape_without_storage, "would take"),
    "many zeros": (_many_zeros, "would take"),
    "huge chunk": (_huge_chunk, "would take"),
    "chunk that swells": (_chunk_that_swells, "unpacks to another size"),
    "chunk that is no gzip": (_chunk_that_is_no_gzip, "cannot be unpacked"),
    "gzip of gzip": (_gzip_of_gzip, "compressed in a way"),
    "other filter": (_other_filter, "compressed in a way"),
    "objects": (_objects, "neither numbers nor text"),
    "references": (_references, "neither numbers nor text"),
    "committed type": (_committed_type, "is no array"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_file_is_refused_before_anything_is_read(tmp_path: Path, forgery: str) -> None:
    fill, message = FORGED[forgery]
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    path = tmp_path / "forged.h5"
    write_sealed(path, "kind", lambda file: fill(file, secret))
    with pytest.raises(SealError, match=message), open_sealed(path, "kind"):
        pytest.fail("the file was opened")


@pytest.mark.timeout(20)
def test_pipe_behind_an_array_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = tmp_path / "forged.h5"

    def fill(file: Any) -> None:
        file.create_dataset("runs/X", (36,), "u1", external=[(str(pipe), 0, 36)])

    write_sealed(path, "kind", fill)
    with pytest.raises(SealError, match="another file"), open_sealed(path, "kind"):
        pass


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_checkpoint_says_what_to_do(tmp_path: Path, forgery: str) -> None:
    fill, message = FORGED[forgery]
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    path = tmp_path / "run.h5"
    write_sealed(path, "paims-checkpoint", lambda file: fill(file, secret))
    with pytest.raises(CheckpointError, match=rf"{message}.*Remove the file"):
        paims.resume(path, lambda x: x[:, 0])


def test_what_is_ours_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ours.h5"
    table = np.zeros(3, dtype=[("level", int), ("beta", float)])
    noise = np.random.default_rng(0).random((300, 7))

    def fill(file: Any) -> None:
        put_array(file, "a/noise", noise)
        put_array(file, "a/plain", noise, compressed=False)
        put_array(file, "a/zeros", np.zeros((1000, 1000)))
        put_array(file, "empty", np.empty((0, 3)))
        put_array(file, "mask", np.ones(4, dtype=bool))
        put_array(file, "table", table)
        put_json(file, "words", {"name": "höhe"})

    write_sealed(path, "kind", fill)
    with open_sealed(path, "kind") as file:
        np.testing.assert_array_equal(file["a/noise"][()], noise)
        np.testing.assert_array_equal(file["a/zeros"][()], 0.0)
        assert file["empty"].shape == (0, 3)
        assert file["table"].dtype == table.dtype


def test_the_forgeries_work_without_the_check(tmp_path: Path) -> None:
    # What the check is for: HDF5 itself hands out the bytes of the other file.
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    path = tmp_path / "forged.h5"
    write_sealed(path, "kind", lambda file: _external(file, secret))
    with h5py.File(io.BytesIO(path.read_bytes()), "r") as file:
        assert file["runs/X"][()].tobytes() == SECRET[:36]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_replaced_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "private.h5"
    path.touch()
    path.chmod(mode)
    seen: list[int] = []

    def fill(file: Any) -> None:
        put_array(file, "x", np.zeros(3))

    write_sealed(path, "kind", fill)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    with whole_file(path):
        (beside,) = (item for item in tmp_path.iterdir() if item != path)
        seen.append(stat.S_IMODE(beside.stat().st_mode))
    assert seen == [mode]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="not a regular file"):
        write_sealed(pipe, "kind", lambda file: None)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_what_has_no_end_is_refused_by_its_beginning() -> None:
    with pytest.raises(SealError, match="not an HDF5 file"), open_sealed(Path("/dev/zero"), "x"):
        pass
