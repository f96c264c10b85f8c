"""Scores by Open Inference V2 and by MLflow's protocol, which refuse a request with a bad row."""

from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from eqsep import __version__
from eqsep.errors import UserError, quoted
from eqsep.serve.intake import RowAnswer
from eqsep.serve.web.guards import require
from eqsep.serve.web.limits import Limits
from eqsep.serve.web.rows import CheckedRows, counted_rows, csv_rows, parsed
from eqsep.serve.web.service import Service, content_type

JSON = "application/json"
OUTPUTS = {"score": "FP64", "p_value": "FP64", "alarm": "BOOL", "kind": "BYTES"}
OUTPUTS["kind_probability"] = "FP64"  # null where it is not known
_KNOWN = {"FP64", "FP32", "FP16", "BOOL", "BYTES"}
_KNOWN |= {f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")


def _body(**types: str) -> dict[str, Any]:
    """The body of a request for OpenAPI: an object with fields of these types."""
    fields = {name: {"type": kind} for name, kind in types.items()}
    schema = {"type": "object", "properties": fields}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


_INVOCATION = _body(
    dataframe_split="object", dataframe_records="array", instances="array", params="object"
)


def open_inference(service: Service) -> APIRouter:
    """The routes of the Open Inference Protocol."""
    routes = APIRouter(prefix="/v2", tags=["Open Inference Protocol V2"])

    @routes.get("")
    async def server() -> dict[str, Any]:
        """The server's name and version."""
        return {"name": "eqsep", "version": __version__, "extensions": []}

    @routes.get("/health/live")
    async def live() -> dict[str, bool]:
        """Whether the server runs."""
        return {"live": True}

    @routes.get("/health/ready")
    async def ready() -> dict[str, bool]:
        """Whether the server can take requests."""
        await run_in_threadpool(service.ws.store.check)
        return {"ready": True}

    @routes.get("/models/{name}/ready")
    @routes.get("/models/{name}/versions/{version}/ready")
    async def model_ready(request: Request, name: str) -> dict[str, Any]:
        """Whether a model can take requests."""
        require(request, "view")
        await service.reader(name)
        return {"name": name, "ready": True}

    @routes.get("/models/{name}")
    @routes.get("/models/{name}/versions/{version}")
    async def metadata(request: Request, name: str) -> dict[str, Any]:
        """The model's inputs, a tensor for each column, and its outputs."""
        require(request, "view")
        reads = (await service.reader(name)).reads
        numbers = ("number", "duration")
        inputs = {name: "FP64" if kind in numbers else "BYTES" for name, kind in reads.items()}
        version = await run_in_threadpool(lambda: service.ws.ledger.live(name).id)
        tensors = {"inputs": inputs, "outputs": OUTPUTS}
        described = {k: [_described(*one) for one in v.items()] for k, v in tensors.items()}
        return {"name": name, "versions": [str(version)], "platform": "eqsep"} | described

    @routes.post("/models/{name}/infer", openapi_extra=_body(inputs="array", parameters="object"))
    async def infer(request: Request, name: str) -> Response:
        """Score rows that are sent as a tensor for each column."""
        body, limits = await request.body(), service.limits
        asked = await service.decoded(body, lambda: parsed(body, limits))
        if not isinstance(asked, dict) or not isinstance(asked.get("inputs"), list):
            raise UserError('Expected an object with "inputs", a list of tensors.')
        keep, wanted = _keep(request, asked.get("parameters")), _outputs(asked.get("outputs"))
        reader = await service.reader(name)
        checked = await service.decoded(body, lambda: reader.check(_of_tensors(asked, limits)))
        answers = await _all_answered(service, name, checked, keep)
        answered: dict[str, Any] = {"model_name": name, "model_version": str(answers[0].version)}
        answered["outputs"] = [
            _described(output, OUTPUTS[output], len(answers))
            | {"data": [getattr(answer, output) for answer in answers]}
            for output in wanted
        ]
        if isinstance(asked.get("id"), str):
            answered["id"] = asked["id"]
        return Response(orjson.dumps(answered), media_type=JSON)

    return routes


def mlflow(service: Service) -> APIRouter:
    """The routes of MLflow's scoring server."""
    routes = APIRouter(tags=["MLflow"])

    @routes.get("/ping")
    async def ping() -> Response:
        """Whether the server runs."""
        return Response("\n", media_type=JSON)

    @routes.get("/version")
    async def version() -> Response:
        """The version of the service."""
        return Response(__version__, media_type="text/plain")

    @routes.post("/invocations", openapi_extra=_INVOCATION)
    async def invocations(request: Request, model: str | None = None) -> Response:
        """Score rows as MLflow's server takes them; `model` is needed if there are several."""
        names = [model] if model is not None else await run_in_threadpool(service.ws.ledger.names)
        if len(names) != 1:
            raise UserError(f"The service has {len(names)} models: name one with ?model=NAME.")
        name = names[0]
        reader, body = await service.reader(name), await request.body()
        limits = service.limits
        if content_type(request) == "text/csv":
            keep = _keep(request, None)
            checked = await service.decoded(body, lambda: csv_rows(body, limits, reader=reader))
        else:
            asked = await service.decoded(body, lambda: parsed(body, limits))
            if not isinstance(asked, dict):
                raise UserError(f"Expected an object with one of {quoted(_FORMS)}.")
            keep = _keep(request, asked.get("params"))
            checked = await service.decoded(
                body, lambda: reader.check(counted_rows(_of_frame(asked, [*reader.reads]), limits))
            )
        answers = await _all_answered(service, name, checked, keep)
        predictions = [{name: getattr(answer, name) for name in OUTPUTS} for answer in answers]
        return Response(orjson.dumps({"predictions": predictions}), media_type=JSON)

    return routes


async def _all_answered(
    service: Service, name: str, checked: CheckedRows, keep: bool
) -> list[RowAnswer]:
    errors, answers = checked.errors, list[RowAnswer | None]()
    if not errors:
        answers, errors = await service.answered(name, checked, keep=keep)
    if errors:
        raise UserError(f"Row {errors[0].row}: {errors[0].error}.")
    return [answer for answer in answers if answer is not None]


def _keep(request: Request, parameters: Any) -> bool:
    """Whether to store rows: unless a parameter of the request is `"keep": false`."""
    keep = not (isinstance(parameters, dict) and parameters.get("keep") is False)
    require(request, "judge" if keep else "view")
    return keep


def _outputs(asked: Any) -> list[str]:
    """The names of the outputs that a request asks for; all, if it asks for none."""
    given = asked if isinstance(asked, list) else [] if asked is None else [asked]
    wanted = [str(one.get("name")) if isinstance(one, dict) else "" for one in given]
    if not set(wanted) <= set(OUTPUTS):
        raise UserError(f"Outputs are objects with a name: {quoted(OUTPUTS)}, got {wanted}.")
    return wanted or [*OUTPUTS]


def _of_tensors(asked: dict[str, Any], limits: Limits) -> list[Any]:
    """The rows of tensors of shape (n,) or (n, 1), one for each column."""
    tensors, most = asked["inputs"], limits.columns
    if len(tensors) > most:
        raise UserError(f"Expected at most {most:,} tensors, got {len(tensors):,}.")
    columns = dict(map(_column, tensors))
    sizes = {len(values) for values in columns.values()}
    if len(sizes) > 1:
        raise UserError(f"Expected tensors of equal length, got lengths {sorted(sizes)}.")
    return counted_rows(_rows(columns), limits)


def _column(tensor: Any) -> tuple[str, list[Any]]:
    try:
        name, shape, datatype, data = (tensor[k] for k in ("name", "shape", "datatype", "data"))
        if not isinstance(name, str) or not isinstance(data, list):
            raise TypeError
        values = [v[0] if isinstance(v, list) and len(v) == 1 else v for v in data]
        if list(shape) not in ([len(values)], [len(values), 1]):
            raise UserError(f"Tensor {name!r} has {len(values)} values, but its shape is {shape}.")
    except (KeyError, TypeError) as error:
        raise UserError('A tensor needs "name", "shape" [n], "datatype" and "data".') from error
    if datatype not in _KNOWN:
        raise UserError(f"The tensor {name!r} has an unknown datatype.")
    return name, values


def _of_frame(asked: dict[str, Any], names: Any) -> list[Any]:
    """The rows in one of MLflow's forms; lists of values get the names of the columns."""
    given = [form for form in _FORMS if form in asked]
    if len(given) != 1:
        raise UserError(f"Expected one of {quoted(_FORMS)}, got {quoted(asked)}.")
    form, rows = given[0], asked[given[0]]
    if form == "dataframe_split":
        frame = {"columns": names} | rows if isinstance(rows, dict) else {}
        names, rows = frame.get("columns"), frame.get("data")
        if not isinstance(names, list) or not isinstance(rows, list):
            raise UserError('Expected "dataframe_split" with "columns" and "data".')
    if form == "inputs" and isinstance(rows, dict):  # columns, or one row
        if not all(isinstance(values, list) for values in rows.values()):
            return [rows]
        if len({len(values) for values in rows.values()}) > 1:
            raise UserError("Expected columns of equal length.")
        return _rows(rows)
    if not isinstance(rows, list):
        raise UserError("Expected a list of rows.")
    return [
        dict(zip(map(str, names), row, strict=True))
        if isinstance(row, list) and len(row) == len(names)
        else row  # for the check to refuse
        for row in rows
    ]


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _described(name: str, datatype: str, n: int = -1) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [n]}
