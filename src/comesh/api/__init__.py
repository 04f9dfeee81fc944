"""The HTTP interface of every node: any node answers for any entity of the mesh.

Part of the extra `comesh[web]`; a node without it, or with `--api off`, imports nothing of this package.

- `opening`: may it open, and how; `server`: connections and their bounds; `limits`: all bounds
- `edge`: each request of `comesh.queries.requests` as an endpoint: its path, its query, its body
- `app`: tokens, times and errors around each endpoint; `openapi`: all of them, for machines
- `events`, `metrics`, `invitations`: what the table of requests does not have
- `tokens`: who may ask
"""
