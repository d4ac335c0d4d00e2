"""Learning-to-rank files: values worked by hand; a bad line is named with its fault."""

import bz2
import gzip
import lzma

import numpy as np
import pyarrow as pa
import pytest
from data_files import real, written

from entourage.data.datasets.letor import load_letor, load_letor_fold, read_svmlight
from entourage.errors import DataError, ParameterError

QUERIES = """# a comment alone
2 qid:30 1:0.5 3:1.5 #docid = GX001 inc = 1
0 qid:7 2:0.25

1 qid:30 1:-1e-1
0 qid:7 1:4 2:5 3:6
"""


def test_svmlight_rows_are_read_as_they_lie(tmp_path):
    table = read_svmlight(written(tmp_path / "q.txt", QUERIES))
    expected = np.array([[0.5, 0, 1.5], [0, 0.25, 0], [-0.1, 0, 0], [4, 5, 6]], dtype=np.float32)
    assert table.features.dtype == np.float32
    assert np.array_equal(table.features, expected)
    assert table.relevance.tolist() == [2, 0, 1, 0]
    assert table.qids.tolist() == [30, 7, 30, 7]


def test_queries_become_sets_in_order_of_appearance_with_the_best_grade_first(tmp_path):
    data = load_letor(written(tmp_path / "q.txt", QUERIES))
    assert data.qids.tolist() == [30, 7]
    assert data.sets.offsets.tolist() == [0, 2, 4]
    assert data.sets.targets.tolist() == [2 - 2, 2 - 1, 2 - 0, 2 - 0]
    assert data.relevance.tolist() == [2, 1, 0, 0]
    assert np.array_equal(data.sets.objects[1], np.array([-0.1, 0, 0], dtype=np.float32))
    assert data.sets.objects.dtype == np.float32


def test_a_document_that_was_not_judged_is_not_ranked(tmp_path):
    data = load_letor(written(tmp_path / "q.txt", "1 qid:1 1:1\n-1 qid:1 1:2\n0 qid:1 1:3\n"))
    assert np.array_equal(data.sets.targets, [0, np.nan, 1], equal_nan=True)
    assert data.relevance.tolist() == [1, -1, 0]


def test_more_features_than_occur_can_be_asked_for(tmp_path):
    file = written(tmp_path / "q.txt", "1 qid:1 2:1\n")
    assert load_letor(file).sets.n_features == 2
    assert load_letor(file, n_features=5).sets.objects.tolist() == [[0, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files_read_like_plain_ones(tmp_path, suffix, pack):
    (tmp_path / f"q.txt.{suffix}").write_bytes(pack(QUERIES.encode()))
    assert load_letor(tmp_path / f"q.txt.{suffix}").qids.tolist() == [30, 7]


def test_zstandard_files_read_like_plain_ones(tmp_path):
    with pa.output_stream(str(tmp_path / "q.txt.zst"), compression="zstd") as stream:
        stream.write(QUERIES.encode())
    assert load_letor(tmp_path / "q.txt.zst").qids.tolist() == [30, 7]


def test_windows_line_ends_a_byte_order_mark_and_no_last_line_end_change_nothing(tmp_path):
    file = tmp_path / "q.txt"
    file.write_bytes(b"\xef\xbb\xbf" + QUERIES.rstrip().replace("\n", "\r\n").encode())
    plain = read_svmlight(written(tmp_path / "p.txt", QUERIES))
    assert np.array_equal(read_svmlight(file).features, plain.features)


def test_a_file_of_many_blocks_reads_like_its_rows(tmp_path):
    rng = np.random.default_rng(0)
    values, qids = rng.integers(1, 1000, size=(30_000, 3)), rng.integers(0, 500, size=30_000)
    lines = [f"{q % 3} qid:{q} 1:{a} 2:{b} 9:{c}" for q, (a, b, c) in zip(qids, values, strict=True)]
    table = read_svmlight(written(tmp_path / "q.txt", "\n".join(lines)))
    assert np.array_equal(table.features[:, [0, 1, 8]], values)
    assert np.array_equal(table.qids, qids)
    lines[23_456] = "0 qid:1 1:x"
    with pytest.raises(DataError, match=r"q\.txt, line 23457: .*'1:x'"):
        read_svmlight(written(tmp_path / "q.txt", "\n".join(lines)))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("2", "the query is missing"),
        ("2 1:0.5", "the query is missing"),
        ("good qid:1 1:0.5", "the relevance needs a number, but 'good' came"),
        ("nan qid:1 1:0.5", "the relevance needs a number, but 'nan' came"),
        ("2 qid:first 1:0.5", "a query needs a whole number, but 'qid:first' came"),
        ("2 qid:99999999999999999999 1:0.5", "a query needs a whole number"),
        ("2 qid:1 1:0.5 2:", "number:value, but '2:' came"),
        ("2 qid:1 1:0.5 2", "number:value, but '2' came"),
        ("2 qid:1 1:inf", "number:value, but '1:inf' came"),
        ("2 qid:1 1:1e39", "number:value, but '1:1e39' came"),
        ("2 qid:1 0:0.5", "counted from 1, but '0:0.5' came"),
        ("2 qid:1 2:0.5 1:1", "increasing order, but 1 came after 2"),
        ("2 qid:1 1:0.5 1:1", "increasing order, but 1 came after 1"),
        ("2 qid:1 123456789:1", "at most 100000 features"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(tmp_path, line, fault):
    file = written(tmp_path / "q.txt", f"# comment\n\n1 qid:1 1:0.5\n{line}\n0 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"q\.txt, line 4: ") as caught:
        load_letor(file)
    assert fault in str(caught.value)


def test_a_feature_beyond_the_number_asked_for_is_named_with_its_line(tmp_path):
    file = written(tmp_path / "q.txt", "1 qid:1 1:0.5\n1 qid:1 3:0.5\n")
    with pytest.raises(DataError, match="line 2: feature '3' came where there are at most 2"):
        load_letor(file, n_features=2)
    with pytest.raises(ParameterError, match="n_features needs a whole number"):
        load_letor(file, n_features=0)


def test_a_missing_an_empty_and_a_cut_file_are_told_apart(tmp_path):
    with pytest.raises(DataError, match="does not exist; .*microsoft"):
        load_letor(tmp_path / "none.txt")
    with pytest.raises(DataError, match="is a folder"):
        load_letor(tmp_path)
    with pytest.raises(DataError, match="holds no row"):
        load_letor(written(tmp_path / "empty.txt", "# nothing\n\n"))
    with pytest.raises(DataError, match="is an archive; unpack it"):
        load_letor(written(tmp_path / "q.zip", "PK"))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(QUERIES.encode() * 9)[:-20])
    with pytest.raises(DataError, match=r"cut\.txt\.gz can't be read beyond line"):
        load_letor(tmp_path / "cut.txt.gz")
    for suffix in ("gz", "bz2", "xz", "zst"):
        with pytest.raises(DataError, match=f"not.txt.{suffix} can't be"):
            load_letor(written(tmp_path / f"not.txt.{suffix}", QUERIES))


def test_a_fold_in_its_own_folder_shares_features_and_best_grade(tmp_path):
    written(tmp_path / "Fold2" / "train.txt", "1 qid:1 1:1\n0 qid:1 1:2\n")
    written(tmp_path / "Fold2" / "vali.txt", "2 qid:2 3:1\n")
    (tmp_path / "Fold2" / "test.txt.gz").write_bytes(gzip.compress(b"0 qid:3 2:1\n"))
    fold = load_letor_fold(tmp_path, 2)
    assert [part.sets.n_features for part in (fold.train, fold.validation, fold.test)] == [3, 3, 3]
    assert fold.train.sets.targets.tolist() == [1, 2]
    assert fold.test.sets.targets.tolist() == [2]
    (tmp_path / "Fold2" / "vali.txt").unlink()
    with pytest.raises(DataError, match=r"vali\.txt is missing"):
        load_letor_fold(tmp_path, 2)


def test_folds_given_by_their_test_files_are_put_together(tmp_path):
    for k in range(1, 6):
        written(tmp_path / f"Fold{k}_test.txt", f"1 qid:{k} 1:1\n")
    fold = load_letor_fold(tmp_path, 1)
    assert fold.train.qids.tolist() == [2, 3, 4]
    assert (fold.validation.qids.tolist(), fold.test.qids.tolist()) == ([5], [1])
    assert load_letor_fold(tmp_path, 3).validation.qids.tolist() == [2]
    with pytest.raises(ParameterError, match="fold needs a whole number"):
        load_letor_fold(tmp_path, 6)
    with pytest.raises(DataError, match="is not a folder"):
        load_letor_fold(tmp_path / "none", 1)
    (tmp_path / "bare").mkdir()
    with pytest.raises(DataError, match="holds neither Fold1/train"):
        load_letor_fold(tmp_path / "bare", 1)


def test_the_real_mq2008_has_784_queries_each_tested_once():
    folder = real("letor_mq2008")
    folds = [load_letor_fold(folder, k) for k in range(1, 6)]
    tested = np.concatenate([fold.test.qids for fold in folds])
    assert len(tested) == len(set(tested.tolist())) == 784
    sizes = np.concatenate([fold.test.sets.sizes for fold in folds])
    assert (sizes.min(), sizes.max(), sizes.sum()) == (5, 121, 15_211)
    for fold in folds:
        parts = [set(part.qids.tolist()) for part in (fold.train, fold.validation, fold.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 784
        assert fold.train.sets.n_features == 46
        assert set(fold.train.relevance.tolist()) == {0, 1, 2}
    first = load_letor(folder / "Fold1_test.txt.gz")
    assert first.qids[0] == 18219
    assert np.allclose(first.sets.objects[0, :5], [0.052893, 1, 0.75, 1, 0.066225])
