"""The HTTP interface of every node: any node answers for any entity of the mesh.

Part of the extra `comesh[web]`; a node without it, or with `--api off`, imports nothing of this package.

- `opening`: may it open, and how; `server`: connections and their bounds; `limits`: all bounds
- `endpoints`: what can be asked, in one table; `app`: tokens, times and errors around each of them
- `reading`, `firing`, `events`, `metrics`: what answers; `answers`: in which shape; `openapi`: all of it, for
  machines
- `tokens`: who may ask
"""
