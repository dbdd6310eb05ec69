"""Vectors as a user gets them: the bundled models in real processes that are interrupted, killed or cannot reach a
model.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

NOTES = {
    "git.md": "# Git\n\nRun `git init` in a folder. Every `git commit` keeps a state of all files that one can come back to.\n",
    "bread.md": "# Sourdough\n\nFeed the starter with flour and water, wait until it has doubled, then bake.\n",
    "taxes.md": "# Taxes\n\nThe declaration is due in July. Keep receipts for seven years.\n",
}
DEAD_ENDPOINT = {
    "KEBAB_EMBEDDING_MODEL": "openai:some-model",
    "KEBAB_EMBEDDING_ENDPOINT": "http://127.0.0.1:9/v1",
    "KEBAB_EMBEDDING_RETRIES": "0",
}


@pytest.fixture
def person(user: User, model_cache: Path) -> User:
    """A user with the default settings."""
    user.environment.pop("KEBAB_EMBEDDING_MODEL")
    user.environment["XDG_CACHE_HOME"] = str(model_cache)
    for path, text in NOTES.items():
        user.write(path, text)
    return user


def write_many(user: User, count: int) -> None:
    words = random.Random(7)
    for number in range(count):
        body = " ".join(f"w{words.randrange(3000)}" for _ in range(40))
        user.write(f"many/{number}.md", f"# Note {number}\n\n{body}\n")


def vectors_are_whole(user: User) -> None:
    """Checks that every chunk has exactly one vector in the space of its script, and that none is stored twice."""
    user.check()
    with user.open() as connection:
        assert connection.execute(
            "SELECT c.id FROM chunks c WHERE (SELECT count(*) FROM chunks_vec v WHERE v.chunk = c.id AND v.home = 1) <> 1"
        ).fetchall() == []  # fmt: skip
        assert (
            connection.execute(
                "SELECT text_hash FROM vectors GROUP BY space_id, text_hash HAVING count(*) > 1"
            ).fetchall()
            == []
        )


def test_a_question_finds_a_page_that_has_none_of_its_words(person: User) -> None:
    """Hybrid is the default as soon as there are vectors."""
    assert person.ingest()["vectors_made"] == 3
    answer = person.ask("search", "how to set up version control")
    assert (answer["mode"], answer["method"]) == ("hybrid", "hybrid")
    assert answer["hits"][0]["doc_path"] == "git.md"
    assert answer["hits"][0]["retrieval"]["vector_rank"] == 1
    assert person.ask("search", "how to set up version control", "--fts-only")["hits"] == []


def test_a_notice_says_that_hits_below_the_similarity_floor_do_not_match(person: User) -> None:
    person.ingest()
    answer = person.ask("search", "zeppelin")
    assert (answer["method"], [notice["code"] for notice in answer["notices"]]) == ("hybrid", ["far_away"])
    assert 1 <= len(answer["hits"]) <= 3
    assert person.run("search", "zeppelin", "--exit-code").code == 1
    assert person.run("search", "version control", "--exit-code").code == 0


def test_an_ingest_killed_while_embedding_continues_where_it_stopped(person: User) -> None:
    write_many(person, 160)
    process = person.start("ingest", person.notes, "--json", "--progress", "json")
    assert process.stderr is not None
    for line in process.stderr:
        event = json.loads(line)
        if event["event"] == "embedding" and event["done"] >= 64:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    meanwhile = person.ask("search", "sourdough")
    assert "partial_vectors" in [notice["code"] for notice in meanwhile["notices"]]
    assert meanwhile["hits"][0]["doc_path"] == "bread.md"
    doctor = person.run("doctor")
    assert (doctor.code, "kb ingest" in doctor.out) == (0, True), "unfinished is not unhealthy"
    report = person.ingest()
    assert 0 < report["vectors_made"] < 163
    vectors_are_whole(person)
    assert person.ask("search", "sourdough")["notices"] == []
    assert person.run("doctor").code == 0


def test_ctrl_c_during_embedding_loses_no_stored_vector(person: User) -> None:
    write_many(person, 160)
    process = person.start("ingest", person.notes, "--json", "--progress", "json")
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == "embedding":
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["added"] == 163
    assert person.ingest()["unchanged"] == 163
    vectors_are_whole(person)


def test_a_renamed_or_copied_file_is_not_embedded_again(person: User) -> None:
    person.ingest()
    (person.notes / "git.md").rename(person.notes / "versions.md")
    shutil.copy(person.notes / "bread.md", person.notes / "copy.md")
    report = person.ingest()
    assert (report["vectors_made"], report["vectors_reused"]) == (0, 2)
    assert person.ask("search", "how to set up version control")["hits"][0]["doc_path"] == "versions.md"
    vectors_are_whole(person)


def test_an_edited_file_is_found_by_its_new_text(person: User) -> None:
    person.ingest()
    person.write("bread.md", "# Violin\n\nRosin the bow before playing, and loosen it afterwards.\n")
    assert person.ingest()["vectors_made"] == 1
    assert person.ask("search", "caring for a string instrument")["hits"][0]["doc_path"] == "bread.md"
    vectors_are_whole(person)


def test_without_vectors_search_is_lexical_and_says_how_to_make_them(person: User) -> None:
    """Mode vector is an error then."""
    assert person.ingest(person.notes, "--no-embed")["vectors_made"] == 0
    answer = person.ask("search", "sourdough")
    assert (answer["mode"], answer["method"]) == ("hybrid", "lexical")
    assert [notice["code"] for notice in answer["notices"]] == ["no_vectors"]
    assert "kb ingest" in answer["notices"][0]["message"]
    person.fails("search", "sourdough", "--vec-only", code="no_vectors")
    assert person.ingest()["vectors_made"] == 3
    assert person.ask("search", "sourdough", "--vec-only")["method"] == "vector"


def test_an_endpoint_that_is_down_costs_only_the_vectors(person: User) -> None:
    person.fails("ingest", person.notes, code="model_unreachable", env=DEAD_ENDPOINT)
    assert person.ask("search", "sourdough", env=DEAD_ENDPOINT)["hits"][0]["doc_path"] == "bread.md"
    assert person.ingest()["vectors_made"] == 3  # with the default model
    answer = person.ask("search", "sourdough", env=DEAD_ENDPOINT)
    assert answer["method"] == "lexical"
    assert [notice["code"] for notice in answer["notices"]] == ["model_mismatch"]
    assert "--rebuild-vectors" in answer["notices"][0]["message"]
    person.fails("search", "sourdough", "--vec-only", code="model_mismatch", env=DEAD_ENDPOINT)


def test_a_missing_model_folder_costs_only_the_vectors(person: User, tmp_path: Path) -> None:
    person.ingest()
    gone = {"KEBAB_EMBEDDING_MODEL": f"onnx:{tmp_path / 'gone'}"}
    answer = person.ask("search", "sourdough", env=gone)
    assert (answer["method"], answer["hits"][0]["doc_path"]) == ("lexical", "bread.md")
    assert "model.onnx" in answer["notices"][0]["message"]
    person.fails("search", "sourdough", "--vec-only", code="no_vectors", env=gone)
    doctor = person.run("doctor", env=gone)
    assert doctor.code == 3
    assert "has no model.onnx" in doctor.out
    person.write("new.md", "written after the model was gone")
    person.fails("ingest", code="no_vectors", env=gone)
    assert person.ask("search", "written after", "--fts-only")["hits"] == [], (
        "it is noticed before the work, not after it"
    )
    assert person.run("ingest", "--no-embed", env=gone).code == 0


def test_mode_vector_without_vectors_for_the_script_of_the_question_is_an_error(person: User) -> None:
    person.ingest()
    person.fails("search", "빵을 굽는 방법", "--vec-only", code="no_vectors")
    answer = person.ask("search", "빵을 굽는 방법")
    assert answer["method"] == "lexical"
    assert "cross_language" in answer["notices"][0]["message"]


def test_mode_vector_before_anything_was_ingested_is_an_error(person: User) -> None:
    person.fails("search", "anything", "--vec-only", code="no_vectors")


def test_a_notice_reports_missing_vectors(person: User) -> None:
    """After embedding.cross_language was turned on, Korean questions find less until the next ingest."""
    person.ingest()
    wants_more = {"KEBAB_EMBEDDING_CROSS_LANGUAGE": "on"}
    assert person.ask("search", "sourdough")["notices"] == []
    notices = person.ask("search", "sourdough", env=wants_more)["notices"]
    assert [notice["code"] for notice in notices] == ["partial_vectors"]
    doctor = person.run("doctor", env=wants_more)
    assert (doctor.code, "note  vectors: not everything" in doctor.out) == (0, True)
    assert person.run("ingest", env=wants_more).code == 0
    assert person.ask("search", "sourdough", env=wants_more)["notices"] == []
    assert person.ask("search", "sourdough", env={"KEBAB_EMBEDDING_CROSS_LANGUAGE": "off"})["notices"] == [], (
        "more than is wanted is enough"
    )


def test_a_damaged_model_in_the_cache_is_unpacked_again(person: User, model_cache: Path, tmp_path: Path) -> None:
    """A model with one changed bit would load and give other vectors."""
    person.ingest()
    before = person.ask("search", "how to set up version control")["hits"]
    own = tmp_path / "cache"
    shutil.copytree(model_cache, own)
    (graph,) = own.glob("kebab/granite-*/model.onnx")
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 64
    graph.write_bytes(bytes(data))
    assert "changed since" in person.run("doctor", env={"XDG_CACHE_HOME": str(own)}).out
    assert person.ask("search", "how to set up version control", env={"XDG_CACHE_HOME": str(own)})["hits"] == before
    assert person.run("doctor", env={"XDG_CACHE_HOME": str(own)}).code == 0


def test_a_question_of_a_hundred_thousand_characters_is_answered(person: User) -> None:
    person.ingest()
    question = "sourdough starter flour water " * 3400
    done = person.run("search", "--bulk", input=json.dumps({"query": question}).encode())
    answer = json.loads(done.out)
    assert done.code == 0
    assert answer["hits"][0]["doc_path"] == "bread.md"
    assert "long_query" in [notice["code"] for notice in answer["notices"]]


def test_a_question_loads_only_the_model_of_its_script(person: User, model_cache: Path, tmp_path: Path) -> None:
    """An English question never loads the multilingual model, and a Korean one never granite."""
    person.write("ko.md", "# 빵\n\n밀가루와 물로 발효종을 키운 다음 빵을 굽는다.\n")
    person.ingest()
    for question, model in (("how do I bake bread", "granite"), ("빵을 굽는 방법", "multilingual")):
        own = tmp_path / model
        assert person.ask("search", question, env={"XDG_CACHE_HOME": str(own)})["method"] == "hybrid"
        assert [folder.name.split("-")[0] for folder in (own / "kebab").iterdir()] == [model]
        assert [folder.name for folder in own.iterdir()] == ["kebab"], "onnxruntime keeps what it would send home here"


def test_a_korean_question_finds_the_english_page(person: User) -> None:
    person.write("ko.md", "# 세금\n\n신고 기한은 7월이다. 영수증은 7년 동안 보관한다.\n")
    person.ingest()
    hits = person.ask("search", "빵 반죽을 발효시키고 굽는 방법")["hits"]
    assert "bread.md" in [hit["doc_path"] for hit in hits[:3]]
    vectors_are_whole(person)


def test_missing_vectors_of_the_second_model_are_noticed(person: User) -> None:
    """After an embedding that stopped in its second round every chunk has a vector, but Korean questions find less."""
    person.write("ko.md", "# 세금\n\n신고 기한은 7월이다. 영수증은 7년 동안 보관한다.\n")
    person.ingest()
    with person.open() as connection:
        connection.execute("DELETE FROM chunks_vec WHERE home = 0")
        connection.execute("DELETE FROM meta WHERE key = 'complete_vectors'")
    answer = person.ask("search", "빵 반죽을 발효시키고 굽는 방법")
    assert "partial_vectors" in [notice["code"] for notice in answer["notices"]]
    assert "kb ingest" in person.run("doctor").out
    assert person.ingest()["vectors_made"] == 0  # the texts are known
    after = person.ask("search", "빵 반죽을 발효시키고 굽는 방법")
    assert "partial_vectors" not in [notice["code"] for notice in after["notices"]]
    assert "bread.md" in [hit["doc_path"] for hit in after["hits"]]


def test_the_same_question_gives_byte_identical_output(person: User) -> None:
    person.ingest()
    first, second = (person.ask("search", "how to set up version control", "--explain") for _ in range(2))
    assert json.dumps(first["hits"]) == json.dumps(second["hits"])


def test_similar_passages_are_found_by_stored_vectors_without_a_model(person: User) -> None:
    person.write(
        "ferment.md", "# Yeast\n\nKeep a jar of wild yeast: flour, water and patience, and the loaf rises by itself.\n"
    )
    person.ingest()
    answer = person.ask("similar", "bread.md", "-k", "1")
    assert (answer["method"], answer["hits"][0]["doc_path"], answer["hits"][0]["score_kind"]) == (
        "vector",
        "ferment.md",
        "cosine",
    )
    assert 0.5 < answer["hits"][0]["score"] < 1
    assert answer["notices"] == []
