"""Makes the OpenAPI document from the endpoints and the wire schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from kebab._version import __version__
from kebab.interfaces.http.api import ALWAYS, Endpoint, Parameter, Schema
from kebab.wire import schemas

_IN_PATH = re.compile(r"\{(\w+)\}")
_TEXT = {"type": "string"}
_ERROR_V2 = {"type": "object", "properties": {"error": _TEXT, "message": _TEXT}, "required": ["error", "message"]}
_PHRASES = {
    200: "The answer",
    202: "Accepted, or still being indexed: come back later",
    400: "The request is not as it must be",
    401: "No token, or a wrong one",
    403: "Another host or origin, or writing where only reading is allowed",
    404: "There is no such thing",
    409: "It contradicts what is stored, such as a cursor of an older index, or fits several",
    413: "The request is too large",
    422: "There is nothing that could be indexed, or it is not allowed here",
    429: "Too many requests",
    500: "A defect, or a database that cannot be read",
    502: "A model that does not answer",
    503: "It took too long, or another process is writing",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    components: dict[str, Schema] = {}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(f"/api/{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kebab",
            "version": __version__,
            "description": "Search your own notes, documents and code, with exact citations.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Only where the server has a token."}
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(endpoint: Endpoint, components: dict[str, Schema]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)]),
        "parameters": [_parameter(name, given, endpoint.path) for name, given in endpoint.parameters.items()],
        "responses": _responses(endpoint, components),
    }
    if endpoint.bodies:
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schema} for media, schema in endpoint.bodies.items()},
        }
    return operation


def _parameter(name: str, given: Parameter, path: str) -> dict[str, Any]:
    schema = dict(given.schema)
    described = {"description": schema.pop("description")} if "description" in schema else {}
    place = "path" if name in _IN_PATH.findall(path) else "query"
    return {"name": name, "in": place, "required": given.required, **described, "schema": schema}


def _responses(endpoint: Endpoint, components: dict[str, Schema]) -> dict[str, Any]:
    responses: dict[str, dict[str, Any]] = {}
    for answer in endpoint.answers:
        response = responses.setdefault(str(answer.status), {"description": _PHRASES[answer.status], "content": {}})
        schema = answer.schema if isinstance(answer.schema, dict) else _wire(answer.schema, components)
        response["content"][answer.media] = {"schema": schema}
    failed = _ERROR_V2 if endpoint.path.startswith("v2/") else _wire("error", components)
    for status in sorted({error.status for error in (*ALWAYS, *endpoint.fails)}):
        responses.setdefault(
            str(status), {"description": _PHRASES[status], "content": {"application/json": {"schema": failed}}}
        )
    return dict(sorted(responses.items()))


def _wire(name: str, components: dict[str, Schema]) -> Schema:
    """A reference to the schema of a wire object. Adds that schema and its definitions to `components`."""
    title = f"{name}.v1"
    if title not in components:
        schema = schemas.schema(name)
        for key, definition in schema.pop("$defs", {}).items():
            components[key] = _moved(definition)
        schema.pop("$schema")
        components[title] = _moved(schema)
    return {"$ref": f"#/components/schemas/{title}"}


def _moved(schema: Any) -> Any:
    """The schema with references to where OpenAPI has the definitions."""
    return json.loads(json.dumps(schema).replace("#/$defs/", "#/components/schemas/"))
