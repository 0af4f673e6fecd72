"""Check the links of the built site: ``python docs/check_links.py FOLDER [--external]``.

Every link inside the site must lead to a file and, with a ``#``, to an element of that page.
Links that leave the site are asked for with ``--external`` only, and are skipped with a remark
where there is no network.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_TIMEOUT = 30.0


class Page(HTMLParser):
    """The links of a page, and the names that links may end in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to and what it is called."""
        given = {key: value for key, value in attrs if value is not None}
        self.names.update(given[key] for key in ("id", "name") if key in given)
        self.links += [given[key] for key in ("href", "src") if key in given]


def read_site(folder: Path) -> dict[Path, Page]:
    """All pages of a site."""
    return {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }


def broken(pages: dict[Path, Page]) -> list[str]:
    """What is wrong with links inside the site, one line each."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                found.append(f"{path.name}: {link} leads to no file")
            elif target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{path.name}: {link} leads to a page without that place")
    return found


def external(pages: dict[Path, Page]) -> list[str]:
    """Addresses outside the site."""
    links = {link for page in pages.values() for link in page.links}
    return sorted(link for link in links if urlsplit(link).scheme in ("http", "https"))


def unreachable(addresses: list[str]) -> list[str]:
    """What is wrong with addresses outside the site; nothing without a network."""
    found = []
    for address in addresses:
        request = urllib.request.Request(address, headers={"User-Agent": "link check"})
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT):
                pass
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                found.append(f"{address}: {error.code}")
        except OSError as error:
            print(f"skipped, no answer: {address} ({error})")
    return found


def main() -> int:
    """Print what is broken; the exit code says whether anything is."""
    folder = Path(sys.argv[1])
    pages = read_site(folder)
    outside = external(pages)
    faults = broken(pages)
    if "--external" in sys.argv[2:]:
        faults += unreachable(outside)
    n_links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {n_links} links, {len(outside)} addresses outside the site")
    for fault in faults:
        print(fault)
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main())
