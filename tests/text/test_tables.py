"""Every door to data, and every file that is not quite what it says."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.errors import DataError, UnknownName
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.tables import find_delimiter, read_table, writable

TEXTS = [f'text number {number}, "quoted" 😀\nsecond line' for number in range(20)]
LABELS = ["bad" if number % 2 else "good" for number in range(20)]
TABLE = pd.DataFrame({"text": TEXTS, "label": LABELS})


def json_lines(table: pd.DataFrame) -> str:
    return "\n".join(json.dumps(row) for row in table.to_dict("records"))


def all_texts(corpus: Corpus) -> list[str]:
    return [text for split in corpus.splits().values() for text in split.texts]


def labels_by_text(corpus: Corpus) -> dict[str, str]:
    return {
        text: corpus.class_names[label]
        for split in corpus.splits().values()
        for text, label in zip(split.texts, split.labels.tolist(), strict=True)
    }


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def csv_of(rows: Sequence[tuple[str, object]], header: str = "text,label") -> str:
    return "\n".join([header, *(f"{text},{label}" for text, label in rows)]) + "\n"


CONTENTS = {
    "rows.csv": TABLE.to_csv(index=False).encode(),
    "rows.tsv": TABLE.to_csv(index=False, sep="\t").encode(),
    "rows.jsonl": json_lines(TABLE).encode(),
    "rows.ndjson": json_lines(TABLE).encode(),
    "rows.json": json_lines(TABLE).encode(),
    "list.json": json.dumps(TABLE.to_dict("records")).encode(),
    "pretty.json": json.dumps(TABLE.to_dict("records"), indent=2).encode(),
    "bom.json": b"\xef\xbb\xbf" + json.dumps(TABLE.to_dict("records")).encode(),
    "wrapped.json": json.dumps({"data": TABLE.to_dict("records")}, indent=1).encode(),
    "described.json": json.dumps({"version": 1, "names": ["a"], "data": TABLE.to_dict("records"), "bad": []}).encode(),
    "pandas.json": TABLE.to_json(orient="table").encode(),
    "list.json.gz": gzip.compress(json.dumps(TABLE.to_dict("records")).encode()),
    "rows.csv.gz": gzip.compress(TABLE.to_csv(index=False).encode()),
    "rows.tsv.gz": gzip.compress(TABLE.to_csv(index=False, sep="\t").encode()),
    "rows.jsonl.gz": gzip.compress(json_lines(TABLE).encode()),
    "ROWS.CSV": TABLE.to_csv(index=False).encode(),
    "bom.csv": b"\xef\xbb\xbf" + TABLE.to_csv(index=False).encode(),
    "semicolons.csv": TABLE.to_csv(index=False, sep=";").encode(),
    "spreadsheet.csv": b"\xef\xbb\xbf" + TABLE.to_csv(index=False, sep=";", lineterminator="\r\n").encode(),
    "announced.csv": b"\xef\xbb\xbfsep=;\r\n" + TABLE.to_csv(index=False, sep=";", lineterminator="\r\n").encode(),
    "tabs.csv": TABLE.to_csv(index=False, sep="\t").encode(),
    "bars.csv": TABLE.to_csv(index=False, sep="|").encode(),
    "bars.csv.gz": gzip.compress(TABLE.to_csv(index=False, sep="|").encode()),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_gives_its_rows_in_order(name: str, tmp_path: Path) -> None:
    found = read_table(write(tmp_path / name, CONTENTS[name]))
    pd.testing.assert_frame_equal(found.drop(columns="index", errors="ignore"), TABLE)


DELIMITED: dict[str, tuple[str, str]] = {
    "commas in the texts of semicolons": ("text;label\ngood, so, fine;1\nbad, really;0\n", ";"),
    "a comma in each text of semicolons": ("text;label\ngood, fine;1\nbad, really;0\n", ";"),
    "semicolons in the texts of commas": ("text,label\ngood; fine,1\nbad; really; so,0\n", ","),
    "decimal commas": ("text;label;weight\ngood;1;0,5\nbad;0;1,5\n", ";"),
    "a quoted header with commas": ('"text, all of it";"label"\n"a, b";1\n', ";"),
    "a quoted header with semicolons": ('"text; all of it",label\na,1\n', ","),
    "a header with both, rows of commas": ("text;review,label\na,1\nb,0\n", ","),
    "a header with both, rows of semicolons": ("text,review;label\na;1\nb, c, d;0\n", ";"),
    "quoted fields that hold the delimiter": ('text|label\n"a|b|c"|1\n"d, e\n|f"|0\n', "|"),
    "tabs among commas": ("text\tlabel\na, b, c\t1\n", "\t"),
    "one column": ("text\ngood; fine\nbad; really\n", ","),
    "one column of sentences": ("text\nso, it was; good | bad\n", ","),
    "a header alone": ("text;label\n", ";"),
    "nothing": ("\n", ","),
    "a quote never closed": ('text;label\n"good;1\n' + "bad, so;0\n" * 30_000, ";"),
    "blank lines before the header": ("\n\ntext;label\na, b;1\n", ";"),
}


@pytest.mark.parametrize("what", DELIMITED)
def test_the_delimiter_is_what_divides_header_and_rows_alike(what: str) -> None:
    text, delimiter = DELIMITED[what]
    assert find_delimiter(text) == delimiter


def test_a_semicolon_file_is_read_with_the_commas_of_its_texts(tmp_path: Path) -> None:
    lines = [f"so, this is {number}; {number % 2}" for number in range(12)]
    corpus = load_corpus(write(tmp_path / "x.csv", "\n".join(["text;label", *lines])))
    assert labels_by_text(corpus)["so, this is 3"] == "1"


def test_parquet_gives_its_rows_in_order(tmp_path: Path) -> None:
    TABLE.to_parquet(tmp_path / "rows.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "rows.parquet"), TABLE)


def test_all_doors_lead_to_the_same_corpus(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", CONTENTS["rows.csv"])
    doors = [load_corpus(source) for source in (path, str(path), TABLE, (TEXTS, LABELS))]
    assert len({corpus.fingerprint for corpus in doors}) == 1
    assert labels_by_text(doors[0]) == dict(zip(TEXTS, LABELS, strict=True))
    assert [corpus.name for corpus in doors] == ["rows.csv", "rows.csv", "table", "lists"]


def test_a_text_that_says_na_is_a_text(tmp_path: Path) -> None:
    rows = [("NA", 1), ("null", 0), *((f"word{number}", number % 2) for number in range(10))]
    assert {"NA", "null"} <= set(all_texts(load_corpus(write(tmp_path / "x.csv", csv_of(rows)))))


def test_another_encoding_is_read_when_it_is_given(tmp_path: Path) -> None:
    rows = [(f"café {number}", number % 2) for number in range(12)]
    path = write(tmp_path / "latin.csv", csv_of(rows).encode("latin-1"))
    assert "café 3" in all_texts(load_corpus(path, encoding="latin-1"))
    wide = write(tmp_path / "wide.csv", csv_of(rows).encode("utf-16"))
    assert "café 3" in all_texts(load_corpus(wide, encoding="utf-16"))


@pytest.mark.parametrize("header", ["review,stars", "Sentence, Sentiment", "CONTENT,Class", "tweet,polarity"])
def test_usual_column_names_are_recognised(header: str, tmp_path: Path) -> None:
    rows = [(f"word{number}", number % 2) for number in range(12)]
    assert len(all_texts(load_corpus(write(tmp_path / "x.csv", csv_of(rows, header))))) == 12


def test_given_columns_win_over_recognised_ones() -> None:
    table = TABLE.assign(body=[text.upper() for text in TEXTS], mark=list("xy" * 10))
    corpus = load_corpus(table, text_column="body", label_column="mark")
    assert set(all_texts(corpus)) == {text.upper() for text in TEXTS}
    assert corpus.class_names == ("x", "y")


def test_columns_may_be_numbers() -> None:
    table = pd.DataFrame({0: TEXTS, 1: LABELS})
    assert len(all_texts(load_corpus(table, text_column="0", label_column="1"))) == 20


def test_the_table_given_is_not_changed() -> None:
    table = pd.DataFrame({0: TEXTS, 1: LABELS})
    load_corpus(table, text_column="0", label_column="1")
    assert [*map(repr, table.columns)] == ["0", "1"]


FORMS = r"A \.json file holds one list of objects, .* or one such object per line\."

BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "zero bytes": ("x.csv", b"", r"'x\.csv' has no rows\. A header line and at least a few"),
    "zero bytes of JSON": ("x.jsonl", b"", r"'x\.jsonl' has no rows"),
    "zero bytes of gzip": ("x.csv.gz", b"", r"'x\.csv\.gz' has no rows"),
    "header alone": ("x.csv", b"text,label\n", r"'x\.csv' has no rows"),
    "no text column": (
        "x.csv",
        b"words,label\na,1\n",
        r"looks like the text\. Name it \(--text-column, in Python text_column\), or .* Columns: words, label\.",
    ),
    "no label column": (
        "x.csv",
        b"text,mark\na,1\n",
        r"looks like the label\. Name it \(--label-column, in Python label_column\), or .* Columns: text, mark\.",
    ),
    "no header": ("x.csv", b"a b c,1\nd,2\n", r"looks like the text\. .* Columns: a b c, 1\."),
    "latin-1": (
        "x.csv",
        "text,label\ncafé,1\n".encode("latin-1"),
        r"not utf-8 text: byte 14 is 0xe9\. Give its encoding: --encoding cp1252, in Python encoding='cp1252', if it "
        r"comes from Windows \(other common encodings: latin-1, utf-16\), or save it as UTF-8\.$",
    ),
    "UTF-16": ("x.csv", "text,label\na,1\n".encode("utf-16"), r"UTF-16\. Give its encoding: --encoding utf-16, in Py"),
    "UTF-16 unmarked": ("x.csv", "text,label\na,1\n".encode("utf-16-le"), r"'x\.csv' is UTF-16"),
    "cut gzip": ("x.csv.gz", gzip.compress(b"text,label\n" * 99)[:-9], r"'x\.csv\.gz' cannot be read: .* complete\?"),
    "no gzip": ("x.csv.gz", b"text,label\na,1\n", r"'x\.csv\.gz' cannot be read: Not a gzipped file"),
    "broken JSON line": ("x.jsonl", b'{"text": "a", "label": 1}\n{"text": ', r"Line 2 of 'x\.jsonl' is not JSON"),
    "broken line of a .json file": (
        "x.json",
        b'{"text": "a"}\n{"text": ',
        rf"Line 2 of 'x\.json' is not JSON: .*{FORMS}",
    ),
    "broken list": ("x.json", b'[{"text": "a"},\n {"te', rf"'x\.json' is not JSON: .* line 2 column 3 .*{FORMS}"),
    "list of numbers": ("x.json", b"[1, 2]", rf"'x\.json' holds a list of other things than objects, not a .*{FORMS}"),
    "list in JSON lines": (
        "x.jsonl",
        b'[{"text": "a"}]',
        r"Line 1 of 'x\.jsonl' is a JSON list\. Each line must be one",
    ),
    "columns in JSON": (
        "x.json",
        b'{"text": {"0": "a"}, "label": {"0": 1}}',
        rf"with the keys text, label, not .*{FORMS}",
    ),
    "two lists in JSON": (
        "x.json",
        b'{"a": [{"text": "a"}], "b": [{"text": "b"}]}',
        rf"with the keys a, b, not .*{FORMS}",
    ),
    "one word of JSON": ("x.json", b'"text"', rf"'x\.json' holds one str, not a table\. {FORMS}"),
    "no JSON": ("x.json", b"text,label\na,1\n", rf"'x\.json' is not JSON: Expecting value: line 1 .*{FORMS}"),
    "empty list": ("x.json", b"[]", r"'x\.json' has no rows"),
    "empty list in an object": ("x.json", b'{"data": []}', r"'x\.json' has no rows"),
    "deep JSON in a .json file": ("x.json", b"[" * 200_000, rf"'x\.json' is not JSON: .*{FORMS}"),
    "deep JSON": ("x.jsonl", b"[" * 200_000, r"Line 1 of 'x\.jsonl' is not JSON"),
    "broken parquet": ("x.parquet", b"PAR1 but not really", r"The Parquet file 'x\.parquet' cannot be read"),
    "zero bytes of parquet": ("x.parquet", b"", r"The Parquet file 'x\.parquet' cannot be read"),
    "commas without quotes": ("x.csv", b"text,label\ngood, really,1\nbad, too,0\n", r"more fields than the header"),
    "one comma too many": ("x.csv", b"text,label\ngood,1\nbad, too,0\n", r"Expected 2 fields in line 3, saw 3"),
    "quote never closed": ("x.csv", b'text,label\n"good,1\nbad,0\n', r"cannot be read as a table: .*EOF inside string"),
    "semicolons without quotes": (
        "x.csv",
        b"text;label\ngood;1\nbad; too;0\n",
        r"Expected 2 fields in line 3, saw 3\. Its fields are divided by semicolons; texts that hold those, quotes or",
    ),
    "one column with commas": (
        "x.csv",
        b"text\ngood\nbad, too\n",
        r"Expected 1 fields in line 3, saw 2\. .* by commas",
    ),
    "a spreadsheet": (
        "x.csv",
        b"PK\x03\x04 and more",
        r"'x\.csv' is a spreadsheet or a zip archive, not text\. Save the",
    ),
    "packed under another name": ("x.csv", gzip.compress(b"text,label\n"), r"'x\.csv' is packed with gzip\. Unpack it"),
    "packed twice": (
        "x.csv.gz",
        gzip.compress(gzip.compress(b"text")),
        r"'x\.csv\.gz' is packed with gzip\. .* \.gz once",
    ),
    "nothing but NUL": ("x.csv", b"\0" * 100, r"'x\.csv' begins with NUL bytes, so that it is not text\. Is the file"),
    "unknown format": ("x.xlsx", b"PK", r"'x\.xlsx' is none of the formats that can be read: \.csv, \.tsv"),
    "no format": ("data.", b"PK", r"'data\.' is none of the formats"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_answered_with_a_sentence(what: str, tmp_path: Path) -> None:
    name, content, sentence = BAD_FILES[what]
    with pytest.raises(DataError, match=sentence):
        load_corpus(write(tmp_path / name, content))


def test_an_empty_parquet_table_has_no_rows(tmp_path: Path) -> None:
    TABLE.head(0).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"'x\.parquet' has no rows"):
        load_corpus(tmp_path / "x.parquet")


def test_an_unknown_encoding_is_answered_with_common_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", csv_of([("a", 1)]))
    with pytest.raises(DataError, match=r"no text encoding 'utf-9'\. Common ones: utf-8, cp1252, latin-1, utf-16\."):
        load_corpus(path, encoding="utf-9")


def test_the_name_utf8_has_many_spellings(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", CONTENTS["bom.csv"])
    assert load_corpus(path, encoding="UTF8").fingerprint == load_corpus(path).fingerprint


def test_a_missing_file_is_answered_with_what_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file '.*none\.csv'\. Give a path to one of \.csv"):
        load_corpus(tmp_path / "none.csv")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file"):
        load_corpus(tmp_path)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"There is no corpus or file 'syntetic-1'\. Did you mean 'synthetic-1'\?"):
        load_corpus("syntetic-1")


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="go together one by one; got 3 texts, 2 labels"):
        load_corpus((["a", "b", "c"], [0, 1]))


@pytest.mark.parametrize("option", ["text_column", "label_column", "split_column"])
def test_a_column_that_is_not_there_is_answered_with_those_that_are(option: str) -> None:
    with pytest.raises(DataError, match=r"There is no column 'nope'\. Columns: text, label\."):
        load_corpus(TABLE, **{option: "nope"})  # type: ignore[arg-type]


def test_a_column_that_is_there_twice_is_refused() -> None:
    table = pd.concat([TABLE, TABLE[["text"]]], axis=1)
    with pytest.raises(DataError, match=r"There are 2 columns 'text'. Rename all but the one that is meant."):
        load_corpus(table)


def test_a_long_list_of_columns_is_cut_short() -> None:
    table = pd.DataFrame([["x"]], columns=["a whole text " * 100])
    with pytest.raises(DataError) as caught:
        load_corpus(table)
    assert len(str(caught.value)) < 450


def test_an_encoding_that_fails_without_a_place_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x\.csv' is not undefined text\. Give its encoding"):
        load_corpus(write(tmp_path / "x.csv", b"text"), encoding="undefined")


@pytest.mark.parametrize("missing", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, "", "  "])
def test_rows_without_a_label_are_left_out_and_said(missing: object) -> None:
    corpus = load_corpus((["lost", *TEXTS], [missing, *LABELS]))
    assert "lost" not in all_texts(corpus)
    assert corpus.class_names == ("bad", "good")
    assert corpus.notices[0] == "1 row left out: column 'label' holds no label."


def test_rows_without_a_text_are_left_out_and_said() -> None:
    corpus = load_corpus(pd.DataFrame({"text": ["", " ", None, 5, *TEXTS], "label": [*"abcd", *LABELS]}))
    assert len(all_texts(corpus)) == 20
    assert corpus.notices[0] == "4 rows left out: column 'text' holds no text."


def test_rows_with_nul_bytes_are_left_out_and_said(tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["a\0b", *TEXTS], "label": ["good", *LABELS]})
    corpus = load_corpus(write(tmp_path / "x.jsonl", json_lines(table)))
    assert len(all_texts(corpus)) == 20
    assert corpus.notices[0] == "1 row left out: column 'text' holds NUL bytes."


def test_half_a_character_is_replaced_one_for_one() -> None:
    assert writable("a\ud83db") == "a\ufffdb"
    assert writable("a😀b") == "a😀b"
    assert writable(5) == 5


def test_half_a_character_does_not_stop_the_reading(tmp_path: Path) -> None:
    line = json.dumps({"text": "broken \ud83d emoji", "label": "good"})
    table = pd.DataFrame({"text": ["broken \ud83d emoji", *TEXTS], "label": ["good", *LABELS]}, dtype=object)
    lists = (table["text"].tolist(), table["label"].tolist())
    for source in (write(tmp_path / "x.jsonl", f"{line}\n{json_lines(TABLE)}"), table, lists):
        assert "broken \ufffd emoji" in all_texts(load_corpus(source))


def test_no_usable_row_is_refused() -> None:
    with pytest.raises(DataError, match=r"No row has both a text and a label\. 2 rows left out: .* holds no label"):
        load_corpus((["a", "b"], [None, None]))


def test_rows_left_out_are_said_where_the_others_are_too_few() -> None:
    with pytest.raises(DataError, match=r"are needed, there are 4\. 20 rows left out: column 'label' holds no label\."):
        load_corpus(([*"abcd", *TEXTS], [0, 0, 1, 1, *[None] * 20]))


@pytest.mark.parametrize("value", [[0, 1], (0, 1), {"a": 1}, np.array([0, 1])], ids=["list", "tuple", "dict", "array"])
def test_several_labels_of_a_text_are_refused(value: object) -> None:
    labels = pd.Series([value, *LABELS[1:]], dtype=object)
    with pytest.raises(DataError, match=r"Column 'label' holds several labels for a text, such as .*--label-column"):
        load_corpus(pd.DataFrame({"text": TEXTS, "label": labels}))


def test_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="At least 10 labelled texts are needed, there are 4"):
        load_corpus((list("abcd"), [0, 0, 1, 1]))


@pytest.mark.parametrize("distinct", [1, 2])
def test_copies_of_too_few_texts_are_refused(distinct: int) -> None:
    texts = [f"text {row % distinct}" for row in range(30)]
    with pytest.raises(DataError, match=rf"The 30 texts are copies of {distinct}; .* need 3 different ones"):
        load_corpus((texts, [row % 2 for row in range(30)]))


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match=r"at least two classes .* has one: 'same'"):
        load_corpus((TEXTS, ["same"] * 20))


@pytest.mark.parametrize("labels", [TEXTS, list(np.linspace(0, 1, 20))], ids=["texts", "measurements"])
def test_a_label_column_without_classes_is_refused(labels: list[object]) -> None:
    with pytest.raises(DataError, match="Column 'label' holds 20 different values in 20 rows: texts or measurements"):
        load_corpus((TEXTS, labels))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 2] * 10, ("2", "10")),
        ([4.0, 5.0] * 10, ("4", "5")),
        ([0.5, 1.0] * 10, ("0.5", "1")),
        ([True, False] * 10, ("False", "True")),
        (["b", "a "] * 10, ("a", "b")),
        (["1.0", "1"] * 10, ("1", "1.0")),
    ],
)
def test_classes_are_named_and_ordered_as_people_would(labels: list[object], names: tuple[str, ...]) -> None:
    assert load_corpus((TEXTS, labels)).class_names == names


def test_a_gzip_file_that_grows_without_end_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(12):
            file.write(b"a" * 2**24)
    with pytest.raises(DataError, match="unpacks to more than 100 times its size"):
        read_table(path)
