"""Static pages of a class (`build_site`) and of single records (`report_page`), drawn from records and the store.

May import `report` and the packages below it.
"""

from grader.site.class_site import Built, build_site
from grader.site.record_page import report_page
