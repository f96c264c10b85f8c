"""The protocols that clients know: Open Inference V2, and MLflow's scoring server."""

import pytest
from served import GOOD, HOT, served

from eqsep import Detector, __version__

INFER = "/v2/models/machines/infer"


@pytest.fixture(scope="module")
def service():
    return served()


@pytest.fixture(scope="module")
def client(service):
    with service.client("judge") as client:
        yield client


@pytest.fixture(scope="module")
def expected(client):
    rows = [{name: row[name] for name in GOOD} for row in (GOOD, HOT)]
    body = client.post("/api/v1/models/machines/score?keep=false", json={"rows": rows}).json()
    names = ("score", "p_value", "alarm", "kind", "kind_probability")
    return [{name: answer[name] for name in names} for answer in body["answers"]]


def tensor(name, data, datatype="FP64", shape=None):
    return {"name": name, "shape": shape or [len(data)], "datatype": datatype, "data": data}


TENSORS = [
    tensor("heat", [60.0, 140.0]),
    tensor("load", [[0.0], [0.1]], shape=[2, 1]),
    tensor("shape", ["pump", "fan"], "BYTES"),
]


def test_the_server_and_its_models_describe_themselves(service, client):
    nobody = service.client()
    assert nobody.get("/v2/health/live").json() == {"live": True}
    assert nobody.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2").json() == {"name": "eqsep", "version": __version__, "extensions": []}
    told = client.get("/v2/models/machines").json()
    assert told["inputs"] == [
        {"name": "heat", "datatype": "FP64", "shape": [-1]},
        {"name": "load", "datatype": "FP64", "shape": [-1]},
        {"name": "shape", "datatype": "BYTES", "shape": [-1]},
    ]
    assert [output["name"] for output in told["outputs"]] == [
        *("score", "p_value", "alarm", "kind", "kind_probability")
    ]
    assert client.get("/v2/models/machines/ready").json()["ready"] is True
    assert client.get("/v2/models/nothing").status_code == 404


def test_tensors_are_scored_as_rows_are(client, expected):
    answer = client.post(INFER, json={"id": "7", "inputs": TENSORS}).json()
    assert (answer["model_name"], answer["id"]) == ("machines", "7")
    assert answer["model_version"] == "1"
    for output in answer["outputs"]:
        assert output["shape"] == [2]
        assert output["data"] == [one[output["name"]] for one in expected]
    kinds = {output["name"]: output["datatype"] for output in answer["outputs"]}
    assert kinds == {
        "score": "FP64",
        "p_value": "FP64",
        "alarm": "BOOL",
        "kind": "BYTES",
        "kind_probability": "FP64",
    }


def test_only_the_outputs_that_are_asked_for_come(client):
    answer = client.post(INFER, json={"inputs": TENSORS, "outputs": [{"name": "kind"}]}).json()
    assert [output["name"] for output in answer["outputs"]] == ["kind"]


def test_alarms_of_both_protocols_are_kept_unless_asked_not_to(service, client):
    def total():
        return service.ws.alarms.inbox("machines").total

    before = total()
    client.post(INFER, json={"inputs": TENSORS, "parameters": {"keep": False}})
    client.post("/invocations", json={"instances": [HOT], "params": {"keep": False}})
    assert total() == before
    client.post(INFER, json={"inputs": TENSORS})
    client.post("/invocations", json={"instances": [HOT]})
    assert total() == before + 2
    view = service.client("view")
    assert view.post("/invocations", json={"instances": [HOT]}).status_code == 403
    kept_not = {"instances": [HOT], "params": {"keep": False}}
    assert view.post("/invocations", json=kept_not).status_code == 200


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "inputs"),
        ([], "inputs"),
        ({"inputs": [3]}, "A tensor needs"),
        ({"inputs": [tensor("heat", [1.0], shape=[2])]}, "but its shape is"),
        ({"inputs": [tensor("heat", [1.0], "FP128")]}, "unknown datatype"),
        ({"inputs": [tensor("heat", [1.0]), tensor("load", [1.0, 2.0])]}, "equal length"),
        ({"inputs": [tensor("heat", [1.0])]}, "Row 0: missing columns: 'load', 'shape'"),
        ({"inputs": [TENSORS[0], TENSORS[1], tensor("shape", [["a", "b"], "x"])]}, "Row 0: column"),
        ({"inputs": TENSORS, "outputs": [{"name": "secret"}]}, "Outputs are"),
        ({"inputs": TENSORS, "outputs": [3]}, "Outputs are"),
        ({"inputs": TENSORS, "outputs": "score"}, "Outputs are"),
    ],
)
def test_tensors_that_cannot_be_are_refused(client, asked, told):
    answer = client.post(INFER, json=asked)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


ROWS = [[60.0, 0.0, "pump"], [140.0, 0.1, "fan"]]


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["heat", "load", "shape"], "data": ROWS}},
        {"dataframe_split": {"index": [0, 1], "columns": ["heat", "load", "shape"], "data": ROWS}},
        {"dataframe_records": [GOOD, HOT]},
        {"instances": [GOOD, HOT]},
        {"instances": ROWS},
        {"inputs": [GOOD, HOT]},
        {"inputs": {"heat": [60.0, 140.0], "load": [0.0, 0.1], "shape": ["pump", "fan"]}},
    ],
)
def test_every_form_of_mlflow_is_scored(client, expected, body):
    assert client.post("/invocations", json=body).json() == {"predictions": expected}


def test_csv_and_one_row_by_mlflow(client, expected):
    text = "heat,load,shape\n60.0,0.0,pump\n140.0,0.1,fan\n"
    answer = client.post("/invocations", content=text, headers={"Content-Type": "text/csv"})
    assert answer.json() == {"predictions": expected}
    one = client.post("/invocations?model=machines", json={"inputs": GOOD})
    assert one.json() == {"predictions": expected[:1]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"instances": [GOOD], "inputs": [GOOD]},
        {"dataframe_split": 3},
        {"dataframe_records": {"heat": 1}},
        {"dataframe_split": {"columns": ["heat"], "data": [[1.0, 2.0]]}},
        {"inputs": {"heat": [1.0], "load": [1.0, 2.0]}},
        {"instances": [{"heat": "hot", "load": 1, "shape": "fan"}]},
        {"instances": []},
        3,
    ],
)
def test_what_mlflow_would_refuse_is_refused_in_its_words(client, body):
    answer = client.post("/invocations", json=body)
    assert answer.status_code == 400
    assert answer.json()["error_code"] == "BAD_REQUEST"


def test_ping_and_version(service, client):
    assert service.client().get("/ping").status_code == 200
    assert client.get("/version").text == __version__


def test_where_there_are_two_models_one_is_named(tmp_path):
    service = served(f"sqlite:///{tmp_path / 'eqsep.db'}")
    first = service.ws.ledger
    first.add("other", Detector.of(first.model(1)), by="test")
    with service.client("judge") as client:
        assert client.post("/invocations", json={"instances": [GOOD]}).status_code == 400
        assert (
            client.post("/invocations?model=other", json={"instances": [GOOD]}).status_code == 200
        )
