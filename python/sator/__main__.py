"""The program of the command line: `sator study MODEL` and `python -m sator study MODEL`."""
import sys


def main():
    """Runs the program with the arguments of the process, and ends with its status."""
    from sator import _core, commands  # noqa: F401  (commands finds the shipped chips)

    sys.exit(_core.run_program(sys.argv[1:]))


if __name__ == "__main__":
    main()
