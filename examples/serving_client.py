"""Ask a server of ``entourage serve``, with nothing but the standard library.

    entourage serve hotels.entourage
    python examples/serving_client.py http://127.0.0.1:8000

It asks what the model needs, makes a set of that, and prints predictions and influences. A token is taken from the
environment variable ENTOURAGE_TOKEN.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any


class Client:
    """A client that says what the server says, and asks again where it is told to."""

    def __init__(self, url: str, token: str | None = None, seconds: float = 30.0) -> None:
        self.url, self.seconds = url.rstrip("/"), seconds
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """Return what a path holds."""
        return self._send(path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a body."""
        return self._send(path, json.dumps(body).encode())

    def _send(self, path: str, data: bytes | None, tries: int = 3) -> Any:
        request = urllib.request.Request(self.url + path, data, self.headers)
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (429, 503) and tries > 1:
                time.sleep(float(error.headers.get("Retry-After", 1)))
                return self._send(path, data, tries - 1)
            said = json.load(error).get("error", {})
            raise SystemExit(f"{error.code} {said.get('path', '')}: {said.get('message', '')}") from None


def main(url: str) -> None:
    client = Client(url, os.environ.get("ENTOURAGE_TOKEN"))
    model = client.get("/v1/model")
    print(f"{model['name']}: {model['task']} by {model['estimator']}, objects are {model['objects']}")
    pages = client.get("/openapi.json")
    example = pages["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
    found = client.post("/v1/predict", example)
    for one, answer in zip(example["sets"], found["sets"], strict=True):
        for i, given in enumerate(one["objects"]):
            values = {name: value[i] for name, value in answer.items() if isinstance(value, list)}
            print(f"  {given} -> {values}")
    influence = client.post("/v1/influence", example)
    print("mean absolute influence of each object:", influence["mean_absolute_influence"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
