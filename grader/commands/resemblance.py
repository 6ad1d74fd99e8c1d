"""`grader similarity`: lists the submissions of a class that resemble each other."""

from __future__ import annotations

from pathlib import Path

from grader.base.attempted import Failed, attempted
from grader.base.paths import course_root, shown
from grader.classes import similarity as similar
from grader.classes.batch import find_class
from grader.commands import report_files
from grader.course.assignment import chosen_assignment
from grader.programs.submission import read_submission
from grader.site.record_page import similarity_page


def similarity(folder: Path, assignment: str | None, *, top: int, html: Path | None) -> str:
    """List the submissions of a class that resemble each other."""
    rules = chosen_assignment(assignment, folder)
    found, _ = find_class(folder, rules)
    texts: dict[str, dict[str, str]] = {language: {} for language in similar.LANGUAGES}
    left_out = []
    for one in found:
        shared = one.path.name != rules.submission.main
        submission = attempted(read_submission, one.path, rules, shared_folder=shared)
        if isinstance(submission, Failed):
            left_out.append(one.student)
            continue
        language = "python" if submission.is_python else "cuda"
        name = one.student if one.student not in texts[language] else f"{one.student} ({one.path.name})"
        texts[language][name] = similar.joined(submission.files, language)
    given = course_root() / "student_template" / rules.name
    files = sorted(path for path in given.rglob("*") if path.is_file())
    parts = []
    for language, suffixes in similar.LANGUAGES.items():
        template = [path.read_text(errors="replace") for path in files if path.suffix in suffixes]
        parts.append(similar.resembling(texts[language], template, top=top, language=language))
    resembling = similar.merged(*parts, top=top)
    text = similar.render(resembling)
    if left_out:
        text += f"\n{len(left_out)} left out because they contain nothing to compare: {', '.join(left_out)}."
    if html is not None:
        report_files.write(html, similarity_page(resembling), "page")
        text += f"\n{shown(html)} shows them side by side."
    return text
