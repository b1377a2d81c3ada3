"""The read buffer that all connections of an event loop share: what is in it is used up before the next read."""

READ_BUFFER_BYTES = 256 * 1024
# What is read at once where frames begin, so that batches as producers send them lie whole in it: what lies beyond goes
# straight into a gathered frame's own buffer.
_FRAME_START_BYTES = 128 * 1024


def new_shared_buffer() -> memoryview:
    """One for an event loop."""
    return memoryview(bytearray(READ_BUFFER_BYTES))


def where_frames_start(shared_buffer: memoryview) -> memoryview:
    """The part of it for connections that bring frames to gather: what is read beyond goes into their own buffers."""
    return shared_buffer[:_FRAME_START_BYTES]
