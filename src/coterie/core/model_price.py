"""What a model's answer costs.

Pure module. Money is whole millionths of a US dollar, rounded up, so that a sum never falls below the bill. What is not
known is None, never zero.
"""

from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from coterie.core.model_ref import Binding

_MICRO: Final = 1_000_000
_OWN_PROVIDERS: Final = ("local", "ollama")
"""The provider names of models that run on a person's own machine."""
_OWN_ENDINGS: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def millionths(dollars: Decimal) -> int:
    """Return US dollars as whole millionths, rounded up."""
    return ceil(Fraction(dollars) * _MICRO)


def own_cost(binding: Binding, input_tokens: int | None, output_tokens: int | None) -> int | None:
    """Return what a request costs by the prices of *binding* itself, in millionths of a US dollar.

    None if the binding has no prices, or if a number of tokens is not known that has a price.
    """
    parts = [_part(input_tokens, binding.input_price), _part(output_tokens, binding.output_price)]
    known = [part for part in parts if part is not None]
    return ceil(sum(known)) if len(known) == len(parts) else None


def _part(tokens: int | None, price: float | None) -> Fraction | None:
    """Tokens at dollars for a million are millionths of a dollar.

    A price is what a person wrote: the nearest fraction of two would round 0.07 up.
    """
    if price == 0:
        return Fraction(0)
    return None if tokens is None or price is None else tokens * Fraction(str(price))


def is_local(binding: Binding) -> bool:
    """Whether *binding* is served from a person's own machine or network, so that no vendor's price is its price."""
    if binding.provider in _OWN_PROVIDERS:
        return True
    host = urlsplit(binding.base_url or "").hostname
    return host is not None and _is_near(host)


def _is_near(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        # A name without a dot is one of this network.
        return "." not in host or host.endswith(_OWN_ENDINGS)
