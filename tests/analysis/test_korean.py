"""Korean words: removing one particle of a typed word, or morphemes with the extra `korean`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.korean import is_particle, morphemes, root, strip_particle


@pytest.mark.parametrize(
    ("word", "stripped"),
    [
        ("문서를", "문서"),
        ("문서는", "문서"),
        ("문서의", "문서"),
        ("서버에서", "서버"),
        ("서버에서는", "서버"),
        ("서버에서도", "서버"),
        ("데이터베이스로", "데이터베이스"),
        ("파일까지", "파일"),
        ("사람들에게", "사람"),
        ("사용자입니까", "사용자"),
        ("문서", "문서"),
        ("나는", "나는"),
        ("회의", "회의"),
        ("고양이", "고양"),
        ("", ""),
        ("install", "install"),
    ],
)
def test_one_known_particle_is_removed_if_two_syllables_remain(word: str, stripped: str) -> None:
    assert strip_particle(word) == stripped


@given(st.text("가나문서를은는이에서의들로까지", max_size=8))
def test_exactly_one_particle_is_removed(word: str) -> None:
    stripped = strip_particle(word)
    assert word.startswith(stripped)
    assert stripped == word or (is_particle(word[len(stripped) :]) and len(stripped) >= 2)


def test_morphemes_drop_particles_and_endings_and_keep_content_words() -> None:
    found = list(morphemes("쿠버네티스에서 인증서를 갱신하는 방법"))
    assert {"쿠버네티스", "인증서", "갱신", "방법"} <= set(found)
    assert not {"에서", "를", "는"} & set(found)


def test_a_question_and_its_answer_have_morphemes_in_common() -> None:
    asked, written = set(morphemes("데이터베이스가 잠겼을 때")), set(morphemes("데이터베이스는 잠긴 상태이다"))
    assert "데이터베이스" in asked & written


def test_other_cjk_scripts_still_go_as_pairs_and_latin_words_whole() -> None:
    assert {"日本", "本語"} <= set(morphemes("日本語 문서"))
    assert "kubernetes" in list(morphemes("kubernetes는 컨테이너를 돌린다"))


def test_without_the_extra_the_error_names_its_install() -> None:
    script = (
        "import sys; sys.modules['kiwipiepy'] = None\n"
        "from kebab.analysis.korean import morphemes\nfrom kebab.core.errors import MissingExtra\n"
        "try: list(morphemes('문서'))\n"
        "except MissingExtra as error: print(error.message, error.hint)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "kiwipiepy" in shown
    assert "pip install 'kebab[korean]'" in shown


@pytest.mark.parametrize(
    "forms",
    [
        "익힌다 익힙니다 익히고 익히면",
        "걸린다 걸립니다 걸려 걸렸다",
        "보관된다 보관합니다 보관은 보관하며",
        "끝난 끝나면 끝났다",
        "바꿔야 바꾸어야 바꾼다",
        "빌릴 빌린다 빌려",
        "도서관은 도서관에서 도서관",
    ],
)
def test_forms_of_a_word_have_one_root(forms: str) -> None:
    assert len({root(form) for form in forms.split()}) == 1


def test_different_words_have_different_roots() -> None:
    words = "월요일 화요일 오전 오후 대기 대출 허용 금지 시작 시각 켜다 끄다".split()
    assert len({root(word) for word in words}) == len(words)
