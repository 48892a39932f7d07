#!/usr/bin/env python3
"""Writes tests/reference/tokenizers: small tokenizers of every kind that Sator reads beside byte-level BPE, trained on the
repository's own texts, and what the packages that define them make of hostile texts.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 tiktoken==0.14.0 && python3 tools/make_tokenizer_references.py

One folder each (a tokenizer.json, a tokenizer.model or a file of ranks), texts.json, and NAME.jsonl with [ids, decoded text]
of each text. The table of replacements in two of them is small and made here: SentencePiece's own has 240 kB.
"""
import base64
import io
import json
import pathlib
import sys

import sentencepiece
import tiktoken
import tiktoken._educational
import tiktoken_ext.openai_public as openai
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/reference/tokenizers"
EXTRA = ("Größe façade naïve Ærøskøbing Привет мир καλημέρα κόσμε שלום مرحبا 你好世界 こんにちは 안녕하세요 นี่คือ हिन्दी 123 4567 3.14 "
         "def f(x):\n\treturn x**2  # done\n")

TEXTS = [
    "", " ", "  ", "\n", "\t", "\r\n", "a", " a", "a ", "  a  b  ", "Once upon a time", "Hello, world! It's 3.14; he's we'll I'M",
    "don't do not ' quoted ' can n't", "x" * 130, "a" * 40 + " " * 40 + "b", " " * 64, "\n" * 33, "\u00a0\u2003\u3000\u2009x\u00a0y",
    "caf\u00e9 cafe\u0301 \u00c5 A\u030a \u212b", "\u1e9b\u0323 \ufb01 \ufb03 \u2460 \u00b2 \u00bd \u2126", "\uff21\uff22\uff23\uff11\uff12 \uff5e\uff01",
    "\u0130stanbul I\u0307 \u00df \u1e9e \u017f \u03a3\u03c2", "e\u0301\u0301\u0301\u0301 z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8\u3067\u3059", "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\u3400\u4dbf\U00020000\U0002a6df\U0002f800\uf900",
    "\u0e19\u0e35\u0e48\u0e04\u0e37\u0e2d", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0915\u094d\u0937", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u0645\u0631\u062d\u0628\u0627 \u0640\u0640", "\u1019\u103c\u1014\u103a\u1019\u102c",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1ec", "\u2764\ufe0f \u0031\ufe0f\u20e3",
    "\x00", "a\x00b", "\x01\x02\x07\x08\x0b\x0c\x0e\x1f\x7f", "\u0080\u0085\u008f\u009f\u00ad", "\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2060\ufeff",
    "\ufffd", "a\ufffd\ufffdb", "\ufffe\uffff\U0010ffff", "\ue000\U000f0000", "\u0378\u0e00", "\u202eabc\u202c", "\u2581", "\u2581a\u2581\u2581b", " \u2581 a", "a\u2581",
    "<unk>", "<s>", "</s>", "a<s>b", "<s> a </s>", "<unk><unk> x", "[UNK]", "[CLS] a [SEP]", "<0x41>", "<0x0A> <0xFF>", "<|endoftext|>", "<|im_start|>user\nHi<|im_end|>",
    "<sep>", "a<sep>b <sep> c", "<sepp><se", "NEWS", "xNEWSy NEW NEWSNEWS", "[MASK]the[MASK]", "th[MASK", "##a ## b##", "a##b",
    "the the the the", "THE The tHE", "unbelievable misunderstanding", "counterrevolutionaries", "antidisestablishmentarianism" * 3,
    "1234567890", "1,234,567.89", "0xDEADBEEF", "12 345 6789 01234", "\u0661\u0662\u0663 \u096a\u096b \u2167 \u00b2\u00b3", "3\u2044 4", "$100 \u20ac50 \u00a32",
    "def f(x):\n\treturn x**2  # done\n", "    indented\n        more\n", "a\r\nb\rc\n\nd", "if(a&&b||!c){d+=e[f];}", "C:\\path\\file.txt", "http://a.b/c?d=e&f=%20#g", "a_b-c.d/e", "--- *** ___ ...",
    "'s 't 're 'S 'T 'RE \u2019s", "he's 'twas o'clock", "''''", "\"quoted\" \u201ccurly\u201d \u00abguillemets\u00bb", "!?.,;:", "\u3001\u3002\uff1f\uff01", "(a) [b] {c} <d>",
    "a\u0300", "\u0300a", "\u0300", " \u0300", "a \u0300b", "\u200da", "\u0e33\u0e4d", "\uac00\u11a8", "\u1100\u1161\u11a8", "\r\u0301\n", "\u0600\u0601a",
    "\ufdfa \u3300 \u33ff", "\u00aa\u00ba\u00b5", "\u2026 \u2025", "\u2474\u3220", "\uff76\uff9e \u30ab\u3099", "\u0385 \u1fee \u00a8\u0301", "\ufb2a \ufb1d", "\u0958 \u0dda", "\U0001d400\U0001d7d8 \U0001f100",
    "The quick brown fox jumps over the lazy dog. " * 3, "It was a dark and stormy night;\nthe rain fell in torrents.\n\n",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1", "mixed \u0442\u0435xt \u4e2d\u6587and\u65e5\u672c", "\u00e9" * 30, "\U0001f600" * 12, "\u4e00" * 25, "ab" * 60, " a" * 30, "\t \t \n \t",
    "wordwithnospaceatallbutquitelong" * 4, "a  b   c    d     e", "trailing   ", "   leading", "\n\n  \n\n", "end.\n",
]

# Rules of the small table: like nmt_nfkc's, among them removals, spaces, results of several characters, sources of several.
RULES = {"\ufb01": "fi", "\ufb03": "ffi", "\u3000": " ", "\u00a0": " ", "\u2003": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": " ", "\u200d": "", "\u0001": "", "\u007f": "",
         "\u00b2": "2", "\u2460": "1", "\u00bd": "1\u20442", "\u2126": "\u03a9", "\u212b": "\u00c5", "A\u030a": "\u00c5", "e\u0301": "\u00e9", "\u00a8": " \u0308", "\uff76\uff9e": "\u30ac",
         "\u30ab\u3099": "\u30ac", "\u1112\u1161\u11ab": "\ud55c", "\u1112\u1161": "\ud558", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647", "\u2026": "...", "\ufeff": " ",
         "e\u0301\u0301": "\u00e9\u0301", "\u0300": "", "\u2581": " ", "\u0085": " "}
RULES.update({chr(c): chr(c - 0xfee0) for c in range(0xff01, 0xff5f)})


def corpus():
    text = (ROOT / "examples/gpt2-stories/validation.txt").read_text()[:200_000] + "\n" + EXTRA * 3
    return [line.strip() for line in text.split("\n") if line.strip()]


def train_sentencepiece(name, **options):
    if options.pop("small_table", False):
        path = OUT / "rules.tsv"
        path.write_text("".join(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n" for a, b in sorted(RULES.items())))
        options["normalization_rule_tsv"] = str(path)
    else:
        options["normalization_rule_name"] = "identity"
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=file, num_threads=1, minloglevel=2,
                                             hard_vocab_limit=False, **options)
    (OUT / "rules.tsv").unlink(missing_ok=True)
    (OUT / name).mkdir(exist_ok=True)
    (OUT / name / "tokenizer.model").write_bytes(file.getvalue())
    reference = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    return lambda text: (lambda ids: (ids, reference.decode(ids)))(reference.encode(text))


def with_unused(name, source, count):
    """A model of which the pieces that are used most are marked as unused: those come apart, or are never found."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString((OUT / source / "tokenizer.model").read_bytes())
    words = [p for p in proto.pieces if p.type == 1 and len(p.piece) > 1]
    for piece in sorted(words, key=lambda p: -p.score)[:count]:
        piece.type = 5
    (OUT / name).mkdir(exist_ok=True)
    (OUT / name / "tokenizer.model").write_bytes(proto.SerializeToString())
    reference = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    return lambda text: (lambda ids: (ids, reference.decode(ids)))(reference.encode(text))


def charsmap_of(name):
    """The table inside a model: field 2 of the message in field 3 of the file."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString((OUT / name / "tokenizer.model").read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


def save_json(name, tokenizer):
    (OUT / name).mkdir(exist_ok=True)
    tree = json.loads(tokenizer.to_str())
    (OUT / name / "tokenizer.json").write_text(json.dumps(tree, ensure_ascii=False, separators=(",", ":")))
    reference = tokenizers.Tokenizer.from_file(str(OUT / name / "tokenizer.json"))

    def run(text):
        ids = reference.encode(text).ids
        return ids, reference.decode(ids, skip_special_tokens=True)
    return run


def unigram_json(name, table, byte_fallback):
    t = tokenizers.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(table), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")] if table else [normalizers.Nmt(), normalizers.NFKC()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if byte_fallback else "always")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]) if byte_fallback else decoders.Metaspace()
    special = ["<s>", "</s>", "<unk>"]
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=350, special_tokens=special, unk_token="<unk>", show_progress=False))
    if byte_fallback:
        tree = json.loads(t.to_str())
        tree["model"]["byte_fallback"] = True
        tree["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
        t = tokenizers.Tokenizer.from_str(json.dumps(tree))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return save_json(name, t)


def wordpiece_json(name, **normalizer):
    t = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(**normalizer)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return save_json(name, t)


def tiktoken_ranks():
    ranks = tiktoken._educational.bpe_train("\n".join(corpus())[:60_000], 600, openai.r50k_pat_str, visualise=None)
    (OUT / "ranks").mkdir(exist_ok=True)
    (OUT / "ranks" / "ranks.tiktoken").write_bytes(b"".join(base64.b64encode(t) + b" " + str(r).encode() + b"\n" for t, r in ranks.items()))
    return ranks


def tiktoken_of(encoding):
    def run(text):
        ids = encoding.encode(text, allowed_special="all")
        return ids, encoding.decode(ids)
    return run


def openai_encoding(name, ranks):
    """The published pattern and special tokens of an encoding, on our ranks in place of its own."""
    openai.load_tiktoken_bpe = lambda *a, **k: dict(ranks)
    spec = {k: v for k, v in getattr(openai, name)().items() if k != "explicit_n_vocab"}
    return tiktoken_of(tiktoken.Encoding(**spec))


QWEN = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
GAPS = r"\w+|\s{2,3}+"  # leaves out what it does not match


def main():
    OUT.mkdir(exist_ok=True)
    symbols = dict(user_defined_symbols=["<sep>", "NEWS", "\U0001f44d"], control_symbols=["<ctl>"])
    runs = {}
    runs["sp-unigram"] = train_sentencepiece("sp-unigram", model_type="unigram", vocab_size=400, small_table=True, **symbols)
    runs["sp-unigram-bytes"] = train_sentencepiece("sp-unigram-bytes", model_type="unigram", vocab_size=600, byte_fallback=True, remove_extra_whitespaces=False, **symbols)
    runs["sp-bpe"] = train_sentencepiece("sp-bpe", model_type="bpe", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False, split_digits=True, **symbols)
    runs["sp-bpe-plain"] = train_sentencepiece("sp-bpe-plain", model_type="bpe", vocab_size=450, small_table=True, add_dummy_prefix=False, unk_surface="?", **symbols)
    runs["sp-bpe-suffix"] = train_sentencepiece("sp-bpe-suffix", model_type="bpe", vocab_size=400, treat_whitespace_as_suffix=True)
    runs["sp-bpe-unused"] = with_unused("sp-bpe-unused", "sp-bpe-suffix", 120)
    runs["sp-unigram-unused"] = with_unused("sp-unigram-unused", "sp-unigram", 40)
    runs["unigram"] = unigram_json("unigram", charsmap_of("sp-unigram"), False)
    runs["unigram-bytes"] = unigram_json("unigram-bytes", None, True)
    runs["wordpiece"] = wordpiece_json("wordpiece", lowercase=True)
    runs["wordpiece-cased"] = wordpiece_json("wordpiece-cased", lowercase=False, strip_accents=None)
    ranks = tiktoken_ranks()
    for name in ("r50k_base", "cl100k_base", "o200k_base"):
        runs[name] = openai_encoding(name, ranks)
    runs["qwen"] = tiktoken_of(tiktoken.Encoding("qwen", pat_str=QWEN, mergeable_ranks=ranks, special_tokens={
        t: len(ranks) + k for k, t in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)])}))
    runs["pat_str"] = tiktoken_of(tiktoken.Encoding("gaps", pat_str=GAPS, mergeable_ranks=ranks, special_tokens={}))
    (OUT / "texts.json").write_text(json.dumps(TEXTS, separators=(",", ":")))
    for name, run in runs.items():
        with open(OUT / f"{name}.jsonl", "w") as file:
            for text in TEXTS:
                ids, decoded = run(text)
                file.write(json.dumps([list(ids), decoded], separators=(",", ":")) + "\n")
    versions = {m.__name__: m.__version__ for m in (tokenizers, sentencepiece, tiktoken)}
    (OUT / "versions.json").write_text(json.dumps(versions) + "\n")
    print(len(TEXTS), "texts,", len(runs), "tokenizers", file=sys.stderr)


main()
