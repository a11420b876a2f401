"""What people read: progress while a run goes on, the table at its end, and the files it leaves."""

from conformance.reporting.files import RunFiles
from conformance.reporting.progress import Progress
from conformance.reporting.table import summary, table

__all__ = ["Progress", "RunFiles", "summary", "table"]
