"""Names that someone or other has trouble with: sixty of them, to be used as columns."""

from __future__ import annotations

NASTY: tuple[str, ...] = (
    # Markup of rich, its links, styles and emoji.
    "[/bold]", "[bold]x", "[link=http://127.0.0.1:9/evil]click[/link]", "[red]", "[/]", "x[0]",
    ":smile:", "\\[bold]", "ends in \\",
    # What a terminal obeys: colours, titles, bells, backspaces, bytes of other control sets.
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b[2Jcleared", "bell\x07", "back\x08\x08", "\x9b31m",
    "nul\x00byte", "\x7f", "a\rb",
    # Mathematics of Matplotlib, right and wrong.
    "$x^{$", "$x_1$", "\\$5", "$", "$$", "cost in $ of $", "$\\frac{1}$", "%d %s {0} {x}",
    # Paths, and what files and their formats know.
    "a/b", "/", "..", "../../x", "C:\\x", "con", "posterior", "nugget", "weight", "length_scale_x",
    # Pages and their scripts.
    "<script>alert(1)</script>", "</script><script>window.evil=1</script>", "</title><h1>x",
    "<img src=x onerror=window.evil=1>", "\" onload=\"window.evil=1", "javascript:window.evil=1",
    "&lt;b&gt;", "<!--", "]]>", "{{ 7 * 7 }}", "{% raw %}", "#0072B2", "__proto__", "constructor",
    # Spreadsheets, numbers, commas and quotes.
    "=cmd|' /C calc'!A0", "+1", "1e3", "a,b", 'say "hi"', "two\nlines",
    # Letters: other scripts, right to left, marks that turn the writing, nothing at all, half a
    # character, far too many.
    "höhe in µm", "流量", "\u202eelbatrid", "n" * 10_000,
)  # fmt: skip
assert len(set(NASTY)) == 60
