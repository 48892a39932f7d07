#!/usr/bin/env python3
"""Writes tokenizer_cases.jsonl: small tokenizers, one per feature, with what Hugging Face's `tokenizers` does with them.

    pip install tokenizers==0.23.3 && python3 tokenizer_cases.py > tokenizer_cases.jsonl
"""
import json

from tokenizers import Tokenizer

CHARS = list(dict.fromkeys("▁Ġ abcdefghijklmnopqrstuvwxyzABCDEST0123456789.,!?'-_<>/\n\t\r\u00e9e\u0301\u00a0\u3000²Ⅷ१漢字ßſ‿—$+"))


def model(merges=(("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("▁", "a"), ("a", "b"), ("ab", "c"), ("Ġ", "a")),
          extra=(), **options):
    vocab = {}
    for token in ["<unk>", *extra, *CHARS, *[a + b.removeprefix(options.get("continuing_subword_prefix") or "") for a, b in merges]]:
        vocab.setdefault(token, len(vocab))
    base = dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None,
                fuse_unk=False, byte_fallback=False, ignore_merges=False, vocab=vocab, merges=[list(m) for m in merges])
    return {**base, **options}


def added(content, **flags):
    return dict(dict(id=0, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False), **flags)


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


BYTES = [f"<0x{b:02X}>" for b in range(256)]
LEVEL = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
WORDS = ["hello abc", "  he's  a\n\nbc 1234! ", "caf\u00e9 cafe\u0301 漢字!²Ⅷ१", "a-b--c-", ""]


def split(regex, behavior="Isolated", invert=False):
    return dict(type="Split", pattern={"Regex": regex}, behavior=behavior, invert=invert)


def literal(text, behavior="Isolated", invert=False):
    return dict(type="Split", pattern={"String": text}, behavior=behavior, invert=invert)


def template(*pieces):
    single = [{"Sequence": {"id": "A", "type_id": 0}} if p == "$A" else {"SpecialToken": {"id": p, "type_id": 0}} for p in pieces]
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]
    return dict(type="TemplateProcessing", single=single, pair=pair,
                special_tokens={t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("<unk>", 0), ("<s>", 1))})


CASES = []


def case(name, texts=WORDS, **parts):
    CASES.append((name, texts, parts))


for form in ("NFC", "NFD", "NFKC", "NFKD"):
    case("normalizer " + form, ["\u00e9 e\u0301 \uff41 ﬁ \u1e9b\u0323 ①", "한 \u1112\u1161\u11ab", "a\u0301\u0323 a\u0323\u0301"], normalizer=dict(type=form))
case("normalizer Lowercase", ["ABC İ Σ ß"], normalizer=dict(type="Lowercase"))
case("normalizer StripAccents", ["e\u0301 \u00e9", "\u0301a"], normalizer=sequence("normalizers", dict(type="NFD"), dict(type="StripAccents")))
for left in (True, False):
    case(f"normalizer Strip {left}", ["  a b \u3000", " \n "], normalizer=dict(type="Strip", strip_left=left, strip_right=not left))
case("normalizer Replace string", ["a b  c"], normalizer=dict(type="Replace", pattern={"String": " "}, content="▁"))
case("normalizer Replace regex", ["a   b c"], normalizer=dict(type="Replace", pattern={"Regex": " {2,}"}, content="-"))
case("normalizer Replace empty matches", ["baac"], normalizer=dict(type="Replace", pattern={"Regex": "a*"}, content="-"))
case("normalizer ByteLevel", ["a \u00e9"], normalizer=dict(type="ByteLevel"))

for space in (True, False):
    for regex in (True, False):
        case(f"pre ByteLevel {space} {regex}", pre_tokenizer={**LEVEL, "add_prefix_space": space, "use_regex": regex}, decoder=LEVEL)
for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
    for invert in (False, True):
        case(f"pre Split {behavior} {invert}", ["--a-b--c-", "abc", "-"], pre_tokenizer=split("-", behavior, invert),
             model=model(merges=[("-", "a"), ("b", "-"), ("-", "-"), ("a", "-"), ("c", "-"), ("-", "c")]))
case("pre Split string", ["a--b.c"], pre_tokenizer=literal(".", "Removed"))
case("pre Split empty string", ["hello"], pre_tokenizer=literal(""))
case("pre Split GPT-2", pre_tokenizer=split(GPT2))
case("pre Split Llama 3", [*WORDS, "'S 'RE \r\n\r\n x", "12345678"], pre_tokenizer=sequence("pretokenizers", split(LLAMA3), {**LEVEL, "use_regex": False}))
for regex in (r"\w+", r"[^\w\s]", r"\W+", r"[^\W\d]+", r"\s", r"[\s_]+", r"\d{2}+", r"[a-z&&[^b]]+", r"[^a-c&&[\p{L}]]", r"\p{Han}+", r"\b",
              r"\B", r"a*", r"(?<=a)b", r"(?i)S", r"(?m).+", r".+", r"^a", r"c$", r"[[:alpha:]]+", r"[[:punct:]]", r"[[:^space:]]+",
              r"\h+", r"[^\S\n]", r"(?:a|b)++", r"\p{^L}+", r"[^\P{L}]", r"\R", r".\z", r".\Z", r"\x{e9}|\u0301", r"[]ab]+", r"[[ab]c]+"):
    case("pre Split Oniguruma " + regex, ["abc ABs_²1 é\u0301 漢字ſ\nab\r\nc—$+", "a\u200db\u180ec \u0085"], normalizer=None,
         pre_tokenizer=split(regex, "Removed"))
for kind in ("Whitespace", "WhitespaceSplit", "Punctuation", "BertPreTokenizer"):
    case("pre " + kind, ["Hey, you_a! don't 1²\u200d \u3000a\u00a0b$+c"], pre_tokenizer=dict(type=kind))
case("pre Punctuation MergedWithPrevious", ["a, b!c"], pre_tokenizer=dict(type="Punctuation", behavior="MergedWithPrevious"))
case("pre CharDelimiterSplit", ["a-b--c"], pre_tokenizer=dict(type="CharDelimiterSplit", delimiter="-"))
for individual in (True, False):
    case(f"pre Digits {individual}", ["a12²Ⅷ१b"], pre_tokenizer=dict(type="Digits", individual_digits=individual))
for scheme in ("always", "first", "never"):
    for cut in (True, False):
        meta = dict(type="Metaspace", replacement="▁", prepend_scheme=scheme, split=cut)
        case(f"Metaspace {scheme} {cut}", ["abc  a", " abc", "▁a", "<s>abc <s> a"], pre_tokenizer=meta, decoder=meta, added_tokens=[added("<s>")])
meta = dict(type="Metaspace", replacement="▁", prepend_scheme="first", split=True)
case("Metaspace first after Strip", [" abc", "abc"], normalizer=dict(type="Strip", strip_left=True, strip_right=True), pre_tokenizer=meta)

llama = dict(normalizer=sequence("normalizers", dict(type="Prepend", prepend="▁"), dict(type="Replace", pattern={"String": " "}, content="▁")),
             decoder=sequence("decoders", dict(type="Replace", pattern={"String": "▁"}, content=" "), dict(type="ByteFallback"), dict(type="Fuse"),
                              dict(type="Strip", content=" ", start=1, stop=0)))
case("Llama", ["abc a", "한 \x00", "<s>abc<s> a", "\U0001f600abc"], added_tokens=[added("<s>", special=True)],
     model=model(extra=BYTES, byte_fallback=True, fuse_unk=True), post_processor=template("<s>", "$A"), **llama)
case("byte fallback with gaps", ["한a\U0001f600b", "aѫb"], model=model(extra=BYTES[:0xF0], byte_fallback=True), decoder=dict(type="ByteFallback"))
case("fuse_unk", ["aѫѫbѫ"], model=model(fuse_unk=True))
case("no unk_token", ["aѫѫb"], model=model(unk_token=None))
case("ignore_merges", ["abc", "hello"], model=model(merges=[("a", "b"), ("b", "c"), ("a", "bc")], extra=["hello"], ignore_merges=True))
case("merge ranks", ["abcabcab", "aaaaa"], model=model(merges=[("b", "c"), ("a", "b"), ("ab", "c"), ("a", "a"), ("aa", "a")]))
case("subword prefix", ["abcab ba"], pre_tokenizer=dict(type="WhitespaceSplit"),
     model=model(merges=[("a", "##b"), ("ab", "##c")], extra=["##a", "##b", "##c"], continuing_subword_prefix="##"))
case("word suffix", ["ab bab a"], pre_tokenizer=dict(type="WhitespaceSplit"), decoder=dict(type="BPEDecoder", suffix="</w>"),
     model=model(merges=[("a", "b</w>"), ("b", "ab</w>")], extra=["a</w>", "b</w>"], end_of_word_suffix="</w>"))

tok = ["ab ab, zab ab_ ab", "a  <s>  b", "<s><s>", "abcd", "AB ab"]
case("added plain", tok, added_tokens=[added("<s>"), added("ab"), added("abc")])
case("added single_word", [*tok, "ab\u0301 ²ab ‿ab"], added_tokens=[added("ab", single_word=True)])
case("added lstrip", tok, added_tokens=[added("<s>", lstrip=True)])
case("added rstrip", [*tok, "a<s> bc"], added_tokens=[added("<s>", rstrip=True), added(" b")])
case("added both strips", [*tok, "a <s> <s> b"], added_tokens=[added("<s>", lstrip=True, rstrip=True)])
case("added normalized", tok, added_tokens=[added("AB", normalized=True), added("<s>", special=True)], normalizer=dict(type="Lowercase"), decoder=dict(type="Fuse"))
case("added normalized special", ["a<s>b<s>"], added_tokens=[added("<s>", normalized=True, special=True)], normalizer=dict(type="Replace", pattern={"String": "s"}, content="t"), decoder=dict(type="Fuse"))
case("added special", tok, added_tokens=[added("<s>", special=True), added("ab")], decoder=dict(type="Fuse"))
case("post Template", ["a"], post_processor=template("<s>", "$A", "<unk>", "<s>"), model=model(extra=["<s>"]))
case("post Roberta", ["a"], post_processor=dict(type="RobertaProcessing", sep=["<unk>", 0], cls=["<s>", 1], trim_offsets=True, add_prefix_space=False), model=model(extra=["<s>"]))
case("post Sequence", ["a"], post_processor=sequence("processors", {**LEVEL}, template("<s>", "$A")), model=model(extra=["<s>"]))
case("decoder Strip", ["aabaa", "a"], decoder=dict(type="Strip", content="a", start=1, stop=0))
case("decoder Replace", ["a b"], decoder=sequence("decoders", dict(type="Replace", pattern={"Regex": "[ab]"}, content="x"), dict(type="Fuse")))
case("decoder none", ["abc de"])
case("decoder ByteLevel of other characters", ["a漢 b"], pre_tokenizer=None, decoder=LEVEL)

for name, texts, parts in CASES:
    tokenizer = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None, pre_tokenizer=None,
                     post_processor=None, decoder=None, model=model())
    tokenizer.update(parts)
    reference = Tokenizer.from_str(json.dumps(tokenizer))
    for token in tokenizer["added_tokens"]:
        token["id"] = reference.token_to_id(token["content"])
    rows = []
    for text in texts:
        ids = reference.encode(text, add_special_tokens=False).ids
        around = reference.encode(text).ids
        rows.append(dict(text=text, ids=ids, decoded=reference.decode(ids, skip_special_tokens=False), with_special=around,
                         without_special=reference.decode(around, skip_special_tokens=True)))
    print(json.dumps(dict(case=name, tokenizer=tokenizer, vocab_size=reference.get_vocab_size(), rows=rows), ensure_ascii=False, separators=(",", ":")))
