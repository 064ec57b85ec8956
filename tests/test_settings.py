"""What `config.toml` and the environment mean, and how a mistake in them is told."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from coterie.core.errors import ConfigInvalidError, ExtraMissingError
from coterie.core.limits import RANGES, Limits
from coterie.core.model_ref import default_binding, resolve
from coterie.core.permission import Mode, Rule
from coterie.settings import Settings, data_directory, is_installed, load_settings, missing_extra, model_help

NOTHING: Mapping[str, str] = {}


def load(folder: Path, text: str, environment: Mapping[str, str] = NOTHING) -> Settings:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return load_settings(folder, environment)


def test_a_missing_file_and_an_empty_environment_mean_the_defaults(tmp_path: Path) -> None:
    """A first start must need no file."""
    settings = load_settings(tmp_path, NOTHING)
    assert settings == Settings(tmp_path)
    assert (settings.host, settings.port, settings.permission_default) == ("127.0.0.1", 7433, Mode.ASK)
    assert settings.limits == Limits()
    assert settings.models == ()


def test_what_is_denied_in_every_mode_is_a_list_of_rules(tmp_path: Path) -> None:
    """A rule that cannot be meant is told with its line, or it would deny nothing and nobody would know."""
    found = load(tmp_path, '[permissions]\ndeny = ["bash(git push*)", "read"]\n')
    assert found.denied == (Rule("bash", "git push*"), Rule("read"))
    with pytest.raises(
        ConfigInvalidError, match=r"line 2: deny in \[permissions\] has 'git push', but each rule must be"
    ):
        load(tmp_path, '[permissions]\ndeny = ["git push"]\n')


def test_every_default_of_a_limit_lies_in_its_range() -> None:
    """A default that the file may not say would be a trap for whoever copies it."""
    limits = Limits()
    assert set(RANGES) == {field.name for field in fields(Limits)}
    for name, (least, most) in RANGES.items():
        assert least <= getattr(limits, name) <= most


def test_every_section_is_read(tmp_path: Path) -> None:
    """What stands in the file is what the host has."""
    text = """
        [server]
        host = "::1"
        port = 0
        [permissions]
        default = "accept-edits"
        [limits]
        hops_max = 3
        cancel_grace_s = 0
        chain_cost_max = 2
    """
    settings = load(tmp_path, text, {"PATH": "/bin"})
    assert (settings.host, settings.port) == ("::1", 0)
    assert settings.permission_default is Mode.ACCEPT_EDITS
    assert settings.limits == Limits(hops_max=3, cancel_grace_s=0, chain_cost_max=2.0)
    assert isinstance(settings.limits.chain_cost_max, float)
    assert settings.shell_environment == {"PATH": "/bin"}


def test_a_model_of_the_file_has_all_its_fields(tmp_path: Path) -> None:
    """The file alone decides: with it, no key of the environment adds a model."""
    text = """
[[models]]
key = "local/script"
api = "openai-chat"
base_url = "http://127.0.0.1:8900/v1"
api_key_env = "MY_KEY"
aliases = ["script"]
[[models]]
key = "work/sonnet"
api = "anthropic"
model = "claude-x"
default = true
available_for_subagents = true
context_window = 128000
label = "Claude X at work"
reasoning = true
images = true
input_price = 3
output_price = 15.5
"""
    first, second = load(tmp_path, text, {"MY_KEY": "secret", "OPENAI_API_KEY": "other"}).models
    assert (first.key, first.api, first.base_url) == ("local/script", "openai-chat", "http://127.0.0.1:8900/v1")
    assert (first.model, first.api_key, first.aliases) == ("script", "secret", ("script",))
    assert not first.default
    assert not first.available_for_subagents
    assert first.origin == f"{tmp_path / 'config.toml'}:3, api_key_env MY_KEY"
    assert (second.model, second.base_url, second.api_key) == ("claude-x", None, None)
    assert second.default
    assert second.available_for_subagents
    assert second.context_window == 128_000
    assert (first.label, first.reasoning, first.input_price, first.output_price) == ("", False, None, None)
    assert (second.label, second.reasoning) == ("Claude X at work", True)
    assert (first.images, second.images) == (False, True)
    assert (second.input_price, second.output_price) == (3.0, 15.5)
    assert "secret" not in repr(first)


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "key.txt"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o755])
def test_a_key_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    """The text says what to do; the key may be known already, and the person should decide on a new one."""
    path = key_file(tmp_path, "secret", mode)
    with pytest.raises(ConfigInvalidError) as caught:
        load(tmp_path, '[[models]]\nkey="a/b"\napi="anthropic"\napi_key_file="key.txt"')
    assert f"config.toml, line 4: the key file {path} is open to other users (mode {mode:04o})" in str(caught.value)
    assert f"chmod 600 {path}" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_may_stand_in_a_file_beside_the_settings(tmp_path: Path) -> None:
    """Editors end a file with a newline, which is no part of a key."""
    key_file(tmp_path, "secret\n")
    (model,) = load(tmp_path, '[[models]]\nkey="a/b"\napi="anthropic"\napi_key_file="key.txt"').models
    assert model.api_key == "secret"
    assert str(tmp_path / "key.txt") in model.origin


def test_a_key_variable_that_is_not_set_is_told_by_the_origin(tmp_path: Path) -> None:
    """One model without its key must not keep the others from starting."""
    (model,) = load(tmp_path, '[[models]]\nkey="a/b"\napi="anthropic"\napi_key_env="MY_KEY"').models
    assert model.api_key is None
    assert model.origin.endswith("config.toml:2, api_key_env MY_KEY, which is not set")


GOOGLE = '[[models]]\nkey = "my/gemini"\napi = "google"\napi_key_env = "MY_KEY"\n'


def test_an_api_may_need_an_extra_that_is_installed(tmp_path: Path) -> None:
    """With its library it is an api like the others, and the vendor's own address needs no word."""
    asked: list[str] = []
    (tmp_path / "config.toml").write_text(GOOGLE, encoding="utf-8")
    settings = load_settings(tmp_path, {"MY_KEY": "secret"}, find=lambda module: not asked.append(module))
    (model,) = settings.models
    assert (model.api, model.base_url, model.model, model.api_key) == ("google", None, "gemini", "secret")
    assert asked == ["google.genai"]


def test_a_missing_extra_ends_the_start_with_the_command_that_adds_it(tmp_path: Path) -> None:
    """Found out at the first turn it would cost the turn, and the traceback of an import names no file."""
    config = tmp_path / "config.toml"
    config.write_text(MODEL + GOOGLE, encoding="utf-8")
    with pytest.raises(ExtraMissingError) as caught:
        load_settings(tmp_path, {"MY_KEY": "secret"}, find=lambda _: False)
    assert str(caught.value) == (
        f"The model 'my/gemini' ({config}:5, api_key_env MY_KEY) has the api 'google', whose library is not installed: "
        "run `pip install 'coterie[google]'` and start the host again."
    )


def test_models_without_an_extra_look_for_none(tmp_path: Path) -> None:
    """The search reads folders, and most hosts have no use for it."""
    models = load(tmp_path, MODEL, dict.fromkeys(KEYS, "secret")).models
    assert missing_extra(models, pytest.fail) is None


def test_a_library_is_looked_for_without_being_loaded() -> None:
    """A package above it may be missing too."""
    assert is_installed("json.tool")
    assert not is_installed("json.nothing")
    assert not is_installed("nothing_of_this_name.inside")


MODEL = '[[models]]\nkey = "a/b"\napi = "anthropic"\n'

MISTAKES = {
    "an unknown section": ("[sever]\nport = 1", 1, "no setting 'sever'; the nearest is 'server'"),
    "an unknown key": ("\n[server]\n# port\nprot = 1", 4, "no setting 'prot' in [server]; the nearest is 'port'"),
    "an unknown dotted key": ("server.prot = 1", 1, "no setting 'prot' in [server]"),
    "an unknown inline key": ("\nserver = { prot = 1 }", 2, "no setting 'prot' in [server]"),
    "an unknown limit": ("[limits]\nhop_max = 1", 2, "the nearest is 'hops_max'"),
    "a key far from all": ("[limits]\nzzz = 1", 2, "no setting 'zzz' in [limits]."),
    "an unknown model key": (MODEL + "[[models]]\nkeys = 1", 5, "no setting 'keys' in [models]; the nearest is 'key'"),
    "a wrong type": ('[server]\nport = "7433"', 2, "port in [server] is '7433', but must be a whole number"),
    "a flag for a number": ("[limits]\nhops_max = true", 2, "hops_max in [limits] is True"),
    "a number out of range": ("[limits]\nturns_max = 0", 2, "a whole number from 1 to 1000"),
    "a port out of range": ("[server]\nport = 65536", 2, "from 0 to 65535"),
    "a sum below zero": ("[limits]\nchain_cost_max = -0.5", 2, "is -0.5, but must be a number from 0 to 1000000."),
    "a sum that is none": ("[limits]\nchain_cost_max = nan", 2, "must be a number from 0 to 1000000."),
    "a fraction of a whole": ("[limits]\nhops_max = 1.5", 2, "a whole number from 0 to 1000"),
    "a price below zero": (MODEL + "input_price = -1\noutput_price = 1", 4, "must be a number from 0 to 1000000."),
    "a price without end": (MODEL + "input_price = 1\noutput_price = inf", 5, "output_price in [models] is inf"),
    "a price in quotes": (MODEL + 'input_price = "3"', 4, "input_price in [models] is '3', but must be a number"),
    "a flag for a price": (MODEL + "input_price = true", 4, "must be a number from 0"),
    "half of a price": (MODEL + "input_price = 3", 4, "has input_price and output_price, or neither"),
    "the other half": (MODEL + "\noutput_price = 3", 5, "has input_price and output_price, or neither"),
    "a label that is no text": (MODEL + "label = 1", 4, "label in [models] is 1, but must be text in quotes"),
    "a reasoning that is no flag": (MODEL + 'reasoning = "yes"', 4, "must be true or false"),
    "an empty text": ('[server]\nhost = ""', 2, "text in quotes"),
    "a value for a table": ("limits = 3", 1, "a table: [limits]"),
    "a table for tables": ("[models]\nkey = 1", 1, "tables: [[models]]"),
    "rows that are no tables": ("models = [1]", 1, "tables: [[models]]"),
    "an unknown permission": ('[permissions]\ndefault = "autp"', 2, "ask, accept-edits, auto; the nearest is 'auto'."),
    "an unknown api": ('[[models]]\nkey="a/b"\napi="openai-cat"', 3, "anthropic, google; the nearest is 'openai-"),
    "no api": ('[[models]]\nkey="a/b"', 2, "the model 'a/b' needs an api, one of openai-chat,"),
    "no key": ('\n[[models]]\napi="anthropic"', 2, "a model needs a key"),
    "a key without provider": ('[[models]]\nkey="b"\napi="anthropic"', 2, "must have the form provider/model"),
    "a doubled key": (MODEL + MODEL, 5, "the model 'a/b' stands already in line 2"),
    "two defaults": (MODEL + "default=true\n" + MODEL.replace("b", "c") + "default=true", 8, "only one can be"),
    "a base URL without scheme": (MODEL + 'base_url="x.org"', 4, "must begin with http:// or https://"),
    "a base URL without host": (MODEL + 'base_url="http://:80/v1"', 4, "a host"),
    "a base URL with half a host": (MODEL + 'base_url="http://[::1"', 4, "a host"),
    "a base URL with a port that cannot be": (MODEL + 'base_url="http://x:99999"', 4, "a port below 65536"),
    "aliases that are no list": (MODEL + 'aliases="x"', 4, "a list of texts"),
    "aliases that are no texts": (MODEL + "aliases=[1]", 4, "a list of texts"),
    "a default that is no flag": (MODEL + "default=1", 4, "true or false"),
    "two sources of a key": (MODEL + 'api_key_env="A"\napi_key_file="b"', 5, "not both"),
    "a key file that is missing": (MODEL + 'api_key_file="none"', 4, "none cannot be read (FileNotFoundError)"),
    "a key file that is empty": (MODEL + 'api_key_file="empty"', 4, "empty is empty"),
    "a notify to nobody": ("\n[[notify]]\ntext = true", 2, "a notify has command = "),
    "a notify to two": ('[[notify]]\ncommand = ["a"]\nurl = "http://b"', 3, "or url = "),
    "a notify to no address": ('[[notify]]\nurl = "b"', 2, "url in [notify] must begin with http:// or https://."),
    "an unknown event": ('[[notify]]\nurl = "http://b"\nevents = ["faled"]', 3, "approval, failed, finished, budget"),
    "bad syntax": ("[server]\nport = = 1", 2, "this is not TOML: Invalid value."),
    "a text without end": ('[server]\nhost = "', 2, "this is not TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, mistake: str) -> None:
    """A person repairs the file from the text alone."""
    text, line, told = MISTAKES[mistake]
    (tmp_path / "empty").touch(mode=0o600)
    with pytest.raises(ConfigInvalidError, match=re.escape(told)) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'config.toml'}, line {line}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    """A file in another encoding is a mistake of its own, without a line."""
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigInvalidError, match="not UTF-8"):
        load_settings(tmp_path, NOTHING)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A folder in its place is the portable way to be unreadable."""
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigInvalidError, match="cannot be read"):
        load_settings(tmp_path, NOTHING)


KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")


@pytest.mark.parametrize("variable", KEYS)
def test_a_key_in_the_environment_brings_the_models_of_its_vendor(tmp_path: Path, variable: str) -> None:
    """The address is always named, so that no library looks for another one by itself."""
    vendor = variable.removesuffix("_API_KEY").lower()
    models = load_settings(tmp_path, {variable: "secret"}).models
    assert models
    for model in models:
        assert model.key == f"{vendor}/{model.model}"
        assert (model.api_key, model.origin) == ("secret", variable)
        assert model.base_url is not None
        assert model.base_url.startswith("https://")
        assert model.api == ("anthropic" if vendor == "anthropic" else "openai-chat")
        assert model.available_for_subagents


@pytest.mark.parametrize("variable", KEYS)
def test_the_address_of_a_vendor_can_be_another_one(tmp_path: Path, variable: str) -> None:
    """Proxies and compatible servers are reached with the same variables that the vendors use."""
    base = variable.replace("_API_KEY", "_BASE_URL")
    models = load_settings(tmp_path, {variable: "secret", base: "http://localhost:1/v1"}).models
    assert {model.base_url for model in models} == {"http://localhost:1/v1"}
    assert {model.origin for model in models} == {f"{variable} and {base}"}


def test_the_aliases_of_all_vendors_are_unique(tmp_path: Path) -> None:
    """Whoever has every key must still be able to say `sonnet`."""
    models = load_settings(tmp_path, dict.fromkeys(KEYS, "secret") | {"OLLAMA_HOST": "localhost"}).models
    aliases = [alias for model in models for alias in model.aliases]
    assert len(aliases) == len(set(aliases))
    assert all(resolve(models, alias) in models for alias in aliases)
    assert len({model.key for model in models}) == len(models)


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    """Shells and compose files export what they have no value for."""
    empty = {"OPENAI_API_KEY": " ", "OLLAMA_HOST": "", "COTERIE_MODEL": ""}
    assert load_settings(tmp_path, empty).models == ()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9", "http://127.0.0.1:9/v1"),
        (":9", "http://127.0.0.1:9/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box/", "https://box:443/v1"),
        ("http://box:9", "http://box:9/v1"),
        ("[::1]:9", "http://[::1]:9/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
    ],
)
def test_an_ollama_is_found_by_its_own_variable(tmp_path: Path, host: str, url: str) -> None:
    """The variable is written for a server too: it may name every address, or leave out scheme and port."""
    (model, *_) = load_settings(tmp_path, {"OLLAMA_HOST": host}).models
    assert (model.base_url, model.api, model.api_key, model.origin) == (url, "openai-chat", None, "OLLAMA_HOST")


def test_an_ollama_is_found_by_its_base_url(tmp_path: Path) -> None:
    """A base URL is used as it stands."""
    (model, *_) = load_settings(tmp_path, {"OLLAMA_HOST": "x", "OLLAMA_BASE_URL": "http://y/v1"}).models
    assert (model.base_url, model.origin) == ("http://y/v1", "OLLAMA_BASE_URL")


def test_a_base_url_that_is_none_is_told(tmp_path: Path) -> None:
    """The text names the variable."""
    with pytest.raises(ConfigInvalidError, match="OPENAI_BASE_URL is 'x'"):
        load_settings(tmp_path, {"OPENAI_API_KEY": "secret", "OPENAI_BASE_URL": "x"})


def test_one_variable_chooses_the_default(tmp_path: Path) -> None:
    """A known model is chosen by any of its names, and is the only default."""
    models = load_settings(tmp_path, {"ANTHROPIC_API_KEY": "secret", "COTERIE_MODEL": "haiku"}).models
    assert [model.key for model in models if model.default] == ["anthropic/claude-haiku-5-5"]


def test_one_variable_chooses_a_default_of_the_file(tmp_path: Path) -> None:
    """It wins over the file for one start."""
    text = MODEL + "default = true\n" + MODEL.replace("b", "c")
    chosen = default_binding(load(tmp_path, text, {"COTERIE_MODEL": "a/c"}).models)
    assert chosen is not None
    assert chosen.key == "a/c"


def test_the_default_may_be_a_model_that_is_not_listed(tmp_path: Path) -> None:
    """New models come out more often than releases of this program; an id may hold a slash."""
    environment = {"OPENROUTER_API_KEY": "secret", "COTERIE_MODEL": "openrouter/new/model"}
    chosen = default_binding(load_settings(tmp_path, environment).models)
    assert chosen is not None
    assert (chosen.key, chosen.model, chosen.api_key) == ("openrouter/new/model", "new/model", "secret")
    assert chosen.default


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        ("anthropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("ANTHROPIC/Claude-Opus-5-5", "anthropic/claude-opus-5-5"),
        ("Claude Opus 5.5", "anthropic/claude-opus-5-5"),
    ],
)
def test_a_model_that_is_not_listed_is_no_other_with_a_like_name(tmp_path: Path, wanted: str, key: str) -> None:
    """A vendor's name with a slash is exact; what is listed is found as any name is."""
    models = load_settings(tmp_path, {"ANTHROPIC_API_KEY": "secret", "COTERIE_MODEL": wanted}).models
    assert [model.key for model in models if model.default] == [key]
    assert len({model.key for model in models}) == len(models)


def test_naming_an_ollama_model_is_enough(tmp_path: Path) -> None:
    """A local Ollama has no key and a well-known address."""
    (model,) = load_settings(tmp_path, {"COTERIE_MODEL": "ollama/phi"}).models
    assert (model.base_url, model.origin) == ("http://127.0.0.1:11434/v1", "COTERIE_MODEL")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("openai/gpt", "OPENAI_API_KEY is not set"),
        ("nobody/gpt", "is called 'nobody/gpt'; use the key of one that is. Known are: anthropic/"),
        ("claude", "Several models are called 'claude'; use the key of one. Known are: anthropic/"),
        ("gpt", "No configured model is called 'gpt'"),
    ],
)
def test_a_default_that_cannot_be_used_is_told(tmp_path: Path, wanted: str, told: str) -> None:
    """A default is never replaced silently by another one."""
    with pytest.raises(ConfigInvalidError, match=re.escape(told)):
        load_settings(tmp_path, {"ANTHROPIC_API_KEY": "secret", "COTERIE_MODEL": wanted})


def test_a_default_that_the_file_does_not_list_is_told(tmp_path: Path) -> None:
    """With a file, the environment adds no model."""
    with pytest.raises(ConfigInvalidError, match="Known are: a/b"):
        load(tmp_path, MODEL, {"ANTHROPIC_API_KEY": "secret", "COTERIE_MODEL": "anthropic/claude-x"})


def test_the_data_directory_is_the_nearest_wish(tmp_path: Path) -> None:
    """The option wins over the variable, the variable over the platform."""
    home = {"COTERIE_HOME": str(tmp_path / "home")}
    assert data_directory(tmp_path, home) == tmp_path
    assert data_directory(None, home) == tmp_path / "home"
    assert data_directory(None, NOTHING).name == "coterie"
    assert data_directory(Path("here"), NOTHING).is_absolute()


def test_the_help_names_every_way_to_configure_a_model(tmp_path: Path) -> None:
    """It is the first text that a person without a model reads."""
    text = model_help(tmp_path)
    for wanted in (*KEYS, "OLLAMA_HOST", "COTERIE_MODEL", "[[models]]", str(tmp_path / "config.toml")):
        assert wanted in text


def test_settings_never_show_a_secret(tmp_path: Path) -> None:
    """Settings are printed when something goes wrong."""
    assert "secret" not in repr(load_settings(tmp_path, {"OPENAI_API_KEY": "secret"}))
