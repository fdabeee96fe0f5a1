"""Models behind an address: a server that takes rows in a POST and answers with outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .._core.validate import as_names, check_choice, check_count, check_number
from ..errors import InvalidArgument
from .parts import check_key

if TYPE_CHECKING:
    from .remote_model import RemoteModel

FEWEST_SECONDS = 1e-3


def remote(
    url: str,
    *,
    protocol: Literal["v2", "v1", "mlflow"] = "v2",
    input_name: str = "input",
    outputs: Sequence[str] = (),
    output_key: str | int | None = None,
    feature_names: Sequence[str] | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    budget: int | None = None,
    batch_size: int = 256,
    in_flight: int = 4,
    timeout: float = 30.0,
    retries: int = 5,
    token_env: str | None = None,
) -> RemoteModel:
    """Model behind an address: a server that takes rows in a POST and answers with outputs.

    Temporary failures are tried again: status 429, 500, 502, 503 and 504, dropped connections, and time-outs. Waits
    grow from a tenth of a second, with a random part, and are no shorter than `Retry-After` says. Each row is answered
    once. TLS certificates are checked (`SSL_CERT_FILE` names others than the usual ones); redirects are not followed.

    Parameters
    ----------
    url
        The full address that takes the POST, such as `https://host/v2/models/m/infer`, `https://host/v1/models/m:predict`
        or `https://host/invocations`.
    protocol
        `"v2"`: Open Inference Protocol, as of Triton, KServe and MLServer; `"v1"`: KServe and TensorFlow Serving;
        `"mlflow"`: MLflow scoring, which gets data frames as they are, by column names.
    input_name
        Name of the input tensor, for v2.
    outputs
        Names of the outputs, if the server gives several for a row.
    output_key
        Name or position of the part to explain, where the server answers with several tensors or columns.
    feature_names
        Names of the columns; with them MLflow is given arrays as frames, too.
    dtype
        Type in which the server computes: points are made in it, and v2 requests declare it (FP64 or FP32).
    budget
        Rows that may be sent in all, those sent again included; `model.sent` counts them. A call that would need more
        raises `BudgetExceeded` before it begins.
    batch_size, in_flight
        Rows of one request, and requests at a time.
    timeout, retries
        Seconds for one request, from its beginning to the last byte of the answer (more only if a server sends the
        headers of its answer in small pieces); and how often it is sent again.
    token_env
        Name of the environment variable that holds a bearer token. It is read when a request is sent and stored
        nowhere. It is sent only over TLS, or to this machine.
    """
    from .remote_calls import check_url  # at once it would make `import smoothlime` slower
    from .remote_model import RemoteModel
    from .remote_protocols import DATA_TYPES, PROTOCOLS, Dialect

    check_choice(protocol, "protocol", tuple(PROTOCOLS))
    check_choice(dtype, "dtype", tuple(DATA_TYPES))
    check_key(output_key)
    names = None if feature_names is None else as_names(feature_names, "feature_names")
    if check_number(timeout, "timeout") < FEWEST_SECONDS:
        msg = f"timeout must be a number of seconds above 0; got {timeout!r}"
        raise InvalidArgument(msg, argument="timeout")
    settings = {
        "budget": None if budget is None else check_count(budget, "budget"),
        "batch_size": check_count(batch_size, "batch_size"),
        "in_flight": check_count(in_flight, "in_flight"),
        "timeout": float(timeout),
        "retries": check_count(retries, "retries", at_least=0),
        "token_env": token_env,
    }
    check_url(url, token_env)
    dialect = Dialect(protocol, str(input_name), output_key, names, dtype)
    return RemoteModel(url, dialect, as_names(outputs, "outputs"), settings)
