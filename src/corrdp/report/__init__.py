"""The certificate and the results for people: text, Markdown, one HTML page."""

from corrdp.report.html import report_html, write_report
from corrdp.report.summary import summarise

__all__ = ["report_html", "summarise", "write_report"]
