#include "engine/tokenizer/decoders.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/pre_tokenizers.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

/// Characters of the byte alphabet back to bytes; a token with any other character stays as it is.
std::string byte_level_bytes(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    auto byte = byte_alphabet().byte(next_char(token, i));
    if (!byte) return std::string(token);
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

/// The bytes of all tokens at once.
Decoder read_byte_level_decoder(const JsonAt&) {
  return [](std::vector<std::string>& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) bytes += byte_level_bytes(token);
    tokens.assign(1, lossy_utf8(bytes));
  };
}
TokenBytes read_byte_level_bytes(const JsonAt&) { return byte_level_bytes; }
TokenBytes read_plain_bytes(const JsonAt&) {
  return [](std::string_view token) { return std::string(token); };
}

std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
  unsigned value = 0;
  auto [end, err] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (err != std::errc() || end != token.data() + 5) return {};
  return static_cast<char>(value);
}

/// Runs of <0xHH> to the text that their bytes are; a run that is no valid UTF-8 becomes one U+FFFD per byte.
Decoder read_byte_fallback_decoder(const JsonAt&) {
  return [](std::vector<std::string>& tokens) {
    std::vector<std::string> out;
    std::string run;
    auto flush = [&] {
      if (run.empty()) return;
      if (is_valid_utf8(run))
        out.push_back(run);
      else
        out.insert(out.end(), run.size(), "\xef\xbf\xbd");
      run.clear();
    };
    for (std::string& token : tokens) {
      if (auto byte = byte_of_token(token)) {
        run += *byte;
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  };
}

TokenBytes read_byte_fallback_bytes(const JsonAt&) {
  return [](std::string_view token) {
    const std::optional<char> byte = byte_of_token(token);
    return byte ? std::string(1, *byte) : std::string(token);
  };
}

Decoder read_fuse_decoder(const JsonAt&) {
  return [](std::vector<std::string>& tokens) { tokens.assign(1, join(tokens, "")); };
}

/// Up to `start` characters `content` off the begin of each token, up to `stop` off its end.
Decoder read_strip_decoder(const JsonAt& at) {
  std::string content = at.at("content").string();
  if (content.empty() || char_bytes(content[0]) != content.size())
    at.at("content").fail("is not one character", "one character");
  int64_t start = at.at("start").integer(0), stop = at.at("stop").integer(0);
  return [=](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      std::string_view s = token;
      for (int64_t i = 0; i < start && s.starts_with(content); ++i) s.remove_prefix(content.size());
      for (int64_t i = 0; i < stop && s.ends_with(content); ++i) s.remove_suffix(content.size());
      token = std::string(s);
    }
  };
}

Decoder read_replace_decoder(const JsonAt& at) {
  return [pattern = read_pattern(at.at("pattern")),
          content = at.at("content").string()](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) token = replaced(token, pattern, content);
  };
}

TokenBytes read_replace_bytes(const JsonAt& at) {
  return [pattern = read_pattern(at.at("pattern")), content = at.at("content").string()](std::string_view token) {
    return replaced(std::string(token), pattern, content);
  };
}

/// The mark of words to a space; in the first token it vanishes, unless none was ever prepended.
Decoder read_metaspace_decoder(const JsonAt& at) {
  Metaspace m = read_metaspace(at);
  return [=](std::vector<std::string>& tokens) {
    for (size_t k = 0; k < tokens.size(); ++k) {
      std::string out;
      bool drop = k == 0 && m.scheme != PrependScheme::never;
      for (std::string_view s = tokens[k]; !s.empty();) {
        if (s.starts_with(m.replacement)) {
          if (!drop) out += ' ';
          s.remove_prefix(m.replacement.size());
        } else {
          size_t n = char_bytes(s[0]);
          out += s.substr(0, n);
          s.remove_prefix(n);
        }
      }
      tokens[k] = std::move(out);
    }
  };
}

TokenBytes read_metaspace_bytes(const JsonAt& at) {
  return [mark = Pattern(Regex::literal(read_metaspace(at).replacement))](std::string_view token) {
    return replaced(std::string(token), mark, " ");
  };
}

/// The mark of words' ends to a space, in the last token to nothing.
Decoder read_bpe_decoder(const JsonAt& at) {
  return [mark = Pattern(Regex::literal(at.string_or("suffix", "</w>")))](std::vector<std::string>& tokens) {
    for (size_t k = 0; k < tokens.size(); ++k) tokens[k] = replaced(tokens[k], mark, k + 1 < tokens.size() ? " " : "");
  };
}

TokenBytes read_bpe_bytes(const JsonAt& at) {
  return [mark = Pattern(Regex::literal(at.string_or("suffix", "</w>")))](std::string_view token) {
    return replaced(std::string(token), mark, " ");
  };
}

std::string all_replaced(std::string s, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}

/// English as it is written: no space before punctuation and contractions. Each rule in turn, over each token.
std::string cleaned_up(std::string s) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {{" .", "."},
                                                                      {" ?", "?"},
                                                                      {" !", "!"},
                                                                      {" ,", ","},
                                                                      {" ' ", "'"},
                                                                      {" n't", "n't"},
                                                                      {" 'm", "'m"},
                                                                      {" do not", " don't"},
                                                                      {" 's", "'s"},
                                                                      {" 've", "'ve"},
                                                                      {" 're", "'re"}};
  for (auto [from, to] : kRules) s = all_replaced(std::move(s), from, to);
  return s;
}

/// Tokens with the prefix go on a word, others begin one behind a space.
Decoder read_wordpiece_decoder(const JsonAt& at) {
  const std::string prefix = at.string_or("prefix", "##");
  const bool cleanup = at.boolean_or("cleanup", true);
  return [=](std::vector<std::string>& tokens) {
    for (size_t k = 0; k < tokens.size(); ++k) {
      std::string& token = tokens[k];
      if (k > 0 && token.starts_with(prefix))
        token.erase(0, prefix.size());
      else if (k > 0)
        token.insert(0, " ");
      if (cleanup) token = cleaned_up(std::move(token));
    }
  };
}

TokenBytes read_wordpiece_bytes(const JsonAt& at) {
  const std::string prefix = at.string_or("prefix", "##");
  const bool cleanup = at.boolean_or("cleanup", true);
  return [=](std::string_view token) {
    std::string bytes = token.starts_with(prefix) ? std::string(token.substr(prefix.size())) : text(" ", token);
    return cleanup ? cleaned_up(std::move(bytes)) : bytes;
  };
}

Decoder read_sequence_decoder(const JsonAt& at) {
  std::vector<Decoder> steps;
  at.at("decoders").each([&](const JsonAt& step) { steps.push_back(read_decoder(step)); });
  return [steps](std::vector<std::string>& tokens) {
    for (const Decoder& step : steps) step(tokens);
  };
}

/// What follows a Fuse looks at the text as a whole: at its ends, as decoders are written.
TokenBytes read_sequence_bytes(const JsonAt& at) {
  std::vector<TokenBytes> steps;
  bool fused = false;
  at.at("decoders").each([&](const JsonAt& step) {
    fused |= step.at("type").string() == "Fuse";
    if (!fused) steps.push_back(read_token_bytes(step));
  });
  return [steps](std::string_view token) {
    std::string bytes(token);
    for (const TokenBytes& step : steps) bytes = step(bytes);
    return bytes;
  };
}

/// Strip of a text that is not fused would take characters off each token: none is known to be written so.
struct DecoderRow {
  std::string_view type;
  Decoder (*read)(const JsonAt& at);
  TokenBytes (*bytes)(const JsonAt& at);
};
const DecoderRow kDecoders[] = {
    {"ByteLevel", read_byte_level_decoder, read_byte_level_bytes},
    {"ByteFallback", read_byte_fallback_decoder, read_byte_fallback_bytes},
    {"Fuse", read_fuse_decoder, read_plain_bytes},
    {"Strip", read_strip_decoder, read_plain_bytes},
    {"Replace", read_replace_decoder, read_replace_bytes},
    {"Metaspace", read_metaspace_decoder, read_metaspace_bytes},
    {"BPEDecoder", read_bpe_decoder, read_bpe_bytes},
    {"WordPiece", read_wordpiece_decoder, read_wordpiece_bytes},
    {"Sequence", read_sequence_decoder, read_sequence_bytes},
};

}  // namespace

Decoder read_decoder(const JsonAt& at) { return find_kind(kDecoders, at, "decoder").read(at); }
TokenBytes read_token_bytes(const JsonAt& at) { return find_kind(kDecoders, at, "decoder").bytes(at); }

}  // namespace sator
