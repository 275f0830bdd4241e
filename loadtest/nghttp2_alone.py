"""Measures the memory that nghttp2 itself takes for an idle session. This program makes sessions with the library as weir does, but
has no sockets. Each session handles one request and its answer. nghttp2 allocates a buffer of 16 KiB for each session and uses its
beginning. So the resident memory is less than the allocated memory, unless malloc hands out pages that have been in use."""

import ctypes
import os
import re
import subprocess

import http2_client
import processes

FIRST, SESSIONS = 100, 5000
EOF = 1  # NGHTTP2_DATA_FLAG_EOF
SETTINGS = ((3, 100), (4, 64 << 10), (6, 64 << 10))  # what weir sends by default: streams, a stream's window, octets of a head
CONNECTION_WINDOW = 1 << 20


class Field(ctypes.Structure):
    """nghttp2_nv."""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p), ("name_octets", ctypes.c_size_t),
                ("value_octets", ctypes.c_size_t), ("flags", ctypes.c_uint8)]


class Setting(ctypes.Structure):
    """nghttp2_settings_entry."""

    _fields_ = [("name", ctypes.c_int32), ("value", ctypes.c_uint32)]


# ssize_t read(session, stream, buf, length, data_flags, source, user_data)
READ = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t,
                        ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p, ctypes.c_void_p)


class Provider(ctypes.Structure):
    """nghttp2_data_provider."""

    _fields_ = [("source", ctypes.c_void_p), ("read", READ)]


class Mallinfo(ctypes.Structure):
    """mallinfo2 (mallinfo(3))."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


def fields_of(port):
    """Returns the fields of the answer that a server at this port gives over HTTP/2 without TLS, as nghttp prints them."""
    said = subprocess.run(["nghttp", "-v", f"http://127.0.0.1:{port}/"], capture_output=True, text=True, timeout=10, check=True).stdout
    found = re.findall(r"recv \(stream_id=\d+\) (:?[^:\s]+): (.*)", re.sub(r"\x1b\[[0-9;]*m", "", said))
    return [(name.encode(), value.encode()) for name, value in found]


@READ
def read_body(_session, _stream, buffer, _octets, flags, _source, _user):
    ctypes.memmove(buffer, processes.ANSWER.encode(), len(processes.ANSWER))
    flags[0] = EOF
    return len(processes.ANSWER)


class Library:
    def __init__(self):
        self.nghttp2, self.libc = ctypes.CDLL("libnghttp2.so.14"), ctypes.CDLL("libc.so.6")
        self.libc.mallinfo2.restype = Mallinfo
        self.nghttp2.nghttp2_session_mem_recv.restype = self.nghttp2.nghttp2_session_mem_send.restype = ctypes.c_ssize_t
        self.callbacks, self.option = ctypes.c_void_p(), ctypes.c_void_p()
        self.nghttp2.nghttp2_session_callbacks_new(ctypes.byref(self.callbacks))
        self.nghttp2.nghttp2_option_new(ctypes.byref(self.option))
        self.nghttp2.nghttp2_option_set_no_auto_window_update(self.option, 1)

    def octets(self):
        """Returns the resident and the allocated octets of this program."""
        info = self.libc.mallinfo2()
        return processes.resident_bytes(os.getpid()), info.hblkhd + info.uordblks

    def send(self, session):
        data = ctypes.c_void_p()
        while self.nghttp2.nghttp2_session_mem_send(session, ctypes.byref(data)) > 0:
            pass

    def receive(self, session, data):
        if self.nghttp2.nghttp2_session_mem_recv(session, data, ctypes.c_size_t(len(data))) != len(data):
            raise processes.BenchError("nghttp2 does not accept the client's octets")
        self.send(session)

    def answered_session(self, fields):
        session = ctypes.c_void_p()
        self.nghttp2.nghttp2_session_server_new2(ctypes.byref(session), self.callbacks, None, self.option)
        settings = (Setting * len(SETTINGS))(*SETTINGS)
        self.nghttp2.nghttp2_submit_settings(session, 0, settings, ctypes.c_size_t(len(SETTINGS)))
        self.nghttp2.nghttp2_session_set_local_window_size(session, 0, 0, CONNECTION_WINDOW)
        self.receive(session, http2_client.preface())
        self.receive(session, http2_client.frame(http2_client.SETTINGS, http2_client.ACK))
        flags = http2_client.END_STREAM | http2_client.END_HEADERS
        self.receive(session, http2_client.frame(http2_client.HEADERS, flags, 1, http2_client.head(False)))
        values = (Field * len(fields))(*((name, value, len(name), len(value), 0) for name, value in fields))
        if self.nghttp2.nghttp2_submit_response(session, 1, values, ctypes.c_size_t(len(fields)), ctypes.byref(Provider(None, read_body))):
            raise processes.BenchError("nghttp2 does not accept the answer")
        self.send(session)
        return session


def session_octets(port):
    """Returns the resident and the allocated octets of a session that has answered one request as the server at this port does. Must
    be called before the program has allocated and freed much, because sessions would use that memory."""
    library, fields = Library(), fields_of(port)
    sessions = [library.answered_session(fields) for _ in range(FIRST)]
    before = library.octets()
    sessions += [library.answered_session(fields) for _ in range(SESSIONS)]
    spent = [(now - then) / SESSIONS for now, then in zip(library.octets(), before)]
    for session in sessions:
        library.nghttp2.nghttp2_session_del(session)
    return spent
