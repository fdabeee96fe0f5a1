"""Every exception and warning that smoothlime raises.

Each error is also the built-in error it resembles, so `except ValueError` keeps working::

    SmoothlimeError
    ├── InvalidArgument (ValueError)          an argument has an impossible value
    │   ├── TooFewDraws                       n_samples cannot carry the method at this d
    │   └── IncompatibleExplanations          two explanations that cannot be combined
    ├── WrongType (TypeError)                 an argument is of a kind we cannot use
    │   ├── NoGradients                       gradients asked of a model that has none
    │   └── NoClosedForm                      an exact answer asked of a model that has none
    ├── ModelError (RuntimeError)             the model raised, or returned what we cannot use
    │   └── NotDeterministic                  the same points gave two answers
    ├── SingularFit (ArithmeticError)         the least-squares problem has no single answer
    ├── UnreadableFile (ValueError)           a file is not what it should be, or damaged, or from a newer version
    │   └── MissingFile (FileNotFoundError)   there is no such file
    ├── UnwritableFile (OSError)              a file cannot be written where it was asked for
    ├── RemoteError (ConnectionError)         a model behind an address gave no answer that can be used
    ├── BudgetExceeded (RuntimeError)         more rows would be sent to a model behind an address than it may be asked
    ├── DataUnavailable (OSError)             a data set is neither here nor to be had
    └── MissingExtra (ImportError)            an optional dependency is not installed

    SmoothlimeWarning (UserWarning)
    ├── ErrorsAdded                           two explanations with different draws were combined
    ├── NotConverged                          the tolerance was not reached within max_samples
    ├── SmallerBatches                        the model ran out of memory; batches were halved
    ├── NotKept                               a download could not be kept for the next time
    ├── LostPrecision                         the model's number format blurs the perturbations
    ├── JumpsUnseen                           the model changes otherwise than its gradients say
    ├── FarUnseen                             the model answers at none of the points looked at further out
    ├── CategoriesPerturbed                   the model takes a feature that is perturbed for a category
    ├── DrawsOffData                          many draws lie beyond what the background ever was
    ├── SwitchesLeftOut                       the model does not take a level that others of the background have
    ├── OutsideBackground                     a row lies beyond what the background ever was
    └── DamagedFile                           a file was loaded that is not what was saved
"""

from __future__ import annotations


class SmoothlimeError(Exception):
    """Base of every error raised on purpose by smoothlime.

    `argument` is the name of the argument at fault, as it is written in Python, or None.
    """

    def __init__(self, *args: object, argument: str | None = None) -> None:
        super().__init__(*args)
        self.argument = argument


class InvalidArgument(SmoothlimeError, ValueError):
    """An argument has a value that cannot be used."""


class TooFewDraws(InvalidArgument):
    """The number of draws cannot carry the method for this many features."""


class IncompatibleExplanations(InvalidArgument):
    """Two explanations cannot be combined."""


class WrongType(SmoothlimeError, TypeError):
    """An argument is of a kind that cannot be used."""


class NoGradients(WrongType):
    """A gradient method was asked of a model that gives no gradients."""


class NoClosedForm(WrongType):
    """An exact answer was asked of a model, or of a part of it, that has no closed form."""


class ModelError(SmoothlimeError, RuntimeError):
    """The model raised, or returned something that cannot be explained."""


class NotDeterministic(ModelError):
    """The model gave two different answers for the same points."""


class SingularFit(SmoothlimeError, ArithmeticError):
    """The local least-squares problem has no single answer."""


class UnreadableFile(SmoothlimeError, ValueError):
    """A file is not what it should be, or damaged, or from a newer version."""


class MissingFile(UnreadableFile, FileNotFoundError):
    """There is no file of that name."""


class UnwritableFile(SmoothlimeError, OSError):
    """A file cannot be written where it was asked for."""


class RemoteError(SmoothlimeError, ConnectionError):
    """A model behind an address gave no answer, or none that can be used."""


class BudgetExceeded(SmoothlimeError, RuntimeError):
    """A model behind an address would be sent more rows than its budget allows."""


class DataUnavailable(SmoothlimeError, OSError):
    """A data set is neither on this machine nor to be had from its archive."""


class MissingExtra(SmoothlimeError, ImportError):
    """An optional dependency is needed and not installed."""


class SmoothlimeWarning(UserWarning):
    """Base of every warning issued by smoothlime."""


class ErrorsAdded(SmoothlimeWarning):
    """Two explanations do not share their draws, so their errors were added."""


class NotConverged(SmoothlimeWarning):
    """Some rows did not reach their tolerance within the draws allowed."""


class SmallerBatches(SmoothlimeWarning):
    """The model ran out of memory, so it was called with smaller batches."""


class NotKept(SmoothlimeWarning):
    """A file that was downloaded could not be kept for the next time."""


class LostPrecision(SmoothlimeWarning):
    """The model's number format is too coarse for the perturbations asked for."""


class JumpsUnseen(SmoothlimeWarning):
    """The model changes over the neighbourhood otherwise than its gradients say: mostly it jumps, which they miss."""


class FarUnseen(SmoothlimeWarning):
    """The model has no answer further out than its draws, so that a kink there would go unseen."""


class CategoriesPerturbed(SmoothlimeWarning):
    """A feature is perturbed as a number that the model takes for a category, so that its slope means little."""


class DrawsOffData(SmoothlimeWarning):
    """Many draws lie beyond the smallest or largest value that a column of the background has."""


class SwitchesLeftOut(SmoothlimeWarning):
    """Nobody asked for switches, and the model does not take a level that the background has: there are none."""


class OutsideBackground(SmoothlimeWarning):
    """A row has a value that lies beyond all that the background has, where steps are taken in its ranks."""


class DamagedFile(SmoothlimeWarning):
    """A file was loaded with check=False, and its contents have changed since they were saved."""
