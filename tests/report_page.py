"""Pages of reports as elements, and payments to report on."""

import re
from html.parser import HTMLParser

from eqsep.datasets import make_mixed_demo

VOID = {"meta", "link", "wbr"}


class Page(HTMLParser):
    """A page as elements with their text; every element must be closed by its own tag."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.whole = [], [], text
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": ""}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append({"tag": tag, "attrs": dict(attrs), "text": ""})

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]

    def commands(self):
        """The lines to copy."""
        return [element["text"] for element in self.all("pre")]

    def rows(self, caption):
        """The cells of the table with this region or caption, row by row."""
        whole = self.whole.replace("<wbr>", "")
        found = re.search(rf'aria-label="{caption}">(.*?)</table>', whole, re.DOTALL)[1]
        lines = re.findall(r"<tr.*?</tr>", found, re.DOTALL)
        cells = [re.split(r"</t[hd]>", line)[:-1] for line in lines]
        return [[" ".join(re.sub(r"<[^>]+>", " ", c).split()) for c in row] for row in cells]


def payments(seed, *, n=900):
    return make_mixed_demo(n_samples=n, anomaly_fraction=0.2, as_frame=True, random_state=seed)
