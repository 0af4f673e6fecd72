"""HDF5 files that are there whole or not at all, and that are checked before they are read.

The first 512 bytes, HDF5's user block which other programs skip, hold a line with the kind of the
file and the SHA-256 of the rest. A damaged or foreign file is refused before the HDF5 library,
which was not made for hostile input, sees any of it. The file is built in memory and written
beside its place, flushed to the disk and renamed.

The checksum is no signature: whoever makes a file can make it fit. HDF5 lets a file point at other
files and ask for any amount of memory, so :func:`open_sealed` first looks at everything in it and
refuses what :func:`write_sealed` never writes.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import json
import math
import os
import stat
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

_BLOCK = 512
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Arrays may take this many bytes, and so many times the size of their file: more than a file of
# ours ever did, and little enough for any machine that has room for the file.
_FREE_BYTES = 2**24
_BYTES_PER_BYTE = 100
# Groups and arrays; each takes time to look at.
_MOST = 50_000
_DEFLATE, _SHUFFLE = 1, 2

#: What reading values of other kinds than they should be can raise, :class:`SealError` included.
UNREADABLE = (
    OSError,
    LookupError,
    ArithmeticError,
    AttributeError,
    ValueError,
    TypeError,
    RuntimeError,
)


class SealError(ValueError):
    """A file that is not what was asked for, or not as it was written; the text says which."""


def write_sealed(path: Path, kind: str, fill: Callable[[Any], None]) -> None:
    """Write an HDF5 file, whole or not at all.

    Parameters
    ----------
    path : Path
        An existing file is replaced.
    kind : str
        What the file is; :func:`open_sealed` has to ask for the same.
    fill : callable
        Takes the open ``h5py.File`` and puts the content in.
    """
    import h5py  # noqa: PLC0415 - slow to import, seldom needed

    buffer = io.BytesIO()
    with h5py.File(buffer, "w", userblock_size=_BLOCK) as file:
        fill(file)
    content = memoryview(buffer.getbuffer())[_BLOCK:]
    with whole_file(path) as out:
        out.write(_seal(kind, content))
        out.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its place when the block ends, and does not if it raises.

    A file that is replaced keeps its permissions. What is not a regular file, such as a device,
    is not replaced: that raises :class:`FileExistsError`.
    """
    permissions = 0o666
    with suppress(FileNotFoundError):
        before = path.stat().st_mode
        if not stat.S_ISREG(before):
            raise FileExistsError(errno.EEXIST, "It is not a regular file", str(path))
        permissions = stat.S_IMODE(before)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")

    def create(name: str, flags: int) -> int:
        # From the first byte on for nobody else's eyes than the file that is replaced was.
        return os.open(name, flags, permissions)

    try:
        with open(temporary, "xb", opener=create) as out:
            if permissions != 0o666:
                os.chmod(temporary, permissions)
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def open_sealed(path: Path, kind: str) -> Iterator[Any]:
    """Open a file of :func:`write_sealed` for reading.

    Raises
    ------
    SealError
        If it is something else or damaged, before HDF5 reads it; if it points at other files or
        asks for more memory than its size explains, before any array is read.
    """
    with path.open("rb") as source:
        block = source.read(_BLOCK)
        if not block.startswith(f"{kind} ".encode()):  # read no more: a device may have no end
            if _SIGNATURE in (block[:8], source.read(8)):
                raise SealError(
                    "it is an HDF5 file of something else, or its first bytes are damaged"
                )
            raise SealError("it is not an HDF5 file of this library, or was cut off")
        content = block + source.read()
    if block != _seal(kind, memoryview(content)[_BLOCK:]):
        raise SealError("it is damaged: its checksum does not fit, or it was cut off")
    import h5py  # noqa: PLC0415 - slow to import, seldom needed

    with h5py.File(io.BytesIO(content), "r") as file:
        _check_content(file, _FREE_BYTES + _BYTES_PER_BYTE * len(content))
        yield file


def _check_content(file: Any, budget: int) -> None:
    """Refuse what could read another file, or take more than ``budget`` bytes; reads no array."""
    import h5py  # noqa: PLC0415 - slow to import, seldom needed

    groups, seen = [file], {h5py.h5o.get_info(file.id).addr}
    while groups:
        group = groups.pop()
        for name in group:
            what = f"{group.name.rstrip('/')}/{name}"
            try:
                link = group.get(name, getlink=True)
            except TypeError:
                link = None
            if not isinstance(link, h5py.HardLink):
                raise SealError(f"its {what} points at something outside of it")
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                raise SealError(f"its {what} is something else in it under a second name")
            seen.add(address)
            if len(seen) > _MOST:
                raise SealError(f"it is made of more than {_MOST} parts")
            if isinstance(item, h5py.Group):
                groups.append(item)
            elif isinstance(item, h5py.Dataset):
                budget -= _bytes_of(item, what, budget)
            else:
                raise SealError(f"its {what} is no array")


def _bytes_of(dataset: Any, what: str, budget: int) -> int:
    """Memory that reading an array takes, if that is all that reading it does."""
    plan = dataset.id.get_create_plist()
    # First, as even the shape of a virtual array can depend on other files.
    if dataset.is_virtual or plan.get_external_count():
        raise SealError(f"its {what} is kept in another file")
    if dataset.dtype.hasobject:
        raise SealError(f"its {what} holds neither numbers nor text of a fixed length")
    filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
    if filters not in ([], [_DEFLATE], [_SHUFFLE, _DEFLATE]):
        raise SealError(f"its {what} is compressed in a way that is not ours")
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    needed: int = max(int(dataset.nbytes), chunk)
    if needed > budget:
        raise SealError(
            f"its {what} would take {needed:.3g} bytes, which its size does not explain"
        )
    if filters:
        _check_chunks(dataset, what, chunk)
    return needed


def _check_chunks(dataset: Any, what: str, n_bytes: int) -> None:
    """Refuse a chunk that unpacks to more than ``n_bytes``: HDF5 would make room for all of it."""
    for i in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(i)
        mask, packed = dataset.id.read_direct_chunk(info.chunk_offset)
        unpacking = zlib.decompressobj()
        try:
            size = len(unpacking.decompress(packed, n_bytes + 1))
        except zlib.error as error:
            raise SealError(f"its {what} cannot be unpacked ({error})") from None
        if mask or size != n_bytes:
            raise SealError(f"its {what} unpacks to another size than it says")


def remove_remains(path: Path) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    for remains in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            remains.unlink()


def _seal(kind: str, content: Any) -> bytes:
    return f"{kind} sha256 {hashlib.sha256(content).hexdigest()}\n".encode().ljust(_BLOCK, b"\0")


def _flush_folder(path: Path) -> None:
    """Make the system write a folder's entries to the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # Some systems do not open folders.
    try:
        with suppress(OSError):  # Some do not flush them.
            os.fsync(handle)
    finally:
        os.close(handle)


def put_array(parent: Any, name: str, array: Any, compressed: bool = True) -> None:
    """Store an array; compression is smaller and slower."""
    options = {"compression": "gzip", "shuffle": True} if compressed and np.size(array) else {}
    parent.create_dataset(name, data=array, **options)


def put_json(parent: Any, name: str, value: Any) -> None:
    """Store what JSON can say."""
    put_array(parent, name, np.array([json.dumps(value).encode()]))


def get_json(parent: Any, name: str) -> dict[str, Any]:
    """Read what :func:`put_json` stored."""
    value = json.loads(parent[name][0])
    if not isinstance(value, dict):
        raise SealError(f"its {name} is not what it should be")
    return value
