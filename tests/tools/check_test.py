"""tools/check.py: which includes break the order of the rooms, which names meet, what is out of format."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check  # noqa: E402


class Layers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.write("src/LAYERS", "# comment\nbase\nir\n")
        self.write("src/base/text.h", "#pragma once\n")
        self.write("src/ir/node.h", '#include "base/text.h"\n#include <vector>\n')

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self):
        return [(str(p.relative_to(self.root)), line, words) for p, line, words in check.layer_findings(self.root)]

    def test_downward_includes_are_fine(self):
        self.assertEqual(self.findings(), [])

    def test_an_upward_include_is_named_with_its_line(self):
        self.write("src/base/bad.cc", '\n#  include "ir/node.h"\n')
        self.assertEqual(self.findings(), [("src/base/bad.cc", 2, "base includes ir, which stands below it in src/LAYERS")])

    def test_a_file_that_does_not_exist_is_named(self):
        self.write("src/ir/bad.cc", '#include "node.h"\n')
        self.assertEqual([f[:2] for f in self.findings()], [("src/ir/bad.cc", 1)])

    def test_a_folder_that_is_no_room_is_named(self):
        self.write("src/extra/x.cc", "")
        self.assertEqual(self.findings(), [("src/extra/x.cc", 1, "src/extra/x.cc is in no folder of src/LAYERS")])

    def test_folders_of_a_room_have_an_order_too(self):
        self.write("src/ir/LAYERS", "low\nhigh\n")
        self.write("src/ir/low/a.h", '#include "base/text.h"\n')
        self.write("src/ir/high/b.h", '#include "ir/low/a.h"\n')
        self.write("src/ir/low/c.cc", '#include "ir/high/b.h"\n#include "ir/node.h"\n')
        self.assertEqual(self.findings(), [
            ("src/ir/low/c.cc", 1, "ir/low includes ir/high, which stands below it in src/ir/LAYERS"),
            ("src/ir/low/c.cc", 2, "ir/low includes ir/node.h, which stands below it in src/ir/LAYERS"),
            ("src/ir/node.h", 1, "src/ir/node.h is in no folder of src/ir/LAYERS"),
        ])

    def names(self):
        return [(str(p.relative_to(self.root)), line, words.split(" defines ")[1].split(" too")[0]) for p, line, words in check.name_findings(self.root)]

    def test_names_that_meet_in_a_room_are_named(self):
        self.write("src/ir/a.cc", "namespace {\n\nstruct Plan {\n  int x;\n};\nconstexpr int kMost[] = {1};\nint f(const Expr& a,\n      int b) {\n}\n\n}  // namespace\n")
        self.write("src/ir/b.cc", "namespace {\nint f(const Expr& other, int c = 1) { return 0; }\nconstexpr int kMost[] = {2};\n}  // namespace\nstruct Plan {};\n")
        self.write("src/ir/c.cc", "namespace {\nclass Plan {};\nint f(const Expr& a, double b) { return 1; }\n  int kMost = 2;\n}  // namespace\n")
        self.assertEqual(self.names(), [("src/ir/b.cc", 2, "f(const Expr&, int)"), ("src/ir/b.cc", 3, "kMost"), ("src/ir/c.cc", 2, "Plan")])

    def test_every_name_of_a_definition_meets(self):
        self.write("src/ir/a.cc", "namespace {\nconstexpr int kFew = f(1, 2), kMost = 3;\nenum Kind { left, right = 4 };\nenum class Side { up };\n}  // namespace\n")
        self.write("src/ir/b.cc", "namespace {\nconstexpr int kLeast[] = {1, 2}, kMost = 5;  // of a, kFew = 2\nenum Way {\n  wrong,\n  right,\n};\nenum class Place { up };\n}  // namespace\n")
        self.assertEqual(self.names(), [("src/ir/b.cc", 2, "kMost"), ("src/ir/b.cc", 3, "right")])

    def test_types_of_headers_meet_those_of_sources(self):
        self.write("src/ir/plan.h", "namespace sator {\nstruct Plan {\n  struct Part {};\n};\n}  // namespace sator\n")
        self.write("src/ir/a.cc", "namespace sator {\nnamespace {\nstruct Plan {};\nstruct Part {};\n}  // namespace\n}\n")
        self.write("src/ir/c.cc", "namespace sator::ir {\nnamespace {\nclass Plan {};\n}  // namespace\n}\n")
        self.write("src/base/b.cc", "namespace {\nclass Plan {};\n}  // namespace\n")
        self.assertEqual(self.names(), [("src/ir/a.cc", 3, "Plan")])

    def test_a_name_hides_that_of_an_outer_namespace_from_another_file(self):
        self.write("src/base/plan.h", "namespace sator {\nstruct Plan {};\nstruct Way {};\n}  // namespace sator\n")
        self.write("src/ir/a.cc", "namespace sator::ir {\nnamespace {\nstruct Plan {};\nstruct Way {};\n}  // namespace\n}\n")
        self.write("src/ir/b.cc", "namespace sator::ir {\nint f(const Plan& plan) { return plan.Way + a::Way; }  // a Way\nauto s = R\"(\nWay )\";\n}\n")
        self.write("src/ir/c.cc", "namespace sator::other {\nint f(const Way& way);\n}\n")
        self.write("src/base/d.cc", "namespace sator::ir {\nint f(const Way& way);\n}\n")
        self.assertEqual(self.names(), [("src/ir/a.cc", 3, "Plan")])

    def test_constants_of_headers_meet_those_of_sources(self):
        self.write("src/ir/a.h", "namespace sator {\ninline constexpr int kMost = 1;\n}\n")
        self.write("src/ir/b.cc", "namespace sator {\nnamespace {\nconstexpr int kMost = 2;\n}  // namespace\n}\n")
        self.write("src/ir/c.cc", "namespace other {\nnamespace {\nconstexpr int kMost = 2;\n}  // namespace\n}\n")
        self.assertEqual(self.names(), [("src/ir/b.cc", 3, "kMost")])

    def test_an_alias_meets_a_type_of_another_room(self):
        self.write("src/base/node.h", "namespace sator {\nclass Node;\nclass Node {\n};\n}  // namespace sator\n")
        self.write("src/ir/a.cc", "namespace sator {\nnamespace {\nusing Node = Chip::Node;\n}  // namespace\n}\n")
        self.write("src/ir/b.cc", "namespace {\nusing Clock = std::chrono::steady_clock;\nusing Frame = A::Frame;\n}  // namespace\n")
        self.write("src/ir/c.cc", "namespace {\nusing Clock = std::chrono::steady_clock;\nstruct Frame {};\n}  // namespace\n")
        self.assertEqual(self.names(), [("src/ir/a.cc", 3, "Node"), ("src/ir/c.cc", 3, "Frame")])

    def test_declarations_and_other_rooms_are_no_meeting(self):
        self.write("src/ir/a.cc", "namespace {\nvoid f(int a);\nstruct Plan {};\n}  // namespace\n")
        self.write("src/ir/b.cc", "namespace {\nvoid f(int a) {}\n}  // namespace\n")
        self.write("src/base/c.cc", "namespace {\nstruct Plan {};\n}  // namespace\n")
        self.assertEqual(self.names(), [])


class Format(unittest.TestCase):
    def test_differences_are_found_and_fixed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "src").mkdir()
            (root / ".clang-format").write_text("BasedOnStyle: Google\n")
            bad, good = root / "src" / "bad.cc", root / "src" / "good.cc"
            bad.write_text("int  x ;\n")
            good.write_text("int x;\n")
            self.assertEqual([(p.name, line) for p, line, _ in check.format_findings(root, [bad, good])], [("bad.cc", 1)])
            check.format_findings(root, [bad, good], fix=True)
            self.assertEqual(bad.read_text(), "int x;\n")
            self.assertEqual(check.format_findings(root, [bad, good]), [])


if __name__ == "__main__":
    unittest.main()
