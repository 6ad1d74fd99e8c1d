"""The live judge: students submit, watch the verdict and see the board; docs/judge.md explains how it works.

`ledger` keeps uploads and their outcomes in the class's store; `foreman` gives it to worker processes,
which run the same pipeline as a batch; `server`, with the routes of `api` and `pages`, is what clients talk to.

May import `site`, `report`, `classes` and the packages below them. FastAPI and uvicorn are the extra `judge`.
"""
