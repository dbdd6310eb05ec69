"""One port with a web page and a REST interface; see `app.py`."""
