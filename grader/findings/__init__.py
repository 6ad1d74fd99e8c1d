"""What was found out about a program: facts with their place, never sentences.

Everything that looks at a program reports findings: the emulator and compute-sanitizer, the checks on host calls,
probes, watched values, the patterns of a wrong output, and rules that read the source. A finding travels as JSON, in
the trace (from C, too) and in the record. `rank` orders the findings of all tests once. `sentence` is the one place
where a finding becomes words, in a catalogue's language and in the words of CUDA or Triton.

To add a kind: a row in kinds.py, and its sentence in english.py and chinese.py.

May import `base` only.
"""

from grader.findings.finding import Dim3, Finding, Number, Place
from grader.findings.kinds import KINDS, Check, Kind, Severity, kind_of
from grader.findings.ranking import CLAIMED, claimed, names_its_line, rank, surer, without_echoes
from grader.findings.sentences import (
    LANGUAGES,
    SourceLine,
    advice,
    detail,
    dim_text,
    fact,
    no_source,
    phrase,
    quoted,
    select_language,
    sentence,
    short_kernel,
)
