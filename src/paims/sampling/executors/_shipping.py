"""Send the density to other processes once, not with each batch.

A worker keeps the density that it was sent under the name of its content. A task carries the name
only; a worker that does not know it says so and is sent the rest.
"""

from __future__ import annotations

import hashlib
import pickle

from paims._arrays import Array
from paims.sampling._calls import Answer, Call

_KEPT = 4
_known: dict[str, Call] = {}  # in a worker process: it has to outlive a task


class Shipment:
    """A density ready to be sent.

    Parameters
    ----------
    call : Call

    Attributes
    ----------
    name : str
    content : bytes
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        try:
            self.content = pickle.dumps(call)
        except Exception:  # what cannot be pickled raises this and that
            self.content = _by_value(call)
        self.name = hashlib.sha256(self.content).hexdigest()


def _by_value(call: Call) -> bytes:
    """Pickle functions that have no name in a module, such as lambdas."""
    try:
        import cloudpickle  # noqa: PLC0415 - seldom needed

        content: bytes = cloudpickle.dumps(call)
    except Exception as error:
        raise TypeError(
            f"log_density cannot be sent to other processes ({error}). Define it at the top of a "
            "module, without open files, locks or generators in it; or use threads."
        ) from error
    return content


def evaluate(name: str, content: bytes | None, theta: Array) -> Answer | None:
    """Evaluate a piece in a worker; None if the density has to be sent first."""
    call = _known.get(name)
    if call is None:
        if content is None:
            return None
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        loaded: Call = pickle.loads(content)
        call = _known[name] = loaded
    return call(theta)
