"""The store: one SQLite file that keeps a class's submissions, records and points. `database` explains how it works.

May import `records` and `base`; it knows neither how a class is graded nor how results are reported.
"""

from grader.store.database import Store, default_store, open_store
from grader.store.exchange import export_store, import_files
from grader.store.rows import Attempt, Compressed, Files, HandIn, State, compressed, decompressed
from grader.store.upkeep import check_store, vacuum_store
