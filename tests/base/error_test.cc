#include "base/error.h"

#include <gtest/gtest.h>

namespace sator {
namespace {

std::string rendered(const std::string& what) { return Reason{.what = what}.render(); }

TEST(Reason, PartsInTheirOrder) {
  EXPECT_EQ((Reason{.what = "w", .needs = "n", .hint = "h", .program = "a\nb", .where = "in f"}.render()),
            "error: w\n  in f\n  |    a\n  |    b\n  needs: n\n  hint:  h");
}

TEST(Reason, KeepsTextOfAnyLanguage) {
  for (const char* s : {"tab\tand\nline", "\u00e9\u20ac\U0001f600\u00a0", "\uffff\ud7ff\ue000\U0010ffff"})
    EXPECT_EQ(rendered(s), text("error: ", s));
}

TEST(Reason, ShowsControlCharactersAsTheirCodes) {
  EXPECT_EQ(rendered("\x1b[2J\r\x7f\b"), "error: \\x1b[2J\\x0d\\x7f\\x08");
  EXPECT_EQ(rendered(std::string("a\0b", 3)), "error: a\\x00b");
  EXPECT_EQ(rendered("\xc2\x9b"
                     "2J"),
            "error: \\xc2\\x9b2J");  // CSI as one character
}

// Lone and missing continuations, overlong forms, surrogates, beyond U+10FFFF.
TEST(Reason, ShowsIllFormedUtf8AsItsBytes) {
  EXPECT_EQ(rendered("\x80 \xc3( \xe2\x82"), "error: \\x80 \\xc3( \\xe2\\x82");
  EXPECT_EQ(rendered("\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf"), "error: \\xc0\\xaf\\xe0\\x80\\xaf\\xf0\\x80\\x80\\xaf");
  EXPECT_EQ(rendered("\xed\xa0\x80\xf4\x90\x80\x80\xff"), "error: \\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xff");
}

}  // namespace
}  // namespace sator
