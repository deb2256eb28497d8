"""Writes the C source of the extension module `opstreamd._native`: `build_binding.py HEADER OUTPUT`.

The declarations are the part of opstream.h between its marks, word for word, so that the binding cannot drift from the
header. API mode: the C compiler checks every declaration against the header. Limited API: one module serves every
Python from 3.11 on.
"""

import pathlib
import sys

import cffi


def declarations(header: str) -> str:
    """The text between the marks `/* [cffi begin] */` and `/* [cffi end] */`."""
    _, found_begin, rest = header.partition("/* [cffi begin] */")
    inside, found_end, _ = rest.partition("/* [cffi end] */")
    if not found_begin or not found_end:
        raise SystemExit("the header lacks its cffi marks")
    return inside


def main(header_path: str, output_path: str) -> None:
    header = pathlib.Path(header_path).read_text(encoding="utf-8")
    ffi = cffi.FFI()
    ffi.cdef(declarations(header))
    ffi.set_source("opstreamd._native", '#include "opstream.h"', py_limited_api=True)
    ffi.emit_c_code(output_path)


if __name__ == "__main__":
    main(*sys.argv[1:])
