"""EPUB books and OpenDocument files, made part by part."""

from reading.tests.factories_office import zipped


def epub(*chapters: str) -> bytes:
    """A book; a chapter is what stands in the body of its page. The first page is its contents."""
    pages = {"nav.xhtml": "<nav><a href='c1.xhtml'>Chapter one</a></nav>"}
    pages |= {f"c {number}.xhtml": body for number, body in enumerate(chapters, start=1)}
    items, order = "", ""
    for name in pages:
        kind = ' properties="nav"' if name == "nav.xhtml" else ""
        address = name.replace(" ", "%20")
        items += f'<item id="{name}" href="{address}" media-type="application/xhtml+xml"{kind}/>'
        order += f'<itemref idref="{name}"/>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata/><manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": package,
    }
    for name, body in pages.items():
        members[f"OEBPS/{name}"] = (
            '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title/></head><body>{body}</body></html>"
        )
    return zipped(members)


def odf(kind: str, body: str) -> bytes:
    """An OpenDocument file; `kind` is `text`, `spreadsheet` or `presentation`, the rest raw XML."""
    spaces = "office text table style presentation"
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in spaces.split()
    )
    names += (
        ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
        ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": (
                f"<office:document-content {names}><office:body><office:{kind}>{body}"
                f"</office:{kind}></office:body></office:document-content>"
            ),
            "meta.xml": f"<office:document-meta {names}></office:document-meta>",
            "META-INF/manifest.xml": "<manifest/>",
        }
    )
