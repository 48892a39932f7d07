#!/usr/bin/env python3
"""Writes what Hugging Face's transformers makes of chat templates, for tests/engine.

    python3 -m venv VENV && VENV/bin/pip install transformers jinja2
    VENV/bin/python tools/make_chat_references.py tests/reference/chat

*.jinja are templates in the styles of ten families, written for this test. Written are conversations.json: for each template and
conversation the text of apply_chat_template's own renderer, or that it refuses; and language.json: the same of one-line templates, which
show one part of the language each.
"""
import json
import pathlib
import sys

from transformers.utils.chat_template_utils import render_jinja_template

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather\nof a place.",
        "parameters": {"type": "object", "required": ["place"], "properties": {
            "place": {"type": "string", "description": "Stadt, z. B. \"Zürich\" <ch>"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": ["number", "null"]}}, "required": ["x"]}}}}}},
    {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}},
]
DOCUMENTS = [{"title": "Höhen", "text": "4,478 m"}, {"id": 7, "title": "b", "text": "two\nlines"}]


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="abcdef123"):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = {
    "one": dict(messages=[said("user", "Hello")]),
    "one, no prompt": dict(messages=[said("user", "Hello")], add_generation_prompt=False),
    "system": dict(messages=[said("system", "  Be brief.\n"), said("user", " Hi, 'you'! <b>&amp; ü 日本 🙂 ")]),
    "turns": dict(messages=[said("system", "S"), said("user", "a"), said("assistant", " b "), said("user", "c")]),
    "ends with assistant": dict(messages=[said("user", "a"), said("assistant", "b")], add_generation_prompt=False),
    "thinking": dict(messages=[said("user", "1+1?"), said("assistant", "<think>\nadd\n</think>\n\n2"), said("user", "sure?"),
                               said("assistant", "<think>yes</think>Yes.")], add_generation_prompt=False),
    "no thinking": dict(messages=[said("user", "x")], enable_thinking=False),
    "reasoning": dict(messages=[said("user", "x"), said("assistant", "y", reasoning_content="because")], add_generation_prompt=False),
    "tools": dict(messages=[said("system", "S"), said("user", "Wetter?")], tools=TOOLS),
    "tools, other place": dict(messages=[said("user", "Wetter?")], tools=TOOLS, tools_in_user_message=False, reasoning_effort="high"),
    "calls": dict(messages=[said("user", "Wetter?"), said("assistant", None, tool_calls=[call("get_weather", {"place": "Genève", "days": 1, "x": [1.0, 2.5e-7, True, None]})]),
                            said("tool", "22", tool_call_id="abcdef123"), said("assistant", "22 Grad."), said("user", "Danke")], tools=TOOLS),
    "two calls": dict(messages=[said("user", "?"), said("assistant", "", tool_calls=[call("now", {}), call("get_weather", {"place": "B\"e"}, "123456789")]),
                                said("tool", "1", tool_call_id="abcdef123"), said("tool", "2", tool_call_id="123456789")], tools=TOOLS),
    "call as text": dict(messages=[said("user", "?"), said("assistant", "", tool_calls=[call("now", "{\"a\": 1}")])], add_generation_prompt=False),
    "result as object": dict(messages=[said("user", "?"), said("assistant", "", tool_calls=[call("now", {})]), said("tool", {"t": [1, 2]}, tool_call_id="abcdef123")]),
    "short id": dict(messages=[said("user", "?"), said("assistant", "", tool_calls=[call("now", {}, "x")])]),
    "documents": dict(messages=[said("user", "Wie hoch?")], documents=DOCUMENTS, date="May 2, 2025"),
    "controls": dict(messages=[said("user", "x")], controls={"length": 3, "deep": {"a": []}}),
    "parts": dict(messages=[said("system", [{"type": "text", "text": "S"}]), said("user", [{"type": "image"}, {"type": "text", "text": " what? "}])]),
    "wrong turns": dict(messages=[said("user", "a"), said("user", "b")]),
    "unknown role": dict(messages=[said("critic", "a")]),
    "lonely result": dict(messages=[said("user", "a"), said("tool", "1", tool_call_id="abcdef123")]),
    "no content": dict(messages=[said("user", None)]),
    "nothing": dict(messages=[]),
}

# Variables of the templates below.
VARIABLES = {"n": 7, "x": 2.5, "big": 1e16, "small": 0.00001, "s": "  Äpfel und Birnen  ", "t": "a-b_c d", "l": [3, 1, 2, 3], "e": [], "none_": None,
             "d": {"b": 1, "a": "two", "items": 5, "C": [1, {"k": None}]}, "words": ["pear", "Apple", "fig", "apple"],
             "people": [{"name": "Zoë", "age": 31, "of": {"k": 2}}, {"name": "bob", "age": 25, "of": {"k": 1}}, {"name": "Al", "age": 31, "of": {"k": 3}}],
             "yes": True, "no": False, "text": "one\n two\n\nthree", "q": "it's \"so\"\t\\ <&>"}
LANGUAGE = r"""
{{ 1 + 2 * 3 ** 2 - 7 // 2 }} {{ 7 / 2 }} {{ 8 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 % 2 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ -2 ** 2 }}
{{ 1.0 }} {{ 1e3 }} {{ big }} {{ small }} {{ 0.1 + 0.2 }} {{ 1e-4 }} {{ 123456789.123 }} {{ 1_000 }} {{ x }} {{ 1e100 }} {{ 100000000000000000.0 }}
{{ 1e400 }} {{ -1e400 }} {{ 1e-400 }} {{ 0 * 1e400 }} {{ [1e400, 2.5e-400] }} {{ 1e400 > 10 ** 18 }} {{ 1e400 | string }} {{ 1e400 | int(3) if no }}
{{ [1, 'a', none, true, 2.0, (1,), (), {'k': [1]}, "it's", 'q"', 'b\n'] }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.5 ~ [1] }} {{ 'ab' * 2 }} {{ [0] * 3 }} {{ 'a' 'b' }} {{ 2 * 'x' }} {{ [1] + [2] }} {{ (1, 2) + (3,) }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 1 }} {{ [1, 2] == [1, 2] }} {{ (1,) == [1] }} {{ {'a': 1} == {'a': 1.0} }} {{ none == none }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }}
{{ 2 in l }} {{ 9 not in l }} {{ 'und' in s }} {{ 'b' in d }} {{ not 2 in l }} {{ 'x' in undefined_ }} {{ 3 in (1, 2) }} {{ '' in 'a' }}
{{ yes and no }} {{ yes or no }} {{ '' or 'x' }} {{ e and 1 }} {{ not none }} {{ not e }} {{ 0 or none }} {{ none and 1 }} {{ not not 1 }}
{{ 'a' if yes else 'b' }} {{ 'a' if no }} {{ ('a' if no) is defined }} {{ 1 if no else 2 if no else 3 }} {{ 'a' if yes and not no else 'b' }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[-2:] }} {{ l[3:0:-1] }} {{ 'Äpfel'[0] }} {{ 'Äpfel'[1:3] }} {{ 'abc'[::-1] }} {{ l[none:2] }} {{ 'abc'[-9:2] }} {{ l[9::-2] }}
{{ d.b }} {{ d['a'] }} {{ d.missing }} {{ d['missing'] }} {{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 4) }} {{ d['items'] }} {{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.C[1].k }} {{ none.x }} {{ 5 .x }} {{ 'a'.nothing }}
{{ people[0].name }} {{ people.0.age }} {{ people | map(attribute='name') | join(', ') }} {{ people | map(attribute='of.k') | list }} {{ people | map(attribute='zip', default=0) | list }} {{ words | map('upper') | list }} {{ words | map('replace', 'p', 'P') | join }}
{{ people | selectattr('age', 'equalto', 31) | map(attribute='name') | list }} {{ people | rejectattr('age', 'lt', 30) | list | length }} {{ l | select('odd') | list }} {{ l | reject('>', 2) | list }} {{ [0, 1, '', 'a'] | select | list }} {{ people | selectattr('of.k', 'in', [1, 2]) | map(attribute='name') | list }} {{ people | selectattr('missing') | list }} {{ people | selectattr('missing', 'defined') | list }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute='age') | map(attribute='name') | list }} {{ words | unique | list }} {{ l | unique | list }} {{ people | groupby('age') | map('first') | list }}
{{ l | length }} {{ 'Äß' | length }} {{ d | count }} {{ l | first }} {{ l | last }} {{ e | first }} {{ l | sum }} {{ people | sum(attribute='age') }} {{ l | max }} {{ l | min }} {{ words | max }} {{ e | max }} {{ [1.5, 1] | sum }} {{ l | sum(start=10) }}
{{ s | trim }}| {{ s | upper }} {{ s | lower }} {{ 'hello wORLD-foo bar' | title }} {{ 'hELLO' | capitalize }} {{ 'a' | center(6) }}| {{ s | replace('n', 'N', 1) }} {{ 'xxaxx' | trim('x') }} {{ 'straße ñ éa' | upper }} {{ 'ab' | reverse }} {{ l | reverse | list }}
{{ s | wordcount }} {{ 'abc' | list }} {{ 3.7 | int }} {{ '12' | int }} {{ 'z' | int }} {{ 'z' | int(5) }} {{ '0x1f' | int(base=16) }} {{ 'ff' | int(base=16) }} {{ '2.5' | float }} {{ '3.9' | int }} {{ 'z' | float }} {{ true | int }} {{ 1 | string ~ 2 }} {{ -3 | abs }} {{ -2.5 | abs }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 1234.5 | round(-2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ 42 | round }} {{ 1.25 | round(1) }}
{{ missing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none_ | default('d') }} {{ none_ | default('d', boolean=true) }} {{ missing | d }}| {{ missing.x | default('d') if no else 'ok' }}
{{ text | indent }} {{ text | indent(2, true) }} {{ text | indent(1, blank=true) }} {{ text | indent('> ') }}
{{ d | tojson }} {{ q | tojson }} {{ 'Ä🙂\u2028\x7f' | tojson }} {{ l | tojson(indent=2) }} {{ d | tojson(indent=4) }} {{ e | tojson(indent=2) }} {{ {} | tojson(indent=2) }} {{ 1.0 | tojson }} {{ none | tojson }} {{ {1: 2, 'a': [true]} | tojson }} {{ 1e20 | tojson }} {{ d | tojson(sort_keys=true) }}
{{ d | dictsort }} {{ d | dictsort(reverse=true) | map('first') | list }} {{ {'a': 2, 'b': 1} | dictsort(by='value') }} {{ {'b': 1, 'A': 2} | dictsort(case_sensitive=true) }} {{ d | items | list | length }}
{{ q | e }} {{ q | escape | length }} {{ '<b>' | safe }} {{ d | string }} {{ q | string }} {{ [q] }}
{{ l | batch(3) | list }} {{ l | batch(3, 0) | list }} {{ l | slice(3) | list }} {{ l | slice(3, 9) | list }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is number }} {{ x is float }} {{ n is integer }} {{ yes is boolean }} {{ yes is integer }} {{ s is string }} {{ l is sequence }} {{ s is iterable }} {{ n is iterable }} {{ d is mapping }} {{ none_ is none }} {{ n is not none }} {{ missing is defined }} {{ missing is undefined }} {{ missing is not defined }}
{{ 'ABC' is upper }} {{ 'abc' is lower }} {{ 'aB' is lower }} {{ n is eq 7 }} {{ n is ne 7 }} {{ n is gt 3 }} {{ n is le(7) }} {{ n is in [7] }} {{ n is sameas n }} {{ yes is true }} {{ 1 is true }} {{ no is false }} {{ range is callable }}
{{ ' ab '.strip() }}| {{ 'xxabxx'.strip('x') }} {{ '  a'.lstrip() }} {{ 'a  '.rstrip() }}| {{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a b  c '.split(none, 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ 'a\nb\r\nc\n'.splitlines() }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.find('c') }} {{ 'äbc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcb'.rfind('b') }} {{ 'aaa'.count('a') }} {{ 'aXa'.replace('X', '-') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '.') }} {{ ', '.join(['a', 'b']) }} {{ 'abc'.index('b') }}
{{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ "they're bill's".title() }} {{ 'aBC'.capitalize() }} {{ 'aB'.swapcase() }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ 'ab1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'ab'.islower() }} {{ 'AB1'.isupper() }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'ab'.partition('-') }}
{{ '7'.zfill(3) }} {{ '-7'.zfill(4) }} {{ 'a'.ljust(3, '.') }} {{ 'a'.rjust(3) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('bc') }} {{ l.count(3) }} {{ l.index(2) }} {{ 'ÄÖ'.lower() }} {{ 'äöéñ'.upper() }}
{% for i in l %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ ' first' if loop.first }}{{ ' last' if loop.last }} {{ loop.revindex0 }} {{ loop.previtem }} {{ loop.nextitem }}; {% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'äb' %}[{{ c }}]{% endfor %}{% for i in e %}x{% else %}none{% endfor %}{% for i in missing %}x{% else %}none{% endfor %}
{% for i in l if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}
{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}{% for i in [1, 2] %}{% for j in [1, 2] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }} {{ loop.depth }}{% endfor %}{% endfor %}
{% for i in [1, [2, [3]]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}@{{ loop.depth }}{% endif %}{% endfor %}
{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }} {% endfor %}{{ a }}{% if yes %}{% set a = 5 %}{% endif %}{{ a }}
{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{% set ns.c = 3 %}{{ ns.c }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = (1, 2) %}{{ c }}{% set t2 %}in {{ a }} {% endset %}[{{ t2 }}]{% set u | upper | trim %} up {% endset %}[{{ u }}]
{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='y') }}{{ m() }}{{ m(b=1, a=0) }}
{% macro outer() %}<{{ caller('z') }}>{% endmacro %}{% call(v) outer() %}v={{ v }}{% endcall %}{% macro fact(k) %}{{ 1 if k < 2 else k * (fact(k - 1) | int) }}{% endmacro %}{{ fact(5) }}
{% macro more(a) %}{{ a }}|{{ varargs | join(',') }}|{% for k, v in kwargs.items() %}{{ k }}={{ v }};{% endfor %}{% endmacro %}{{ more(1) }} {{ more(1, 2, 'x') }} {{ more(1, 2, b=3, c='d') }} {{ more(a=0, z=none) }}
{% macro only(a) %}{{ a }}{{ kwargs.get('b', 'none') }}{% endmacro %}{{ only(1, b=2) }}{{ only(b=[3], a=4) }}{{ only(5) }}
{% macro wrap(tag) %}{% macro inner() %}{{ varargs | list }}{% endmacro %}<{{ tag }}{{ inner(1, tag) }}>{{ caller(1, k=2) }}{% endmacro %}{% call(v) wrap('b') %}{{ v }}{{ kwargs }}{% endcall %}
{% macro late() %}{{ after }}{% endmacro %}{% set after = 'seen' %}{{ late() }}{% macro own() %}{% set n = 1 %}{{ n }}{% endmacro %}{{ own() }}{{ n }}
{% filter upper %}abc {{ n }}{% endfilter %}{% with a = 1, b = n %}{{ a + b }}{% endwith %}{% raw %}{{ not }}{% x %}{% endraw %}{% generation %}g{% endgeneration %}{# comment {{ #}
{%- if no %}a{% elif n == 7 %}b{% else %}c{% endif -%}   {{- ' x ' -}}   y {{ 'z' -}}  |
a {%- if yes -%}  b  {%- endif -%}  c {%+ if yes %} d{% endif +%} e
{{ dict(a=1, b=2) }} {{ range(3) | list }} {{ range(2, 4) | sum }} {{ namespace(a=1).a }} {{ dict({'a': 1}, b=2) }}
{{ "\t\"q\" \u00e4 \x41 \\ \d" }} {{ '\'' }} {{ {'a': {'b': {}}} }} {{ '}}' }} {{ "{% no %}" }} {{ ('a', ) }} {{ [1, 2,] }} {{ {'a': 1,} }}
{{ s | trim | replace('Ä', 'A') | lower | length + 1 }} {{ -l[0] | abs }} {{ (1, 2) | length }} {{ not yes | string }} {{ 'a' ~ 'b' | upper }} {{ 1 + 2 | string if no else 'k' }} {{ words | join('-') | length }}
{{ missing }} {{ missing | length }} {{ missing ~ 'x' }} {{ missing == none }} {{ missing is none }} {{ missing or 'z' }} {{ [missing] }} {{ none }} {{ none_ ~ '' }}
{{ missing.x }}
{{ missing + 1 }}
{{ 'a' + 1 }}
{{ 1 < 'a' }}
{{ n() }}
{{ missing() }}
{{ 1 / 0 }}
{{ raise_exception('no!') }}
{{ l.append(1) }}
{{ 'a' | nofilter }}
{{ 1 is notest }}
{% if %}
{% for i in l %}
{{ 1 + }}
{{ 'a }}
{% endif %}
{% set a.b = 1 %}
{{ [1, 2 }}
{% unknown %}
{{ n | int(1, 2, 3, 4) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1, b=2) }}
{{ d | join(',') }} {{ people | join(', ', attribute='name') }} {{ [1, none, 'a'] | join('|') }}
{% for i in [1,2] %}{% continue %}{% else %}E{% endfor %}
{% for i in [1,2] %}{% break %}{% else %}E{% endfor %}
{% for i in [1,2] %}{{ i }}{% break %}{% else %}E{% endfor %}
{% for i in [1,2] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% else %}E{% endfor %}
{% for i in [1,2] %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% else %}E{% endfor %}
{% for i in [1,2] if i > 5 %}{{ i }}{% else %}E{% endfor %}
{% for a in [1,2] %}{% for i in [] %}x{% else %}{% if a == 1 %}{% continue %}{% endif %}E{% endfor %}A{{ a }}{% endfor %}
{% for a in [1,2] %}{% for i in [] %}x{% else %}{% break %}{% endfor %}A{{ a }}{% endfor %}
{% for a in [1,2] %}{% set x %}{{ a }}{% break %}{% endset %}{{ x }}{% endfor %}
{% for a in [1,2] %}{% filter upper %}a{% if a == 1 %}{% continue %}{% endif %}{% endfilter %}{{ a }}{% endfor %}
{% for i in [1,[2,[]]] recursive %}{% if i is number %}{{ i }}{% else %}<{{ loop(i) }}>{% endif %}{% else %}E{% endfor %}
{% set ns = namespace(n=0) %}{% for i in [1,2,3,4] if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ i }}{% endfor %}
{% set ns = namespace(n=0) %}{% for i in [1,2,3,4] if ns.n < 2 %}{{ loop.last }}{% set ns.n = ns.n + 1 %}{{ i }}{% endfor %}
{% set ns = namespace(n=0) %}{% for i in [1,2,3,4] if ns.n < 2 %}{{ loop.length }}{% set ns.n = ns.n + 1 %}{{ i }}{{ loop.revindex }}{% endfor %}
{% for i in [1,2,3]|map('string') %}{{ loop.length }}{{ loop.index }}{{ loop.last }}{{ loop.nextitem }}{{ loop.previtem }}{% endfor %}
{% for i in [1,2,3] %}{{ loop }}{{ loop|length }}{{ loop is iterable }}{{ loop is callable }}{{ loop is mapping }}{{ loop is sequence }}{% endfor %}
{% for i in [1,2,3] %}{{ loop([1]) }}{% endfor %}
{% for i in [1,2,3] %}{{ loop.foo }}{{ loop['index'] }}{{ loop.cycle() }}{% endfor %}
{% for i in [1,2,2] %}{{ loop.changed(i, 1) }}{{ loop.changed() }}{% endfor %}
{% for i in none %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for a, b in [[1,2],'xy',{'k':1,'l':2}] %}{{ a }}{{ b }}{% endfor %}
{% for a, b in [[1]] %}{{ a }}{% endfor %}
{% for (a, b) in [[1,2]] %}{{ a }}{{ b }}{% endfor %}
{% for a, (b, c) in [[1,[2,3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for k, (b, c) in {'q':[1,2]}.items() %}{{ k }}{{ b }}{{ c }}{% endfor %}
{% set (a, b) = 1, 2 %}{{ a }}{{ b }}
{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}
{% set g = [1,2,3]|map('string') %}{{ g|first }}{{ g|list }}{{ g|list }}
{% set g = [1,2,3]|select %}{{ 2 in g }}{{ g|list }}
{% set g = [1,2,3]|reverse %}{{ 2 in g }}{{ g|list }}
{% set g = []|select %}{{ 'T' if g else 'F' }}{{ g is iterable }}{{ g is sequence }}{{ g is string }}
{% set g = [1,2]|select %}{% for i in g %}{{ i }}{% break %}{% endfor %}{{ g|list }}
{{ [1,2]|select|length }}
{{ [1,2]|map('nofilter') is defined }}
{{ [1,2]|map('nofilter')|list }}
{{ [1,2]|select('notest')|list }}
{{ []|map('nofilter')|list }}
{{ [1]|map|list }}
{{ none|map('upper')|list }}{{ 0|select|list }}{{ ''|reject('x')|list }}{{ none|selectattr('a')|list }}{{ missing|rejectattr('a','b')|list }}
{{ 5|map('upper')|list }}
{{ [1,2]|select|last }}
{{ [1,2]|select|tojson }}
{% macro f(a, b=2) %}{{ kwargs }}{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}{{ f.explicit_caller }}{{ f.defaults }}{{ f }}{{ [f] }}
{% macro f() %}{{ caller() }}{% endmacro %}{{ f.caller }}{{ f }}{{ f() }}
{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}
{% macro f() %}{{ caller }}|{{ caller.name }}{{ caller.arguments }}{% endmacro %}{% call(x) f() %}a{% endcall %}
{% macro f() %}x{% endmacro %}{% call f() %}a{% endcall %}
{% macro f() %}{{ kwargs }}{% endmacro %}{% call f() %}a{% endcall %}
{% macro f(caller) %}{{ caller() }}{% endmacro %}{% call f() %}a{% endcall %}
{% macro f(caller=none) %}{{ caller }}{{ f.explicit_caller }}{% endmacro %}{{ f() }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, b=2) }}{{ f() }}
{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1,2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(a=1, a=2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(*[1]) }}{{ f(**{'a': 3}) }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(0, *[1,2], x=1, **{'y': 3}) }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(x=1, **{'x': 3}) }}
{{ [1.234]|map('round', 1)|list }}{{ dict(**{'a': 1}) }}{{ 'a-b'.split(*['-']) }}
{{ range(3) }}{{ range(1,3) }}{{ range(0,9,2) }}{{ range(9)[2:7:2] }}{{ range(9)[::-1] }}{{ range(3) == range(0,3) }}{{ range(3).stop }}{{ range(5).index(3) }}{{ range(3)|tojson }}
{{ range(3) }}{{ range(1,3) }}{{ range(0,9,2) }}{{ range(9)[2:7:2] }}{{ range(9)[::-1] }}{{ range(3) == range(0,3) }}{{ range(3).stop }}{{ range(5).index(3) }}{{ [range(2)] }}{{ range(3)[-1] }}{{ range(2)|length }}{{ range(0)|list }}{{ range(3) is sequence }}
{{ d.keys() }}{{ d.values() }}{{ d.items() }}{{ {}.keys() }}{{ d.keys()|length }}{{ d.keys()|first }}{{ d.keys()|last }}{{ 'b' in d.keys() }}{{ d.keys()[0] }}{{ d.keys() == d.keys() }}{{ d.values() == d.values() }}{{ d.items() is sequence }}{{ d.keys()|sort }}{{ d.items()|sort(attribute=0) }}
{{ d.keys()|tojson }}
{{ d.keys() + [1] }}
{{ '\u200d' }}{{ ['\u200d', '\xa0', 'é', '\x85', '\ue000', '\U0001f600', '\u0378', '\u2028', '\x7f', '\u3000', '\xad'] }}
{{ namespace(a=1, b=namespace()) }}{{ namespace({'z': 1}, y=2) }}{{ namespace([('a', 1)]).a }}
{{ namespace(_a=1) }}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set ns = namespace(b=1) %}{% set ns.a = 2 %}{% set ns.b = 3 %}{{ ns }}{{ ns['a'] }}{{ ns is mapping }}{{ ns is iterable }}{{ ns is callable }}{{ ns == ns }}{{ namespace() == namespace() }}
{{ people|groupby('age') }}
{% for g in people|groupby('age') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }}{{ g.index(25) if g.grouper == 25 }};{% endfor %}
{% for k, l in ['a','B','A','b']|map('string')|list|groupby(0) %}{{ k }}{{ l }}{% endfor %}
{{ [{'k':'X'},{'k':'x'},{'k':'a'}]|groupby('k') }}
{{ [{'k':'X'},{'k':'x'},{'k':'a'}]|groupby('k', case_sensitive=true) }}
{{ [{'k':'X'},{'j':'x'},{'k':'a'}]|groupby('k', default='zz') }}
{{ [{'k':'X'},{'j':'x'},{'k':'a'}]|groupby('k') }}
{{ people|groupby('of.k', default=0)|map(attribute='grouper')|list }}
{{ people|groupby('age')|map('first')|list }}{{ people|groupby('age')|tojson }}{{ (people|groupby('age')|first) + (1,) }}
{{ people|sort(attribute='age,name')|map(attribute='name')|list }}{{ people|sort(attribute='age,of.k', reverse=true)|map(attribute='name')|list }}
{{ 'abc'.startswith('b', 1) }}{{ 'abc'.startswith('b', 1, 1) }}{{ 'abc'.endswith('b', 0, 2) }}{{ 'abc'.endswith('c', -1) }}{{ 'abc'.startswith('', 5) }}{{ 'abc'.startswith('', 3) }}{{ 'äbc'.startswith('b', 1) }}{{ 'abc'.startswith(('x','b'), 1) }}{{ 'abc'.startswith('a', none, 1) }}
{{ 'abcabc'.find('b', 2) }}{{ 'abcabc'.rfind('b', 0, 3) }}{{ 'abcabc'.index('a', 1) }}{{ 'abcabc'.rindex('a') }}{{ 'aaaa'.count('a', 1, 3) }}{{ 'abc'.find('', 3) }}{{ 'abc'.find('', 4) }}{{ 'abc'.rfind('') }}{{ 'abc'.count('', 1) }}{{ 'abc'.find('c', -1) }}
{{ 'abc'.find(1) }}
{{ 'abc'.replace('a', 1) }}
{{ 'a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\r\nj\rk\n'.splitlines() }}{{ 'a\n\nb'.splitlines(true) }}{{ ''.splitlines() }}{{ 'a\x1fb'.splitlines() }}
{{ 'a\x0bb\r\nc\n\nd'|indent(2) }}|{{ 'a\r\nb\n'|indent(1, true, true) }}|{{ 'a'|indent(-3) }}{{ ''|indent(2, true) }}
{{ 'ΟΔΟΣ'|lower }}{{ 'ΟΔΟΣ ΣΑΣ. Σ Σ\u0301 ΑΣ\u0301'|lower }}{{ 'ΑΣ'.title() }}{{ 'αΣ'|capitalize }}{{ 'ﬁne ßa ŉa ᾳb'|upper }}{{ 'ﬁne ßa ŉa ᾳb ǆ İ'|title }}{{ 'ﬁne ßa ŉa ᾳb ǆ İ'.title() }}{{ 'ﬁne'|capitalize }}{{ 'ǆx'|capitalize }}{{ 'İ'.lower() }}{{ 'ßﬀ'.casefold() }}{{ 'aßÉǅ'.swapcase() }}
{{ 1234|round(-2) }}{{ 1250|round(-2) }}{{ 1350|round(-2) }}{{ -1250|round(-2) }}{{ 1234.5|round(-2) }}{{ 55.0|round(-2) }}{{ 50.0|round(-2) }}{{ 50.1|round(-2) }}{{ 5.015|round(2) }}{{ 1e22|round(3) }}{{ 0.5|round }}{{ 1.5|round }}{{ -0.4|round }}{{ true|round }}{{ 7|round(1, 'floor') }}{{ 7.77|round(1, 'ceil') }}{{ 1e-9|round(3) }}{{ 123.456|round(-5) }}{{ 2.5|round(none) }}
{{ '٣'|int }}{{ '1_0'|int }}{{ '_1'|int }}{{ '1__0'|int }}{{ ' 5 '|int }}{{ '- 5'|int }}{{ '+5'|int }}{{ '-٣٤'|int }}{{ '0x1f'|int(0, 16) }}{{ '0x1f'|int }}{{ '0b11'|int(base=0) }}{{ '012'|int(base=0) }}{{ '012'|int }}{{ 'z'|int(1, 36) }}{{ '1e3'|int }}{{ 'inf'|int(9) }}{{ 'nan'|int(9) }}{{ '1.9_1'|int }}{{ ''|int }}{{ [1]|int(4) }}{{ none|int }}{{ '5'|int(0, 1) }}
{{ '٣.٥'|float }}{{ '1_0.0'|float }}{{ '1_.0'|float }}{{ 'inf'|float }}{{ '-Infinity'|float }}{{ 'nan'|float }}{{ '1e400'|float }}{{ '1e-400'|float }}{{ '.5'|float }}{{ '5.'|float }}{{ '+5'|float }}{{ '+-5'|float }}{{ '0x10'|float }}{{ 'nan(1)'|float }}{{ ''|float(3) }}{{ '\u00a05'|float }}
{{ missing|int }}
{{ missing|float }}
{{ "it's a-b c_d é1 ½"|wordcount }}
{{ [1,2]|join(none) }}{{ [1,2]|join(3) }}{{ {'a':1}|join('-') }}
{{ {'a':1}|attr('a') }}{{ {'a':1}|attr('zz') }}
{{ [1,2,3,4]|slice(2, 'x')|list }}{{ [1,2,3]|slice(-1)|list }}
{{ (1,2)*2 }}{{ 1.0//0.1 }}{{ -6.0 % 3 }}{{ 6.0 % -3 }}{{ -0.0 // 1 }}{{ 5 // -2 }}{{ 5 % -2 }}{{ 7.5 // 2 }}{{ true + true }}{{ -true }}{{ 2 ** -1 }}
{{ 0 ** -1 }}
{{ 10.0 ** 400 }}
{{ -9223372036854775807 - 1 }}{{ 9223372036854775807 }}
{{ [1, none] < [1, none] }}{{ [1, 'a'] < [2, 1] }}{{ 'nan'|float <= 1 }}{{ 'nan'|float >= 1 }}
{{ none < none }}
{{ {[1]: 2} }}
{{ [1] in {} }}
{{ [[1]]|unique|list }}
{{ d.update }}|{{ l.append }}|{{ l.append is defined }}{{ l.append is callable }}
{{ d.pop('b') }}
{{ l.copy() }}{{ d.copy() == d }}
{{ 'a'.center(5, '*') }}{{ 'ab'.center(5) }}{{ 'a\tb'.expandtabs() }}{{ 'a\tb'.expandtabs(2) }}{{ 'Ab Cd'.istitle() }}{{ 'abc'.isascii() }}{{ 'a\u200d'.isprintable() }}{{ '²'.isdigit() }}{{ '²'.isdecimal() }}{{ '½三'.isnumeric() }}{{ '٣'.isdecimal() }}{{ 'ªa'.islower() }}{{ 'ǅ'.isupper() }}{{ 'a'.zfill(3) }}{{ ''.zfill(2) }}
{{ missing is callable }}{{ 2.0 is even }}{{ 3.5 is odd }}{{ true is odd }}{{ 'upper' is filter }}{{ 'x' is filter }}{{ 'even' is test }}{{ 'urlize' is filter }}{{ 'escaped' is test }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.pos }}{{ c.current }}
{% set j = joiner('; ') %}{% for i in [1,2,3] %}{{ j() }}{{ i }}{% endfor %}{% set k = joiner() %}{{ k() }}{{ k() }}
{{ {'a':1,'b':[1,{'c':2}]}|tojson(indent='\t') }}{{ [1,2]|tojson(separators=(',', ':')) }}{{ 'é🙂\x7f'|tojson(ensure_ascii=true) }}{{ [1,[2]]|tojson(indent=0) }}{{ {'b':1,'a':2}|tojson(sort_keys=true, indent=1) }}{{ [1]|tojson(indent=2, separators=(';', '=')) }}
{{ {(1,2): 3}|tojson }}
{{ 'nan'|float|tojson }}{{ 'inf'|float|tojson }}{{ {1.5: 1, true: 2, none: 3}|tojson }}
{{ missing|tojson }}
{{ l[] }}
{{ l['x':] }}
{{ missing[:1] }}
{{ d[1:2] }}
{{ l[true] }}{{ l[1.0] }}|{{ d[[1]] }}|{{ l['0'] }}|{{ l['append'] is defined }}{{ d['keys'] is callable }}{{ 'abc'[1] }}
{{ 012 }}
{% if yes if no else 1 %}a{% endif %}
{{ 'a' is in 'abc' }}{{ 1 is not in [2] }}{{ not 1 is in [2] }}
{{ 1 if false else 2 if false }}|{{ (1,) }}{{ () }}{{ (1) }}
{{ 'a' 'b' ~ 'c' }}{{ 1 ~ 2 + 3 }}{{ 2 ** 3 ** 2 }}{{ 10 - 2 - 3 }}{{ 1 + 2 ~ 3 * 2 }}
{% with a=1, b=a %}{{ a }}{{ b }}{% endwith %}{% set a = 4 %}{% with a=1, b=a %}{{ a }}{{ b }}{% endwith %}
{% set x = 1 %}{% for i in [1] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}
{% set x %}a{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}
{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}{{ y }}
{% filter upper|replace('A', 'b') %}{% set y = 1 %}a{{ y }}{% endfilter %}{{ y }}
{%- set a = 1 -%} x {%- if a -%} y {%- else -%} z {%- endif -%} w
{{ a }}  {#- c -#}  b {{- 'x' }} {%- raw -%}  {{ y }}  {%- endraw -%}  z
{{ '\x4' }}
{{ raise_exception() }}
{{ [] is sameas [] }}{{ none is sameas none }}{{ 1 is sameas true }}
{{ dict([['a', 1]], b=2) }}{{ dict() }}
{{ {'a': 1, 'a': 2} }}{{ {1: 'x', true: 'y'} }}
{{ [1,2,3]|sum(start=1.5) }}{{ [[1],[2]]|sum(start=[]) }}{{ [(1,),(2,)]|sum(start=()) }}{{ people|sum(attribute='of.k') }}
{{ ['a','b']|sum(start='') }}
{{ ['b','A']|min }}{{ ['b','A']|max(case_sensitive=true) }}{{ people|max(attribute='age')|attr('keys') is callable }}{{ [1,none]|first }}
{{ 'abc'|first }}{{ 'abc'|last }}{{ {}|first is defined }}{{ {'a':1}|last }}{{ 'abc'|reverse }}{{ {'a':1,'b':2}|reverse|list }}{{ 'cab'|sort }}{{ 'aAb'|unique|list }}{{ 'abc'|batch(2)|list }}
{{ d|items|list|length }}{{ missing|items|list }}{{ {'b':1}|dictsort|first }}{{ {'a': 'B', 'c': 'a'}|dictsort(false, 'value') }}
{{ 'x'|default(boolean=true) }}{{ ''|d('y', true) }}{{ missing|default }}|{{ none|default('n') }}{{ false|default('f', true) }}
{{ 'é'|e }}{{ '<a href="x">\'&'|escape }}{{ none|e }}{{ missing|e }}{{ 5|safe }}
{% for k, v in d|dictsort %}{{ k }}{% endfor %}{% for k, v in d|items %}{{ k }}{% endfor %}
{{ 'a,b'.split(',', maxsplit=0) }}{{ 'a  b'.split(' ') }}{{ ' '.split() }}{{ ''.split() }}{{ ''.split(',') }}{{ 'abab'.split('b', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'x'.split('') if false }}{{ '\u00a0a\u2003b'.split() }}
{{ 'a'.join('xyz') }}{{ ','.join({'a':1}) }}{{ 'x'.partition('') }}
{{ 'a b'.title() }}{{ "l'été n2x"|title }}{{ 'foo-bar (baz [qux'|title }}{{ 'a\u00a0b'|title }}
{{ 'aa'.strip('') }}{{ 'aa'.strip(none) }}{{ '\u200bx'.strip() == 'x' }}{{ 'xaxy'.rstrip('xy') }}
{% set ns = namespace(x=[]) %}{% for i in range(400) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|length }}
{%set x=1%}{{x}}
{{ '{{' }}{% raw %}{% if %}{{ {% endraw %}
{% raw %}a{%- endraw %}b
{%- raw %} a {% endraw -%} b
a {%+ raw %} b {%+ endraw %} c
""".strip("\n").split("\n") + [
    "{% if yes %}\n  a\n{% endif %}\n  {% set z = 1 %}\n  b {{ z }}\n",
    "x\n   {# c #}\n y {# d #}\nz\n\n",
    "  {% for i in l %}\n    {{ i }}\n  {% endfor %}\nend",
    "a\r\nb\r\n{% if yes %}\r\nc{% endif %}\r\n",
    "{{ 'a' }}\n{{ 'b' }}\n",
    "{% if yes -%}\n\n  a\n  {%- endif %}\n\nb",
    "  {%+ if yes %}a{% endif %}\n\t{% if yes %}b{% endif %}",
    "{%- for m in people -%}\n{{- m.name }}\n{%- if not loop.last %},{% endif %}\n{%- endfor %}",
    "  {% raw %}\n {{ x }}\n  {% endraw %}\n.",
    "{{- 'a' -}}\n\n{#- c -#}\n\n b",
    "{% set x = 'a\nb' %}{{ x }}",
    "\n{% macro m() %}\n a\n{% endmacro %}\n{{ m() }}\n",
    "a\u00a0{%- if yes %}b{% endif -%}\u2003c",
    "\u00a0{% if yes %}\nb{% endif %}",
    "x\n \u000b {% if yes %}b{% endif %}",
    "  {{- 1 }}\n\n{{ 2 -}}\n\n3",
    "a\n  {#- x #}\n  b",
    "  {%- if yes +%}\nx\n{%+ endif -%}\n y",
    "{% if yes %}  \nx{% endif %}",
    "\t{% raw %}\n a{% endraw %}\n\n",
    "a\n\n",
    "a\r\n\r\nb\rc",
    "{{\u00a0x }}",
    "{% if yes %}\n\n{% endif %}\n\nq",
    "{{ 'a' }}\n\n  {% if no %}\n x\n  {% endif %}\n z\n",
    "{#\n#}\n\nx",
    "{% for i in l -%}\n {{ i }}\n{%- endfor %}\n",
    "   {%+ raw %} b {%+ endraw +%}\n c",
]


def rendered(template, messages=(), tools=None, documents=None, **variables):
    """The text, or none where transformers refuses."""
    try:
        texts, _ = render_jinja_template([list(messages)], tools=tools, documents=documents, chat_template=template, **variables)
        return texts[0]
    except Exception as error:
        print(f"refused: {template[:40]!r}: {type(error).__name__}: {error}")
        return None


def main():
    target = pathlib.Path(sys.argv[1])
    cases = []
    for file in sorted(target.glob("*.jinja")):
        for name, given in CONVERSATIONS.items():
            given = {"add_generation_prompt": True, **given}
            cases.append({"template": file.name, "conversation": name,
                          "text": rendered(file.read_text(), **given, **TOKENS)})
    (target / "conversations.json").write_text(json.dumps(
        {"special_tokens": TOKENS, "conversations": CONVERSATIONS, "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")
    cases = [{"template": t, "text": rendered(t, **VARIABLES)} for t in LANGUAGE]
    (target / "language.json").write_text(json.dumps({"variables": VARIABLES, "cases": cases}, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
