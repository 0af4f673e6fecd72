"""What can be asked for by name: kernels, means, priors of phi and priors of the nugget.

Whoever lists them (names in errors, the command line's help, saved files, the tests) asks the
registry of their module, which follows from what the module exports.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

T = TypeVar("T", bound="Named")


class Named:
    """An object that may have a name to be asked for by.

    Attributes
    ----------
    name : str
    """

    name: ClassVar[str] = "user"

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


def follows(cls: type[Any], method: str, other: str) -> bool:
    """Whether ``method`` was written with ``other`` in mind: by the same class or a later one.

    A derivative that a class has inherited says nothing of a function that it has changed.
    """
    definers = [next(c for c in cls.__mro__ if name in vars(c)) for name in (method, other)]
    return issubclass(*definers)


def registry(kind: type[Any], namespace: dict[str, Any]) -> dict[str, type[Any]]:
    """Collect the classes of a kind in a module's ``__all__``, by the names that they give.

    Parameters
    ----------
    kind : type
        The base class. A class that gives no ``name`` itself is left out.
    namespace : dict
        ``globals()`` of the module.
    """
    exported = [namespace.get(name) for name in namespace["__all__"]]
    classes: list[Any] = [
        cls for cls in exported if isinstance(cls, type) and issubclass(cls, kind)
    ]
    return {cls.name: cls for cls in classes if "name" in vars(cls)}


def as_object(
    argument: str, asked: Any, kind: type[Any], named: dict[str, type[T]], also: str = ""
) -> T:
    """Object of a name, or the object itself.

    Parameters
    ----------
    argument : str
        What the user calls it.
    asked : object
        What the user gave for it.
    kind : type
        The base class of all that is right.
    named : dict
        The registry.
    also : str
        What else is allowed, for the error.
    """
    if isinstance(asked, kind):
        found: T = asked
        return found
    if isinstance(asked, str) and asked in named:
        return named[asked]()
    raise ValueError(
        f"{argument} must be one of {sorted(named)}{also} or an object of a subclass of "
        f"paims.gp.{kind.__name__}; got {asked!r}."
    )
