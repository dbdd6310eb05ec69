"""The OpenAPI document is complete and correct: schemathesis sends requests for everything it describes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2
import jsonschema
import pytest
from tests.serving import Server

from kebab.interfaces.http.api import Api
from kebab.interfaces.http.libraries_api import LibrariesApi
from kebab.search.options import SearchRequest


@pytest.fixture(scope="module")
def described(client: httpx2.Client) -> Any:
    return client.get("openapi.json").json()


def test_the_openapi_document_describes_every_address(described: Any) -> None:
    nobody = Mock()  # nothing is asked of them
    api = Api(nobody, nobody, nobody, nobody)
    served = [*api.endpoints(), *LibrariesApi(nobody, nobody).endpoints(), *api.ask_endpoints()]
    assert {(f"/api/{endpoint.path}", endpoint.method.lower()) for endpoint in served} == {
        (path, method) for path, methods in described["paths"].items() for method in methods
    }
    operations = [operation for methods in described["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"] for operation in operations)


def test_search_takes_every_option_of_a_bulk_line(described: Any) -> None:
    parameters = {parameter["name"] for parameter in described["paths"]["/api/v1/search"]["get"]["parameters"]}
    assert parameters == set(SearchRequest._fields)


def test_every_reference_leads_to_a_valid_schema(described: Any) -> None:
    components = described["components"]["schemas"]

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values())) if value else own
        return set().union(*map(references, value)) if isinstance(value, list) and value else set()

    assert {reference.rpartition("/")[2] for reference in references(described)} <= set(components)
    for schema in components.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_schemathesis_finds_no_violation(server: Server, tmp_path: Path) -> None:
    """A run of limited length with all checks of schemathesis."""
    ran = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", server.url + "openapi.json"),
            *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1"),
            *("--generation-database", "none", "--no-color"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
