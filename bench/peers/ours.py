"""The library under test, through its C ABI: it owns the batches, and all peers read the same memory."""

import ctypes

import numpy as np

TOKEN_ITEMS = ["gae", "grpo", "ppo", "analysis", "returns", "kl", "whiten", "step"]
# per slot: bytes that any algorithm has to read (with the mask) and write
TOKEN_BYTES = {
    "gae": (9, 8),
    "grpo": (5, 4),
    "ppo": (13, 4),
    "analysis": (13, 0),
    "returns": (5, 4),
    "kl": (9, 4),
    "whiten": (5, 4),
    "step": (21, 12),
}
BUFFERS = [
    "mask",
    "rewards",
    "values",
    "log_probs",
    "old_log_probs",
    "ref_log_probs",
    "advantages",
    "out0",
    "out1",
    "out2",
]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        size, pointer, flag = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_bool
        for name, result, arguments in [
            ("tokens_new", pointer, [size, size, flag]),
            ("tokens_count", size, [pointer, flag]),
            ("tokens_buffer", pointer, [pointer, size]),
            ("tokens_check", flag, [pointer]),
            ("tokens_run", flag, [pointer, size]),
            ("tokens_gae_apart", flag, [pointer]),
            ("tokens_free", None, [pointer]),
            ("logits_new", pointer, [size, size, flag]),
            ("logits_buffer", pointer, [pointer, size]),
            ("logits_run", flag, [pointer, size]),
            ("logits_free", None, [pointer]),
            ("limit_new", pointer, [size, size]),
            ("limit_copy", None, [pointer, size]),
            ("limit_read", ctypes.c_uint64, [pointer, size]),
            ("limit_free", None, [pointer]),
        ]:
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments


def array(address, kind, shape):
    count = int(np.prod(shape))
    buffer = (ctypes.c_byte * (count * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(buffer, dtype=kind, count=count).reshape(shape)


class Tokens:
    """One padded batch as numpy arrays over the library's memory."""

    def __init__(self, library, sequences, length):
        self.c = library.c
        self.handle = self.c.tokens_new(sequences, length, False)
        self.shape, self.kept = (sequences, length), self.c.tokens_count(self.handle, True)
        for index, name in enumerate(BUFFERS):
            kind = np.bool_ if name == "mask" else np.float32
            setattr(self, name, array(self.c.tokens_buffer(self.handle, index), kind, self.shape))
        self.totals = array(self.c.tokens_buffer(self.handle, len(BUFFERS)), np.float64, (5,))

    def run(self, item):
        assert self.c.tokens_run(self.handle, TOKEN_ITEMS.index(item))

    def gae_apart(self):
        """Like `run("gae")`, with another buffer for the whitened advantages."""
        assert self.c.tokens_gae_apart(self.handle)

    def check(self):
        """Builds the batch again, which `run` leaves out."""
        assert self.c.tokens_check(self.handle)

    def free(self):
        self.c.tokens_free(self.handle)


class Logits:
    """Rows of logits as numpy arrays over the library's memory; bf16 comes as 16-bit integers."""

    def __init__(self, library, rows, vocab, bf16):
        self.c, self.bf16, self.rows, self.vocab = library.c, bf16, rows, vocab
        self.handle = self.c.logits_new(rows, vocab, bf16)
        self.logits = self._array(0, np.uint16 if bf16 else np.float32, (rows, vocab))
        self.tokens = self._array(1, np.uint32, (rows,))
        self.grad_log_probs, self.grad_entropy = (
            self._array(2, np.float32, (rows,)),
            self._array(3, np.float32, (rows,)),
        )
        self.log_probs, self.entropy = self._array(4, np.float32, (rows,)), self._array(5, np.float32, (rows,))

    def _array(self, which, kind, shape):
        return array(self.c.logits_buffer(self.handle, which), kind, shape)

    def run(self, gradient):
        assert self.c.logits_run(self.handle, int(gradient))

    def grad_logits(self):
        return self._array(6, np.float32, (self.rows, self.vocab))

    def free(self):
        self.c.logits_free(self.handle)


class Limit:
    """The time for moving the same bytes."""

    def __init__(self, library, moved):
        self.c, self.moved = library.c, moved
        self.handle = self.c.limit_new(moved // 2, moved)

    def copy(self):
        self.c.limit_copy(self.handle, self.moved // 2)

    def read(self):
        self.c.limit_read(self.handle, self.moved)

    def free(self):
        self.c.limit_free(self.handle)
