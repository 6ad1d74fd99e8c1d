"""The live judge: students submit, watch the verdict and see the board; docs/judge.md explains how it works.

`ledger` keeps what was received and what became of it, in the class's store; `foreman` gives it to worker processes,
which run the same pipeline as a batch; `app` and the modules of its routes are what browsers and clients talk to.

May import `site`, `report`, `classes` and the packages below them. FastAPI and uvicorn are the extra `judge`.
"""
