"""HPACK by libnghttp2, a line at a time: what hpack_nghttp2.rs compares haul's with.

    deflate:  "LIMIT NAME=VALUE NAME=VALUE .."  answers with a block
    inflate:  "LIMIT BLOCK"                     answers with "NAME=VALUE NAME=VALUE .."

Names, values and blocks are in hexadecimal. LIMIT is the table's size from here on. An empty line begins a new session.
"""

import ctypes
import sys

FINAL, EMIT = 1, 2


class Field(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("name_len", ctypes.c_size_t),
        ("value_len", ctypes.c_size_t),
        ("flags", ctypes.c_uint8),
    ]


LIBRARY = ctypes.CDLL("libnghttp2.so.14")
for call in ("nghttp2_hd_deflate_hd", "nghttp2_hd_deflate_bound", "nghttp2_hd_inflate_hd2"):
    getattr(LIBRARY, call).restype = ctypes.c_ssize_t


def checked(result):
    if result < 0:
        raise ValueError(f"libnghttp2 answers {result}")
    return result


class Deflater:
    def __init__(self):
        self.state = ctypes.c_void_p()
        checked(LIBRARY.nghttp2_hd_deflate_new(ctypes.byref(self.state), ctypes.c_size_t(1 << 16)))

    def line(self, limit, *pairs):
        checked(LIBRARY.nghttp2_hd_deflate_change_table_size(self.state, ctypes.c_size_t(limit)))
        kept = [[bytes.fromhex(part) for part in pair.split("=")] for pair in pairs]
        fields = (Field * len(kept))()
        for field, (name, value) in zip(fields, kept):
            field.name, field.name_len = ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p), len(name)
            field.value, field.value_len = ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), len(value)
        count = ctypes.c_size_t(len(kept))
        room = checked(LIBRARY.nghttp2_hd_deflate_bound(self.state, fields, count))
        block = ctypes.create_string_buffer(room)
        length = checked(LIBRARY.nghttp2_hd_deflate_hd(self.state, block, ctypes.c_size_t(room), fields, count))
        return block.raw[:length].hex()


class Inflater:
    def __init__(self):
        self.state = ctypes.c_void_p()
        checked(LIBRARY.nghttp2_hd_inflate_new(ctypes.byref(self.state)))

    def line(self, limit, block):
        checked(LIBRARY.nghttp2_hd_inflate_change_table_size(self.state, ctypes.c_size_t(limit)))
        block, pairs, flags = bytes.fromhex(block), [], ctypes.c_int()
        kept = ctypes.create_string_buffer(block, len(block))
        at = 0
        while not flags.value & FINAL:
            field, place = Field(), ctypes.c_void_p(ctypes.addressof(kept) + at)
            rest = ctypes.c_size_t(len(block) - at)
            at += checked(
                LIBRARY.nghttp2_hd_inflate_hd2(
                    self.state, ctypes.byref(field), ctypes.byref(flags), place, rest, ctypes.c_int(1)
                )
            )
            if flags.value & EMIT:
                name = ctypes.string_at(field.name, field.name_len)
                value = ctypes.string_at(field.value, field.value_len)
                pairs.append(f"{name.hex()}={value.hex()}")
        checked(LIBRARY.nghttp2_hd_inflate_end_headers(self.state))
        return " ".join(pairs)


KIND = {"deflate": Deflater, "inflate": Inflater}[sys.argv[1]]
session = KIND()
for line in sys.stdin:
    words = line.split()
    if not words:
        session = KIND()
        continue
    print(session.line(int(words[0]), *words[1:]))
