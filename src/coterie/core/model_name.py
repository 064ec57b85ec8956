"""What a person or a model may write for a model's name, and when a name answers to it.

Pure module. It compares texts and knows no catalogue; `core.model_ref` decides what several answers mean.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_FAMILIES: Final = {
    "克劳德": "claude",
    "十四行诗": "sonnet",
    "奥普斯": "opus",
    "双子座": "gemini",
    "通义千问": "qwen",
    "千问": "qwen",
    "深度求索": "deepseek",
    "智谱": "glm",
}
_FAMILY: Final = re.compile("|".join(_FAMILIES))
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"\d+")


def _english(words: str) -> str:
    """Return a pattern for *words* that stand alone; a Chinese neighbour is no part of an English word."""
    return rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])"


_DEEP: Final = r"(?:deep[\W_]+)?(?:reasoning|thinking)"
_WITHOUT_REASONING: Final = re.compile(
    _english(rf"non[\W_]*(?:reasoning|thinking)|(?:without|no)[\W_]+{_DEEP}")
    + "|(?:不(?:需要|用|需|要)?|无需?|非|关闭)(?:深度)?(?:思考|推理)"
)
_REASONING: Final = re.compile(_english(_DEEP) + "|(?:深度)?(?:思考|推理)")
_FILLER: Final = re.compile(_english("an?|the|use|for|with|capable|models?") + "|适合|用于|使用|模型|能够|可以|的")


def folded(text: str) -> str:
    """Return *text* without what two ways to write one name differ in: width, case and white space around it."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def compact(text: str) -> str:
    """Return the letters and digits of *text* alone, folded, with the families of models in English."""
    return "".join(_words(_in_english(folded(text))))


@dataclass(frozen=True, slots=True)
class Wish:
    """What a description asks of a model; one that asks for nothing fits nothing."""

    words: tuple[str, ...]
    """Parts of a name, in any order."""
    numbers: tuple[str, ...]
    """The numbers among them, in the order that they must have: 5.4 is not 4.5."""
    reasoning: bool | None
    """Whether the model must reason, or must not; None leaves it open."""

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not self.words and self.reasoning is None

    def fits(self, names: Iterable[str], *, reasoning: bool) -> bool:
        """Whether a model with these *names* that reasons or not is what was asked for."""
        if self.is_empty or self.reasoning not in {None, reasoning}:
            return False
        return not self.words or any(self._is_in(_in_english(folded(name))) for name in names)

    def _is_in(self, name: str) -> bool:
        words = _words(name)
        if not _is_run(self.numbers, _NUMBER.findall(name)):
            return False
        return "".join(self.words) in "".join(words) or set(self.words) <= set(words)


def wish(text: str) -> Wish:
    """Read *text* as a description: parts of a name, and whether the model shall reason, in English or Chinese."""
    rest = _in_english(folded(text))
    reasoning: bool | None = None
    # What is not wanted holds the words for what is wanted, so it is looked for first.
    for pattern, meaning in ((_WITHOUT_REASONING, False), (_REASONING, True)):
        if reasoning is None and pattern.search(rest):
            rest, reasoning = pattern.sub(" ", rest), meaning
    rest = _FILLER.sub(" ", rest)
    return Wish(tuple(_words(rest)), tuple(_NUMBER.findall(rest)), reasoning)


def _in_english(text: str) -> str:
    return _FAMILY.sub(lambda found: f" {_FAMILIES[found[0]]} ", text)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_run(run: tuple[str, ...], numbers: list[str]) -> bool:
    starts = range(len(numbers) - len(run) + 1)
    return any(tuple(numbers[start : start + len(run)]) == run for start in starts)
