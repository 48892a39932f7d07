#include "engine/tokenizer/decoders.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/pre_tokenizers.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

/// Characters of the byte alphabet back to bytes, over all tokens at once; a token with any other character
/// stays as it is.
Decoder read_byte_level_decoder(const JsonAt&) {
  return [](std::vector<std::string>& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) {
      size_t begin = bytes.size();
      for (size_t i = 0; i < token.size();) {
        auto byte = byte_alphabet().byte(next_char(token, i));
        if (!byte) {
          bytes.resize(begin);
          bytes += token;
          break;
        }
        bytes += static_cast<char>(*byte);
      }
    }
    tokens.assign(1, lossy_utf8(bytes));
  };
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

/// The mark of words' ends to a space, in the last token to nothing.
Decoder read_bpe_decoder(const JsonAt& at) {
  return [mark = Pattern(Regex::literal(at.string_or("suffix", "</w>")))](std::vector<std::string>& tokens) {
    for (size_t k = 0; k < tokens.size(); ++k) tokens[k] = replaced(tokens[k], mark, k + 1 < tokens.size() ? " " : "");
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

Decoder read_sequence_decoder(const JsonAt& at) {
  std::vector<Decoder> steps;
  at.at("decoders").each([&](const JsonAt& step) { steps.push_back(read_decoder(step)); });
  return [steps](std::vector<std::string>& tokens) {
    for (const Decoder& step : steps) step(tokens);
  };
}

struct DecoderRow {
  std::string_view type;
  Decoder (*read)(const JsonAt& at);
};
const DecoderRow kDecoders[] = {
    {"ByteLevel", read_byte_level_decoder},
    {"ByteFallback", read_byte_fallback_decoder},
    {"Fuse", read_fuse_decoder},
    {"Strip", read_strip_decoder},
    {"Replace", read_replace_decoder},
    {"Metaspace", read_metaspace_decoder},
    {"BPEDecoder", read_bpe_decoder},
    {"WordPiece", read_wordpiece_decoder},
    {"Sequence", read_sequence_decoder},
};

}  // namespace

Decoder read_decoder(const JsonAt& at) { return find_kind(kDecoders, at, "decoder").read(at); }

}  // namespace sator
