"""./sator and tools/setup.sh: what is installed, configured and built when, on a machine whose packages and compiler are stand-ins."""
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Each stand-in writes a line into $LOG. The package database is $DPKG_ADMINDIR/status: a "name version" per line.
STAND_INS = {
    "dpkg-query": r"""
for word; do [ "$word" = -W ] || case $word in -f=*) ;; *) sed -n "s/^$word /installed $word /p" "$DPKG_ADMINDIR/status";; esac; done""",
    "apt-get": r"""
case "$*" in *update*) exit;; esac
echo "apt-get" >>"$LOG"
for word; do shift; [ "$word" = --no-install-recommends ] && break; done
for name; do echo "$name 1.0" >>"$DPKG_ADMINDIR/status"; done""",
    "dpkg": "exit 0",
    "sudo": 'exec "$@"',
    "cmake": r"""
echo cmake >>"$LOG"
mkdir -p "build/$3" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$3/CMakeCache.txt" && touch "build/$3/build.ninja" """,
    "ninja": r"""
echo ninja >>"$LOG"
printf '#!/bin/sh\necho "program: $*"\n' >"$2/sator" && chmod +x "$2/sator" """,
}


class FirstCommand(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.root, self.bin = Path(temp.name, "checkout"), Path(temp.name, "bin")
        self.status, self.log = Path(temp.name, "status"), Path(temp.name, "log")
        for folder in (self.root / "tools", self.root / "src", self.bin):
            folder.mkdir(parents=True)
        for name in ("sator", "tools/setup.sh", "tools/packages.txt"):
            shutil.copy(ROOT / name, self.root / name)
        for name in ("src/a.cc", "CMakeLists.txt", "CMakePresets.json"):
            (self.root / name).touch()
        self.status.write_text("base-files 12\n")
        self.log.touch()
        for name, body in STAND_INS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.bin / name).chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}", DPKG_ADMINDIR=str(self.status.parent),
                                LOG=str(self.log))

    def call(self, *command):
        """What a command made the stand-ins do, in order."""
        time.sleep(0.02)  # times of files are as fine as the kernel's clock tick
        self.log.write_text("")
        run = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=self.root)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.output = run.stdout
        return self.log.read_text().split()

    def sator(self):
        did = self.call("./sator", "--help")
        self.assertEqual(self.output, "program: --help\n")
        return did

    def install(self, *groups):
        """What ./dev does first."""
        return self.call("bash", "-c", f"root=$PWD; source tools/setup.sh; install_packages {' '.join(groups)}")

    def change_database(self, old, new):
        time.sleep(0.02)
        self.status.write_text(self.status.read_text().replace(old, new))

    def test_the_second_call_does_nothing(self):
        self.assertEqual(self.sator(), ["apt-get", "cmake", "ninja"])
        self.assertEqual(self.sator(), [])

    def test_tools_for_tests_change_nothing(self):
        self.sator()
        self.assertEqual(self.install("run", "test"), ["apt-get"])
        self.assertIn("ccache 1.0", self.status.read_text())
        self.assertIn("ccache 1.0", (self.root / "build/packages.run-test").read_text())
        self.assertEqual(self.sator(), [])
        self.assertEqual(self.install("run", "test"), [])

    def test_foreign_packages_change_nothing(self):
        self.sator()
        self.change_database("base-files 12", "base-files 13")
        self.assertEqual(self.sator(), [])

    def test_a_removed_package_is_installed_again(self):
        self.sator()
        self.change_database("lld-19 1.0\n", "")
        self.assertEqual(self.sator(), ["apt-get"])
        self.assertIn("lld-19 1.0", self.status.read_text())

    def test_a_new_version_builds_what_it_changes(self):
        self.sator()
        self.change_database("llvm-19-dev 1.0", "llvm-19-dev 1.1")
        self.assertEqual(self.sator(), ["ninja"])
        self.assertEqual(self.sator(), [])

    def test_an_edit_builds(self):
        self.sator()
        time.sleep(0.02)
        (self.root / "src/a.cc").write_text("int a;\n")
        self.assertEqual(self.sator(), ["ninja"])


class Launcher(unittest.TestCase):
    """The build's commands name one script, whatever is installed; it looks for ccache when it is run."""

    def test_with_and_without_ccache(self):
        launcher = ROOT / "tools" / "launch_compiler"
        self.assertTrue("CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/tools/launch_compiler" in (ROOT / "CMakeLists.txt").read_text())
        with tempfile.TemporaryDirectory() as folder:
            environment = {"PATH": folder}
            run = lambda: subprocess.run([launcher, "/bin/echo", "-c", "a b"], capture_output=True, text=True, env=environment).stdout
            self.assertEqual(run(), "-c a b\n")
            Path(folder, "ccache").write_text('#!/bin/sh\necho cached: "$@"\n')
            Path(folder, "ccache").chmod(0o755)
            self.assertEqual(run(), "cached: /bin/echo -c a b\n")

    def test_nothing_optional_is_looked_for(self):
        for line in (ROOT / "CMakeLists.txt").read_text().splitlines():
            if line.strip().startswith(("find_program(", "find_package(", "find_library(")):
                self.assertIn("REQUIRED", line)


if __name__ == "__main__":
    unittest.main()
