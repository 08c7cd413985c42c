"""OCR: errors of characters by language and kind of scan, time and memory a page, and what search
loses when documents are scans.

    python -m bench.ocr [--engine rapidocr] [--search SET] [--documents 150]

Pages are rendered from texts that are known, of some 300 words, and read in this process by one
thread. Quotation marks, apostrophes and dashes are compared as the ASCII ones, as search takes
them. `--search` names a folder with corpus.jsonl, queries.jsonl and qrels.tsv: documents of it are
rendered, copied badly and read, and `manage.py evaluate` measures both texts. Exit code: 1 if a
character error is above 1.5 % of clean pages at 200 dpi or 5 % of bad copies at 150 dpi, or nDCG@10
falls by more than 0.02.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from reading.ocr.page import read_page
from reading.tests.factories_pictures import (
    TEXTS,
    copied,
    edit_distance,
    page_picture,
    picture_file,
)

ROOT = Path(__file__).resolve().parent.parent
REPEATED = 5
CLEAN_BAR, COPY_BAR, SEARCH_BAR = 0.015, 0.05, 0.02
_ASCII = str.maketrans("„“”‚‘’–—", "\"\"\"'''--")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ocr")
    parser.add_argument("--engine", choices=("rapidocr", "tesseract"))
    parser.add_argument("--search", type=Path)
    parser.add_argument("--documents", type=int, default=150)
    options = parser.parse_args(arguments)
    if options.search is not None:
        return int(report_search(options.search, options.documents) < -SEARCH_BAR)
    engines = ["rapidocr", "tesseract"] if shutil.which("tesseract") else ["rapidocr"]
    chosen = [options.engine] if options.engine else engines
    results = [report_errors(engine) for engine in chosen]
    return int(not all(results))


def report_errors(engine: str) -> bool:
    """Print a row a language and kind of page; whether all are within the bars."""
    print(f"{engine:12}{'characters':>12}{'errors':>9}{'sure':>7}{'seconds':>9}")
    is_good = True
    seconds: list[float] = []
    for language, text in TEXTS.items():
        for kind, picture, lines in pages(" ".join([text] * REPEATED)):
            before = processor_seconds()
            read = read_page(
                picture_file(picture), page=1, engine=engine, languages=[language], threads=1
            )
            seconds.append(processor_seconds() - before)
            wanted = compared(" ".join(lines))
            errors = edit_distance(compared(read.text), wanted) / len(wanted)
            is_good &= errors <= (COPY_BAR if "copy" in kind else CLEAN_BAR)
            print(
                f"{language} {kind:16}{len(wanted):>5}{errors:>9.2%}{read.confidence:>7.2f}"
                f"{seconds[-1]:>9.2f}"
            )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{np.mean(seconds):.2f} s of processor a page, {max(seconds):.2f} s the slowest;", end=""
    )
    print(f" {memory:,.0f} MB of memory at most\n")
    return is_good


def pages(text: str) -> list[tuple[str, Image.Image, list[str]]]:
    """Kinds of scan: their names, pictures, and lines."""
    clean, lines = page_picture(text)
    coarse, coarse_lines = page_picture(text, dpi=150)
    fine, fine_lines = page_picture(text, dpi=300)
    turned = [(f"turned by {by}", clean.rotate(by, expand=True), lines) for by in (90, 180, 270)]
    return [
        ("200 dpi", clean, lines),
        ("300 dpi", fine, fine_lines),
        ("150 dpi bad copy", copied(coarse), coarse_lines),
        *turned,
    ]


def compared(text: str) -> str:
    return " ".join(text.translate(_ASCII).split())


def processor_seconds() -> float:
    """Of this process and those that it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def report_search(folder: Path, most: int) -> float:
    """Print nDCG@10 of the texts and of what is read; returns how much the second is better."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    judged = [line.split("\t") for line in (folder / "qrels.tsv").open(encoding="utf-8")][1:]
    golden = {document for _, document, *_ in judged}
    chosen = sorted(corpus, key=lambda each: each["_id"] not in golden)[:most]
    ids = {each["_id"] for each in chosen}
    kept = [row for row in judged if row[1] in ids]
    asked = {row[0] for row in kept}
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [line for line in lines if json.loads(line)["_id"] in asked]
    ndcg: dict[str, float] = {}
    with TemporaryDirectory() as temporary:
        for kind in ("text", "scans"):
            target = Path(temporary, kind)
            target.mkdir()
            texts = chosen if kind == "text" else [scanned(each) for each in chosen]
            (target / "corpus.jsonl").write_text("\n".join(map(json.dumps, texts)))
            (target / "queries.jsonl").write_text("\n".join(queries))
            header = "query-id\tcorpus-id\tscore\n"
            (target / "qrels.tsv").write_text(header + "".join("\t".join(row) for row in kept))
            ndcg[kind] = evaluated(target)
    gained = ndcg["scans"] - ndcg["text"]
    print(
        f"{folder.name}: {len(chosen)} documents, {len(queries)} questions; nDCG@10 of the text"
        f" {ndcg['text']:.3f}, of its scans {ndcg['scans']:.3f} ({gained:+.3f})"
    )
    return gained


def scanned(document: dict[str, str]) -> dict[str, str]:
    """The document with the text that OCR reads on a bad copy of it."""
    text = f"{document.get('title', '')}\n{document['text']}"
    picture, _ = page_picture(text, dpi=150)
    picture = picture.crop((0, 0, picture.width, lowest_ink(picture) + 100))
    read = read_page(
        picture_file(copied(picture)), page=1, engine="rapidocr", languages=[], threads=1
    )
    return {"_id": document["_id"], "title": "", "text": read.text or "-"}


def lowest_ink(picture: Image.Image) -> int:
    return int(np.flatnonzero(np.asarray(picture).min(axis=1) < 128).max(initial=0))


def evaluated(folder: Path) -> float:
    """nDCG@10 of hybrid search over the folder's documents."""
    done = subprocess.run(
        [sys.executable, "manage.py", "evaluate", str(folder), "--mode", "hybrid", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    return float(report["modes"]["hybrid"]["ndcg@10"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
