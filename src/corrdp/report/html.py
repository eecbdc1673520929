"""The report as one HTML file: no network, no script, everything escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corrdp.errors import MissingExtraError
from corrdp.report.charts import accuracy_chart, distance_chart, loss_chart, noise_chart
from corrdp.report.names import visible
from corrdp.report.summarise import format_loss
from corrdp.report.summary import percent, summarise, tiny

if TYPE_CHECKING:
    from corrdp.privacy.certificate import Certificate

__all__ = ["report_html", "write_report"]


def write_report(
    certificate: Certificate,
    path: str | Path,
    *,
    metrics: Mapping[str, Any] | None = None,
    comparison: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the report of a certificate as one HTML file, atomically.

    Parameters
    ----------
    certificate : Certificate
    path : path
    metrics, comparison
        As for :func:`corrdp.report.summary.summarise`.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed; nothing is written.
    """
    from corrdp.files import write_text

    summary = summarise(certificate, metrics=metrics, comparison=comparison)
    write_text(Path(path), report_html(summary))


def report_html(summary: Mapping[str, Any]) -> str:
    """The page of a summary.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError(
            "the HTML report needs jinja2: pip install 'corrdp[report]'"
        ) from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["capital"] = lambda text: text[:1].upper() + text[1:]

    def name(text: str) -> Markup:
        return Markup('<bdi dir="auto">{}</bdi>').format(visible(str(text)))

    def number(value: object, style: str) -> Markup:
        if value is None:
            return Markup("–")
        exact = math.inf if value == "inf" else float(value)  # type: ignore[arg-type]
        return Markup('<data value="{}">{}</data>').format(repr(exact), _styled(exact, style))

    template = environment.from_string(_resource("page.html"))
    return template.render(
        **summary,
        style=Markup(_resource("page.css")),  # our own file
        charts=[{**chart, "svg": Markup(chart["svg"])} for chart in _charts(summary)],
        name=name,
        number=number,
        percent=percent,
        shown=visible,
    )


def _resource(name: str) -> str:
    return resources.files("corrdp.report").joinpath(name).read_text(encoding="utf-8")


def _styled(value: float, style: str) -> str:
    """A number for people; losses and shifts are rounded up."""
    if style == "loss":
        return format_loss(value)
    if style == "points":
        return f"{math.ceil(value * 1000 - 1e-6) / 10:.1f}"
    if style == "tiny":
        return tiny(value)
    if math.isinf(value):
        return "∞"
    return style % value


def _charts(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """Pictures that have something to show."""
    drawn = [
        (
            "Loss that holds",
            "ε per column, and jointly, on a logarithmic scale. Shorter is more protected.",
            loss_chart(summary["columns"], summary["joint"]),
        ),
        (
            "Distance to the sensitive columns",
            "0: tells nothing about them; 1: protected like them. Whiskers: interval.",
            distance_chart(summary["columns"]),
        ),
        (
            "Noise of one training step",
            "Standard deviation, in records: how many people's largest possible influence on that "
            "column's weights it equals.",
            noise_chart(summary["noise"]),
        ),
        (
            "Accuracy against ε",
            "Beside the alternatives. Not private: computed straight from records.",
            accuracy_chart(summary["comparison"]),
        ),
    ]
    return [{"title": title, "text": text, "svg": svg} for title, text, svg in drawn if svg]
