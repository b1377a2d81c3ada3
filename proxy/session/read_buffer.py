"""The read buffer that all connections of an event loop share: what is in it is used up before the next read."""

READ_BUFFER_BYTES = 512 * 1024
# What a client may hold back unread is at most what was read at once, so it is less until its requests are larger.
_FRAME_START_BYTES = 128 * 1024
_FIRST_BYTES = 4 * 1024
_RESPONSES_BYTES = 256 * 1024


def new_shared_buffer() -> memoryview:
    """One for an event loop: what a client is read into whose good requests are larger than where frames start."""
    return memoryview(bytearray(READ_BUFFER_BYTES))


def where_frames_start(shared_buffer: memoryview) -> memoryview:
    """The part of it for connections that bring frames to gather: what is read beyond goes into their own buffers."""
    return shared_buffer[:_FRAME_START_BYTES]


def where_responses_come(shared_buffer: memoryview) -> memoryview:
    """The part of it for brokers."""
    return shared_buffer[:_RESPONSES_BYTES]


def where_first_requests_come(shared_buffer: memoryview) -> memoryview:
    """The part of it for clients of which it is not known yet whether they have to wait for a quota."""
    return shared_buffer[:_FIRST_BYTES]
