"""Language models: generated texts, perplexity, logits."""
import itertools
import operator
from pathlib import Path

from sator import _core, nd, words


def _integer(call, name, value, least, most, limit):
    """An integer argument. Errors: TypeError for what is none, ValueError for one that is not from `least` to `most`, which `limit` spells."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{call}: {name} = {value!r} is a {type(value).__name__}\n  needs: an integer")
    value = operator.index(value)
    if not least <= value <= most:
        raise ValueError(f"{call}: {name} is {value}\n  needs: an integer from {least} to {limit}")
    return value


def _texts(call, name, value):
    """A text or several as a list. Errors: TypeError for what is none."""
    texts = [value] if isinstance(value, str) or getattr(value, "__iter__", None) is None else list(value)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{call}: {text!r} in {name} is a {type(text).__name__}\n  needs: a text, or a list of texts")
    return texts


def export_model(folder, quantization=None, context_window=None):
    """A model's program before any pass, and its parameters: (IRModule, [(name, shape, dtype)]). No weights are read.

    folder   a Hugging Face folder; config.json is enough
    Errors: as of LM.
    """
    mod, params, _ = _core.model_program(str(folder), quantization, context_window)
    return mod, params


class LM:
    """A language model from a Hugging Face folder or a GGUF file, compiled for this machine.

    folder          with config.json, *.safetensors and, for what takes or gives text, tokenizer.json; or all else that the command line takes as MODEL
    quantization    a scheme, sator.schemes() lists them; what the folder holds where it is None: codes or floats as they are, products and cache in float32
    threads         1 to 1024; those of all cores where it is None
    progress        called with a line of text as things are done
    What may not be meant, as tensors of the folder that config.json asks for nothing of, is a warning.
    Errors: the folder is no model; a family or scheme that is not supported; ValueError for threads out of range.
    """

    def __init__(self, folder, quantization=None, threads=None, progress=None):
        if not isinstance(folder, str) and not hasattr(folder, "__fspath__"):
            raise TypeError(f"LM: the folder {folder!r} is a {type(folder).__name__}\n  needs: the path of a model's folder or GGUF file")
        if threads is not None:
            threads = _integer("LM", "threads", threads, 1, 1024, "1024")
        self._model = words.make(_core.LanguageModel, str(folder), quantization, threads, progress)
        self._folder = str(folder)

    def __repr__(self):
        return (f"LM({self._folder!r}, quantization={self.quantization!r})  # {self.bits_per_weight:.2f} bits per weight, "
                f"{self.context_window} tokens at most, of {self.vocab_size}")

    @property
    def quantization(self):
        """The name of its scheme."""
        return self._model.scheme

    @property
    def bits_per_weight(self):
        """Bits that a weight takes in memory, its scales among them."""
        return self._model.bits_per_weight

    @property
    def context_window(self):
        """Tokens of one sequence at most."""
        return self._model.limits["context_window"]

    @property
    def vocab_size(self):
        """How many tokens there are: the last dimension of the logits."""
        return self._model.limits["vocab_size"]

    def encode(self, text, add_special_tokens=False):
        """The token ids of a text."""
        return self._model.encode(text, add_special_tokens)

    def decode(self, ids):
        """The text of token ids. Errors: TypeError for what are no integers, ValueError for ids that the model has not."""
        return self._model.decode(self._ids("decode", ids))

    def generate(self, prompt, max_tokens=128, temperature=0.0, top_p=1.0, top_k=0, seed=0, stop=(), on_text=None):
        """The text that follows a prompt; at temperature 0 the most likely token is always taken.

        What ends the text, penalties, and tokens that are never drawn are those of the model's generation_config.json; what `sator generate` remarks
        on, as what that file asks for and is not done, is a warning.
        stop      a text that ends it, or a list of such texts; generation_config.json's unless told
        on_text   called with each piece as it comes; False ends the text
        Errors: ValueError for max_tokens, top_k or a seed out of range; a temperature or top_p out of range; a prompt that does not fit into
        the context window. TypeError for a stop that is no text.
        """
        max_tokens = _integer("generate", "max_tokens", max_tokens, 0, 2**63 - 1, "2^63 - 1")
        top_k = _integer("generate", "top_k", top_k, 0, 2**63 - 1, "2^63 - 1")
        seed = _integer("generate", "seed", seed, 0, 2**63 - 1, "2^63 - 1")
        return self._model.generate(prompt, max_tokens, temperature, top_p, top_k, seed, _texts("generate", "stop", stop), on_text)["text"]

    def perplexity(self, text, windows=None, window_tokens=None, stride=None, progress=None):
        """How well the model predicts a text, by the protocol of `sator perplexity`.

        text     the text itself, or a pathlib.Path of a file
        →        {"perplexity", "standard_error" (None with one window), "windows", "predictions"}
        """
        text = text.read_text() if isinstance(text, Path) else text
        return self._model.perplexity(text, windows, window_tokens, stride, progress)

    def score(self, text, context=""):
        """How likely a text is behind a context, each of its tokens after all before it.

        The texts are split into tokens together; tokens that both have a part of count as the text's. Without a context the model's own first token
        stands before the text, where it has one; else the first token is not scored.
        →        {"log_likelihood" (the sum of ln p), "tokens" (how many were scored), "is_greedy" (whether each of them is the most likely one)}
        Errors: ValueError for texts of no token to score, or of more than the context window.
        """
        for name, value in (("text", text), ("context", context)):
            if not isinstance(value, str):
                raise TypeError(f"score: {name} = {value!r} is a {type(value).__name__}\n  needs: a text")
        import numpy

        ids, before = self.encode(context + text, True), self.encode(context, True)
        first = max(1, sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ids, before))))
        scored = ids[first:]
        if not scored:
            raise ValueError(f"score: {text!r} has no token to score\n  needs: at least one, and one before it\n  hint:  give a context")
        logits = self.logits(ids[:-1])[first - 1:].astype("float64")
        greatest = logits.max(-1, keepdims=True)
        chosen = numpy.take_along_axis(logits, numpy.array(scored)[:, None], 1)
        likely = chosen - greatest - numpy.log(numpy.exp(logits - greatest).sum(-1, keepdims=True))
        return {"log_likelihood": float(likely.sum()), "tokens": len(scored), "is_greedy": bool((chosen == greatest).all())}

    def logits(self, ids):
        """The logits at each position of a sequence of token ids: float32 [tokens, vocab_size]. Errors: as of decode."""
        return nd.NDArray.numpy(self._model.logits(self._ids("logits", ids)))

    def _ids(self, call, ids):
        ids = ids.numpy() if isinstance(ids, nd.NDArray) else ids
        if isinstance(ids, str) or getattr(ids, "__iter__", None) is None:
            raise TypeError(f"{call}: ids = {ids!r} is a {type(ids).__name__}\n  needs: a list of token ids\n  hint:  lm.encode(text) gives them")
        if getattr(ids, "ndim", 1) != 1:
            raise ValueError(f"{call}: ids of the shape {tuple(ids.shape)}\n  needs: one sequence, an array of rank 1\n  hint:  call it for each row")
        ids = list(ids)
        for i in ids:
            if not hasattr(i, "__index__"):
                raise TypeError(f"{call}: the id {i!r} is a {type(i).__name__}\n  needs: integers\n  hint:  lm.encode(text) gives them")
            if not 0 <= i < self.vocab_size:
                raise ValueError(f"{call}: there is no token {i}\n  needs: ids from 0 to {self.vocab_size - 1}\n  hint:  lm.encode(text) gives them")
        return [int(i) for i in ids]
