"""For a browser where the server wants a token: it is typed once, and a cookie that no script can read stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from kebab.interfaces.http import addresses
from kebab.interfaces.http.reading import form_body
from kebab.interfaces.http.safety import LOGIN_PATH, SESSION_COOKIE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.interfaces.http.safety import Rules, Tokens
    from kebab.interfaces.http.templating import Templates


class LoginPage:
    def __init__(self, rules: Rules, tokens: Tokens, templates: Templates) -> None:
        self._rules = rules
        self._tokens = tokens
        self._templates = templates

    async def page(self, request: Request) -> Response:
        next_page = addresses.safe_next(request.query_params.get("next"))
        if not self._rules.token:
            return RedirectResponse(next_page, 303)
        return self._templates.page("login.html", next_page=next_page, is_wrong=False)

    async def login(self, request: Request) -> Response:
        sent = await form_body(request)
        next_page = addresses.safe_next(sent.get("next"))
        if self._rules.token and not self._tokens.accepts(request.scope, sent.get("token", "").strip()):
            return self._templates.page("login.html", 401, next_page=next_page, is_wrong=True)
        response = RedirectResponse(next_page, 303)
        if self._rules.token:
            response.set_cookie(
                SESSION_COOKIE,
                self._rules.session,
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
                path="/",
            )
        return response

    async def logout(self, _request: Request) -> Response:
        response = RedirectResponse(LOGIN_PATH, 303)
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", path="/")
        return response
