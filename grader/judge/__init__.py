"""The live judge: students submit, watch the verdict and see the board; docs/judge.md explains how it works.

`ledger` keeps uploads and their results in the class's store. `foreman` gives the uploads to worker processes, which
grade with the same pipeline as `grader grade`. `server` is the web server, with the routes of `api` and `pages`.

May import `site`, `report`, `classes` and the packages below them. The extra `judge` installs FastAPI and uvicorn.
"""
