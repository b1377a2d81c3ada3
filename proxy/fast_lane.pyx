"""The fast lane of a session: ordinary frames are passed on as they came, with their neighbours, in one write.

Of whole frames that lie in the read buffer it takes requests that nobody looks into, Produce requests that are good
(`sluicegate.validation.ordinary`), and answers that need nothing. Which answer belongs to which request is said by
the session's one queue. It refuses nothing and answers nothing: at the first frame that is anything else it stops, and the slow lane
(`sluicegate.proxy.request_side`, `sluicegate.proxy.answer_side`) takes that one.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from sluicegate.protocol.framing cimport OrdinaryFrames
from sluicegate.proxy.connection cimport Connection
from sluicegate.proxy.in_flight cimport Exchange, InFlightQueue
from sluicegate.validation.ordinary cimport OrdinaryRequests

from sluicegate.protocol.api import APIS, ApiKey, Treatment
from sluicegate.validation.ordinary import GOOD, LOOK_CLOSER

cdef enum:
    _SIZE_BYTES = 4
    # API key, version, correlation id.
    _HEAD_BYTES = 8
    _CORRELATION_ID_BYTES = 4
    _API_KEYS = 128
    # Frames after which it is asked whether others have waited long enough, and bytes of one that ask for it at once.
    _FRAMES_UNASKED = 16
    _LARGE_BYTES = 4096
    # What is larger may take longer than others should wait.
    _MOST_GATHERED_BYTES = 512 * 1024

    _PRODUCE = 0
    _FLEXIBLE_SINCE = 9
    _ENDPOINTS_SINCE = 10
    _TOPIC_ID_SINCE = 13

cdef int _GOOD = GOOD
cdef int _LOOK_CLOSER = LOOK_CLOSER

# The highest version of each API that passes both ways; -1 where the slow lane has something to do.
cdef int[_API_KEYS] _PASSES
for _key in range(_API_KEYS):
    _PASSES[_key] = APIS[_key].max_version if _key in APIS and APIS[_key].treatment is Treatment.OPAQUE else -1
assert int(ApiKey.PRODUCE) == _PRODUCE and APIS[_PRODUCE].flexible_since == _FLEXIBLE_SINCE


cdef inline int32_t _int32(const uint8_t *at) noexcept:
    return <int32_t>(<uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3])


cdef inline int16_t _int16(const uint8_t *at) noexcept:
    return <int16_t>(<uint32_t>at[0] << 8 | at[1])


cdef class FastRequests(OrdinaryFrames):
    """Towards the broker. `remember` is told what stands between a Produce request's first eight bytes and its body:
    who it is from is known from then on, and requests that say anything else are for the slow lane.
    """

    def __init__(self, OrdinaryRequests judge, session, side, read_buffer):
        """`side.takes_ordinary` says whether the session has come so far; `side.plain_finish` what an answer needs."""
        super().__init__()
        self._judge = judge
        self._data = read_buffer
        self._view = read_buffer
        self._session = session
        self._side = side
        self._queue = session.queue
        self._header_version = -1

    def remember(self, int header_version, bytes rest):
        self._header_version = header_version
        self._header = rest

    cpdef Py_ssize_t take(self, object data, Py_ssize_t position, Py_ssize_t end) except -1:
        cdef const uint8_t[::1] view
        cdef const uint8_t *origin
        cdef Py_ssize_t at = position
        cdef Py_ssize_t size
        cdef int key, version, unasked = 0
        self.taken = 0
        if not self._side.takes_ordinary:
            return position
        view = self._view if data is self._data else data
        origin = &view[0]
        while end - at >= _SIZE_BYTES + _HEAD_BYTES:
            size = _int32(origin + at)
            if size < _HEAD_BYTES or size > end - at - _SIZE_BYTES:
                break
            key, version = _int16(origin + at + 4), _int16(origin + at + 6)
            if key == _PRODUCE:
                if not self._is_good(data, view, at + _SIZE_BYTES, size, version):
                    self.has_looked = True
                    break
            elif 0 < key < _API_KEYS and 0 <= version <= _PASSES[key]:
                self._queue.add(Exchange(_int32(origin + at + 8)))
            else:
                break
            at += _SIZE_BYTES + size
            self.taken += 1
            unasked += 1
            if unasked == _FRAMES_UNASKED or size >= _LARGE_BYTES:
                unasked = 0
                if self._session.is_late():
                    self._session.turn_is_over(self._session.client)
                    break
        if at > position:
            self._write(<char *>origin + position, at - position)
        return at

    cdef int _write(self, char *first, Py_ssize_t size) except -1:
        cdef Connection broker = self._session.broker
        broker.write(PyBytes_FromStringAndSize(first, size))
        return 0

    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, int version
    ) except -1:
        cdef const char *header
        cdef Py_ssize_t header_bytes
        cdef int verdict
        if (2 if version >= _FLEXIBLE_SINCE else 1) != self._header_version:
            return False
        header = self._header
        header_bytes = len(self._header)
        if size < _HEAD_BYTES + header_bytes:
            return False
        if memcmp(&view[start + _HEAD_BYTES], header, header_bytes) != 0:
            return False
        verdict = self._judge.judge_view(data, view, start + _HEAD_BYTES + header_bytes, start + size, version)
        if verdict == _LOOK_CLOSER:
            return False
        if verdict == _GOOD:
            self._queue.add(self.exchange(_int32(&view[start + 4]), version))
        return True

    cpdef Exchange exchange(self, object correlation_id, int version):
        """Of a Produce request that was forwarded as it came."""
        if version < _ENDPOINTS_SINCE:
            return Exchange(correlation_id)
        if version != self._finish_version:
            self._finish = self._side.plain_finish(version)
            self._finish_version = version
        return Exchange(correlation_id, self._finish, None, False, version)

    def judge_gathered(self, bytearray frame, int version):
        """LOOK_CLOSER, GOOD or GOOD_UNANSWERED for a Produce request that did not lie whole in the read buffer."""
        cdef bint has_looked = self.has_looked
        cdef Py_ssize_t header_bytes = len(self._header) if self._header is not None else 0
        self.has_looked = False
        if has_looked or (2 if version >= _FLEXIBLE_SINCE else 1) != self._header_version:
            return _LOOK_CLOSER
        if len(frame) > _MOST_GATHERED_BYTES or not frame.startswith(self._header, _HEAD_BYTES):
            return _LOOK_CLOSER
        return self._judge.judge(memoryview(frame), _HEAD_BYTES + header_bytes, len(frame), version)


cdef class FastAnswers(OrdinaryFrames):
    """Towards the client."""

    def __init__(self, session, read_buffer):
        super().__init__()
        self._session = session
        self._queue = session.queue
        self._data = read_buffer
        self._view = read_buffer

    cpdef Py_ssize_t take(self, object data, Py_ssize_t position, Py_ssize_t end) except -1:
        cdef const uint8_t[::1] view
        cdef const uint8_t *origin
        cdef const uint8_t *frame
        cdef Connection client
        cdef Py_ssize_t at = position
        cdef Py_ssize_t size
        cdef Exchange exchange
        cdef int64_t asked
        self.taken = 0
        view = self._view if data is self._data else data
        origin = &view[0]
        while end - at >= _SIZE_BYTES + _CORRELATION_ID_BYTES:
            size = _int32(origin + at)
            frame = origin + at + _SIZE_BYTES
            if size < _CORRELATION_ID_BYTES or size > end - at - _SIZE_BYTES:
                break
            exchange = self._queue.awaited()
            if exchange is None or exchange.correlation_id is None:
                break
            if exchange.finish is not None and (
                exchange.produce_version == 0 or not _names_no_broker(frame, size, exchange.produce_version)
            ):
                break
            asked = exchange.correlation_id
            if asked != _int32(frame):
                break
            self._queue.pop_awaited()
            at += _SIZE_BYTES + size
            self.taken += 1
        if at > position:
            client = self._session.client
            client.write(PyBytes_FromStringAndSize(<char *>origin + position, at - position))
        return at


cdef bint _names_no_broker(const uint8_t *frame, Py_ssize_t size, int version) noexcept:
    # A Produce answer of version 10 to 13 in which every partition was stored: nothing in it leads anywhere.
    cdef const uint8_t *at = frame + _CORRELATION_ID_BYTES
    cdef const uint8_t *end = frame + size
    cdef Py_ssize_t topics, partitions, name
    # One byte holds a length or a count up to 126, which is one less than what it says.
    if end - at < 2 or at[0] != 0 or at[1] == 0 or at[1] > 127:
        return False
    topics = at[1] - 1
    at += 2
    while topics > 0:
        topics -= 1
        if version >= _TOPIC_ID_SINCE:
            name = 16
        else:
            if at >= end or at[0] == 0 or at[0] > 127:
                return False
            name = at[0] - 1
            at += 1
        if end - at < name + 1:
            return False
        at += name
        if at[0] == 0 or at[0] > 127:
            return False
        partitions = at[0] - 1
        at += 1
        while partitions > 0:
            partitions -= 1
            # index, error code 0, base offset, append time, log start; no record errors, no message, no tags
            if end - at < 33 or at[4] != 0 or at[5] != 0 or at[30] != 1 or at[31] != 0 or at[32] != 0:
                return False
            at += 33
        if at >= end or at[0] != 0:
            return False
        at += 1
    return end - at == 5 and at[4] == 0  # throttle time, no tags
