"""The fast path of a session, which forwards ordinary frames unchanged, with neighbouring frames in one write.

It handles complete frames in the read buffer. These are requests that are not parsed, valid Produce requests
(`sluicegate.validation.ordinary`), and responses that are forwarded unchanged. The session's in-flight queue matches
responses with requests. The fast path rejects nothing and creates no response. At any other frame, or after an internal
error, it stops, and the slow path handles that frame (`request_handler.py` and `response_handler.py` in
`sluicegate.proxy.session.handlers`). It keeps the beginning of a partial Produce request and reads the rest into the
same buffer.
"""

from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from sluicegate.protocol.framing cimport OrdinaryFrames
from sluicegate.protocol.native_walk cimport int16_at, int32_at
from sluicegate.protocol.response_walks cimport ResponseWalk
from sluicegate.proxy.session.connection cimport Connection
from sluicegate.proxy.session.in_flight cimport InFlightRequest, InFlightQueue
from sluicegate.validation.ordinary cimport BatchTally, OrdinaryRequests

from sluicegate.protocol import produce_versions
from sluicegate.protocol.api import APIS, ApiKey, ApiHandling
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.response_walks import codes_program
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS
from sluicegate.proxy.session.broker_errors import code_position
from sluicegate.proxy.session.in_flight import WALKED
from sluicegate.validation.fallback_reason import FallbackReason
from sluicegate.validation.ordinary import GOOD, FALL_BACK

cdef enum:
    # For each API, one request in this many is timed.
    _TIMED_EVERY = 128
    _SIZE_BYTES = 4
    # The size of the API key, the version and the correlation id.
    _HEAD_BYTES = 8
    _CORRELATION_ID_BYTES = 4
    # Lateness is checked after this many frames, or after one large frame.
    _FRAMES_UNASKED = 16
    _LARGE_BYTES = 4096
    # After this many bytes in one call the session is called, which checks lateness.
    _MUCH_BYTES = 16 * 1024
    # Larger requests may take too long for the event loop.
    _MOST_GATHERED_BYTES = 512 * 1024
    # A larger allocation is mapped and unmapped each time, while the slow path reuses its buffers.
    _MOST_BEGUN_BYTES = 240 * 1024

cdef int _PRODUCE = ApiKey.PRODUCE
cdef int _FLEXIBLE_SINCE = produce_versions.FLEXIBLE_SINCE
cdef int _NODE_ENDPOINTS_SINCE = produce_versions.NODE_ENDPOINTS_SINCE
cdef int _TOPIC_ID_SINCE = produce_versions.TOPIC_ID_SINCE
cdef int _APPEND_TIME_SINCE = produce_versions.APPEND_TIME_SINCE
cdef int _LOG_START_SINCE = produce_versions.LOG_START_SINCE
cdef int _RECORD_ERRORS_SINCE = produce_versions.RECORD_ERRORS_SINCE
cdef int _THROTTLE_SINCE = produce_versions.THROTTLE_SINCE
cdef int _GOOD = GOOD
cdef int _FALL_BACK = FALL_BACK
cdef int _BY_SENDER = FallbackReason.SENDER
cdef int _BY_SIZE = FallbackReason.SIZE
cdef int _WALKED = WALKED
cdef int _MAX_TAGGED_FIELDS = MAX_TAGGED_FIELDS

# The highest version of each API that is forwarded in both directions, or -1 if the slow path handles the API.
cdef int _API_KEYS = max(APIS) + 1
cdef int *_PASSES = <int *> calloc(_API_KEYS, sizeof(int))
if _PASSES == NULL:
    raise MemoryError
for _key in range(_API_KEYS):
    _PASSES[_key] = APIS[_key].max_version if _key in APIS and APIS[_key].handling is ApiHandling.OPAQUE else -1
assert APIS[_PRODUCE].flexible_since == _FLEXIBLE_SINCE

# The value of `code_position` for each API and version that is forwarded.
cdef enum:
    _VERSIONS = 32
    _MAX_ELEMENTS = 10000
cdef int *_CODE_AT = <int *> calloc(_API_KEYS * _VERSIONS, sizeof(int))
if _CODE_AT == NULL:
    raise MemoryError
for _key in range(_API_KEYS):
    assert _PASSES[_key] < _VERSIONS
    for _version in range(_PASSES[_key] + 1):
        _CODE_AT[_key * _VERSIONS + _version] = code_position(_key, _version)
# For each API and version whose response has several error codes, the steps to reach them, and whether the response is
# flexible.
cdef list _CODES_PROGRAM = [
    codes_program(key, version) if key in APIS and APIS[key].codes and version <= APIS[key].max_version else ()
    for key in range(_API_KEYS)
    for version in range(_VERSIONS)
]
cdef bytes _FLEXIBLE = bytes(
    key in APIS and APIS[key].is_flexible(version) for key in range(_API_KEYS) for version in range(_VERSIONS)
)


# `__init__` does not run here. A field that is not set is 0, False or None, which are also its defaults
# (tests/proxy/fastpath/test_fast_path.py).
cdef InFlightRequest _new_in_flight(int64_t correlation_id, object finish, int produce_version):
    cdef InFlightRequest made = InFlightRequest.__new__(InFlightRequest)
    made.correlation_id = correlation_id
    made.finish = finish
    made.produce_version = produce_version
    return made


cdef InFlightRequest _new_passing(int64_t correlation_id, int key, int version):
    cdef InFlightRequest made = InFlightRequest.__new__(InFlightRequest)
    made.correlation_id = correlation_id
    made.api_key = key
    made.code_at = _CODE_AT[key * _VERSIONS + version]
    made.version = version
    return made


cdef class PathCounts:
    """Counts the requests on the fast paths of one event loop, by API, and selects the requests that are timed.

    For each API the first request is timed, and then one in 128, which represents all requests since the previous one.
    Reading a clock for each request would cost as much as half a validation.
    """

    cdef readonly object clock
    cdef readonly object failed
    cdef readonly int keys  # one more than the highest API key
    cdef long long *taken  # complete in the read buffer
    cdef long long *gathered  # gathered by the slow path
    cdef long long *due_at  # the value of `taken` at which the next request is timed
    cdef long long *_timed  # the value of `taken` when a request was timed last
    cdef ResponseWalk walk  # for error codes; shared by all sessions of the event loop

    def __cinit__(self):
        self.keys = max(APIS) + 1
        self.taken = <long long *> calloc(4 * self.keys, sizeof(long long))
        if self.taken == NULL:
            raise MemoryError
        self.gathered = self.taken + self.keys
        self.due_at = self.gathered + self.keys
        self._timed = self.due_at + self.keys

    def __dealloc__(self):
        free(self.taken)

    def __init__(self, clock, failed):
        """`clock` is a RequestClock. `failed(peer, error)` reports an internal error of the fast path."""
        self.clock = clock
        self.failed = failed
        self.walk = ResponseWalk()

    def by_api(self):
        """Return the number of requests by API key."""
        return {key: self.taken[key] + self.gathered[key] for key in range(self.keys) if self.taken[key] + self.gathered[key]}

    cdef double now(self) except? -1:
        return self.clock.now()

    cdef int time(self, int key, double arrived, InFlightRequest in_flight) except -1:
        # Time the last request on behalf of all since the previous timed one. `in_flight` is None if there is no
        # response.
        cdef long long taken = self.taken[key]
        self.clock.sent(key, arrived, in_flight, taken - self._timed[key])
        self._timed[key] = taken
        self.due_at[key] = taken + _TIMED_EVERY - 1
        return 0


cdef class FastPathBuffer:
    """Memory for partial requests.

    At most `total_bytes` are reserved, and `held_bytes` are reserved now, by the announced sizes of the requests. No
    request waits for this memory. If it is exhausted, the slow path gathers the request.
    """

    cdef readonly Py_ssize_t total_bytes
    cdef readonly Py_ssize_t held_bytes

    def __init__(self, Py_ssize_t total_bytes):
        self.total_bytes = total_bytes

    cdef bint take(self, Py_ssize_t size) noexcept:
        # Reserve `size` bytes if they are available, and return whether they were.
        if size > self.total_bytes - self.held_bytes:
            return False
        self.held_bytes += size
        return True

    cdef void release(self, Py_ssize_t size) noexcept:
        self.held_bytes -= size


cdef class FastRequests(OrdinaryFrames):
    """Forwards requests.

    `remember` sets the header of Produce requests between the first eight bytes and the body. The header is valid until
    the rules change. Requests with any other header are left to the slow path.
    """

    cdef OrdinaryRequests _validate
    cdef PathCounts _counts
    cdef object _pass_through
    cdef InFlightQueue _queue
    cdef Py_ssize_t _max_in_flight
    cdef Py_ssize_t _max_frame_bytes
    cdef object _lateness  # a LoopLateness
    cdef Connection _client
    cdef Connection _broker
    cdef object _turn_is_over
    cdef int _header_version
    cdef bytes _header
    cdef object _header_generation
    cdef object _finish
    cdef int _finish_version
    cdef object _data
    cdef object _wider
    cdef const uint8_t[::1] _view
    cdef bint has_fallen_back
    cdef object _charge
    cdef FastPathBuffer _fast_path_buffer
    cdef bytes _begun
    cdef Py_ssize_t _filled
    cdef BatchTally _sender

    def __init__(
        self,
        OrdinaryRequests validate,
        PathCounts counts,
        FastPathBuffer room,
        pass_through,
        InFlightQueue queue,
        Py_ssize_t max_in_flight,
        Py_ssize_t max_frame_bytes,
        lateness,
        read_buffer,
        wider_buffer,
    ):
        """`pass_through.takes_ordinary` is true if ordinary requests may be forwarded now, and
        `pass_through.plain_finish` returns how to finish a broker's response.

        `wider_buffer` becomes the client's read buffer after a valid request did not fit into `read_buffer`.
        """
        super().__init__()
        self._fast_path_buffer = room
        self._max_frame_bytes = max_frame_bytes
        self._counts = counts
        self._validate = validate
        self._data = read_buffer
        self._view = read_buffer
        self._wider = wider_buffer
        self._pass_through = pass_through
        self._queue = queue
        self._max_in_flight = max_in_flight
        self._lateness = lateness
        self._header_version = -1

    def lead(self, Connection client, Connection broker, turn_is_over):
        """Set the connections. `turn_is_over(client)` gives other clients their turn."""
        self._client = client
        self._broker = broker
        self._turn_is_over = turn_is_over

    def remember(self, int header_version, bytes rest, BatchTally sender):
        """Set the known header. `sender` counts the batches of the client that the header names."""
        self._header_version = header_version
        self._header = rest
        self._sender = sender
        self._header_generation = self._validate._rules.generation

    def forget(self):
        """Forget the header. The client's requests take the slow path until `remember` is called."""
        self._header_version = -1

    def meter(self, charge):
        """Call `charge(bytes, requests, newest, version)` for the Produce requests that were forwarded together.

        `newest` is the last of these requests that is in flight, or None, and `version` is its version. If `charge` is
        None, nothing is called.
        """
        self._charge = charge

    cdef bint _knows_header(self, int version) noexcept:
        # Under changed rules the client may be exempt.
        if self._header_generation is not self._validate._rules.generation:
            return False
        return (2 if version >= _FLEXIBLE_SINCE else 1) == self._header_version

    cpdef Py_ssize_t take(self, object data, Py_ssize_t position, Py_ssize_t end) except -1:
        cdef const uint8_t[::1] view
        self.taken = 0
        self.settled = False
        if not self._pass_through.takes_ordinary:
            return position
        if data is self._data:
            return self._take(data, self._view, position, end)
        view = data
        return self._take(data, view, position, end)

    cdef Py_ssize_t _take(
        self, object data, const uint8_t[::1] view, Py_ssize_t position, Py_ssize_t end
    ) except -1:
        cdef const uint8_t *origin = &view[0]
        cdef Py_ssize_t at = position
        cdef Py_ssize_t size
        cdef int64_t now = -1
        cdef int key, version, unasked = 0
        cdef int timed_key = -1  # the API of the one request among these frames that is timed, or -1
        cdef bint is_due
        cdef double arrived = 0
        cdef Py_ssize_t awaited = 0
        cdef InFlightRequest timed = None
        cdef Py_ssize_t before, charged = 0, charged_requests = 0
        cdef int charged_version = 0
        cdef InFlightRequest newest = None
        cdef bint begun = False
        self.settled = True
        try:
            while end - at >= _SIZE_BYTES + _HEAD_BYTES:
                size = int32_at(origin + at)
                if size < _HEAD_BYTES or size > self._max_frame_bytes:
                    break
                if size > end - at - _SIZE_BYTES:
                    begun = self._begins(origin + at, end - at, size)
                    break
                key, version = int16_at(origin + at + 4), int16_at(origin + at + 6)
                if key < 0 or key >= _API_KEYS:
                    break
                is_due = timed_key < 0 and self._counts.taken[key] >= self._counts.due_at[key]
                if is_due:
                    arrived = self._counts.now()
                    awaited = self._queue.count
                if key == _PRODUCE:
                    if now < 0:
                        now = self._validate.read_clock()
                    before = self._queue.count
                    if not self._is_good(data, view, at + _SIZE_BYTES, size, version, now):
                        self.has_fallen_back = True
                        break
                    if self._charge is not None:
                        charged += _SIZE_BYTES + size
                        charged_requests += 1
                        if self._queue.count > before:
                            charged_version = version
                            newest = self._queue.newest()
                elif 0 <= version <= _PASSES[key]:
                    self._queue.add(_new_passing(int32_at(origin + at + 8), key, version))
                else:
                    break
                self._counts.taken[key] += 1
                if is_due:
                    timed_key = key
                    timed = self._queue.newest() if self._queue.count > awaited else None
                at += _SIZE_BYTES + size
                self.taken += 1
                unasked += 1
                if unasked == _FRAMES_UNASKED or size >= _LARGE_BYTES:
                    unasked = 0
                    if self._lateness.check_lateness():
                        self._turn_is_over(self._client)
                        break
        except Exception as error:  # an internal error; the slow path validates the request again
            self.has_fallen_back = True
            self._counts.failed(self._client.peer_info.peer, error)
        if at > position:
            self._broker.pass_on(<const char *>origin + position, at - position)
        if timed_key >= 0:
            self._counts.time(timed_key, arrived, timed)
        if charged_requests > 0:
            self._charge(charged, charged_requests, newest, charged_version)
            self.settled = False
        if self._queue.count >= self._max_in_flight or self._queue._total.is_full():
            self.settled = False
        return end if begun else at

    cdef bint _begins(self, const uint8_t *start, Py_ssize_t have, Py_ssize_t size) except -1:
        # Keep a partial frame if it is a Produce request with the known header. Return whether it was kept.
        cdef int version = int16_at(start + 6)
        if int16_at(start + 4) != _PRODUCE or size > _MOST_BEGUN_BYTES or not self._knows_header(version):
            return False
        if not self._has_known_header(start + _SIZE_BYTES, have - _SIZE_BYTES):
            return False
        if not self._fast_path_buffer.take(_SIZE_BYTES + size):
            return False
        # The memory is not cleared, because it is not visible before the frame is complete.
        self._begun = PyBytes_FromStringAndSize(NULL, _SIZE_BYTES + size)
        memcpy(PyBytes_AS_STRING(self._begun), start, have)
        self._filled = have
        self.left = _SIZE_BYTES + size - have
        return True

    cpdef object rest_buffer(self):
        return PyMemoryView_FromMemory(PyBytes_AS_STRING(self._begun) + self._filled, self.left, PyBUF_WRITE)

    cpdef bytearray take_rest(self, Py_ssize_t count):
        cdef bytes frame
        self.taken = 0
        self.settled = True
        self._filled += count
        self.left -= count
        if count >= _LARGE_BYTES and self._lateness.check_lateness():
            self._turn_is_over(self._client)
        if self.left > 0:
            return None
        frame = self._begun
        self.drop()
        if self._passes_on(frame):
            self.taken = 1
            return None
        self.has_fallen_back = True
        self.settled = False
        return bytearray(memoryview(frame)[_SIZE_BYTES:])

    cpdef drop(self):
        if self._begun is not None:
            self._fast_path_buffer.release(len(self._begun))
            self._begun = None
            self.left = 0

    cdef bint _passes_on(self, bytes frame) except -1:
        cdef const uint8_t[::1] view = frame
        cdef int version = int16_at(&view[6])
        cdef bint is_due = self._counts.taken[_PRODUCE] >= self._counts.due_at[_PRODUCE]
        cdef double arrived = self._counts.now() if is_due else 0
        cdef Py_ssize_t before = self._queue.count
        cdef InFlightRequest in_flight = None
        cdef Py_ssize_t size = len(frame) - _SIZE_BYTES
        try:
            if not self._is_good(memoryview(frame), view, _SIZE_BYTES, size, version, self._validate.read_clock()):
                return False
        except Exception as error:  # an internal error; the slow path validates the request again
            self._counts.failed(self._client.peer_info.peer, error)
            return False
        if self._queue.count > before:
            in_flight = self._queue.newest()
        self._counts.taken[_PRODUCE] += 1
        self._reads_whole(len(frame))
        self._broker.write(frame)
        if is_due:
            self._counts.time(_PRODUCE, arrived, in_flight)
        if self._charge is not None:
            self._charge(len(frame), 1, in_flight, version)
            self.settled = False
        if self._queue.count >= self._max_in_flight or self._queue._total.is_full():
            self.settled = False
        return True

    cdef _reads_whole(self, Py_ssize_t size):
        # From now on requests of this size are read completely and validated in place.
        if len(self._data) < size <= len(self._wider):
            self._data = self._view = self._wider
            self._client.read_into(self._wider)

    cdef bint _has_known_header(self, const uint8_t *frame, Py_ssize_t size) noexcept:
        # The header follows the API key, the version and the correlation id.
        cdef const char *header = self._header
        cdef Py_ssize_t header_bytes = len(self._header)
        return size >= _HEAD_BYTES + header_bytes and memcmp(frame + _HEAD_BYTES, header, header_bytes) == 0

    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, int version, int64_t now
    ) except -1:
        cdef int verdict
        cdef Py_ssize_t body
        if not self._knows_header(version) or not self._has_known_header(&view[start], size):
            self._validate.fall_back(_BY_SENDER)
            return False
        body = start + _HEAD_BYTES + len(self._header)
        verdict = self._validate.validate_view(data, view, body, start + size, version, now)
        if verdict == _FALL_BACK:
            return False
        self._count(verdict)
        if verdict == _GOOD:
            self._queue.add(self.new_in_flight(int32_at(&view[start + 4]), version))
        return True

    cpdef InFlightRequest new_in_flight(self, int64_t correlation_id, int version):
        """Return the request in flight for a Produce request that was forwarded unchanged."""
        cdef InFlightRequest made
        if version < _NODE_ENDPOINTS_SINCE:
            made = _new_in_flight(correlation_id, None, 0)
        else:
            if version != self._finish_version:
                self._finish = self._pass_through.plain_finish(version)
                self._finish_version = version
            made = _new_in_flight(correlation_id, self._finish, version)
        made.version = version
        made.sender = self._sender
        made.topics = self._validate.last_topics()
        made.batches = self._validate._partitions
        return made

    cdef int _count(self, int verdict) except -1:
        # Count the batches of a request that is forwarded now.
        cdef Py_ssize_t batches = self._validate._partitions
        self._sender.forward(batches, self._validate._records, self._validate._bytes)
        if verdict != _GOOD:  # with acks=0 there is no response
            self._sender.leave_unknown(batches)
            _leave_topics_unknown(self._validate.last_topics(), batches)
        return 0

    def validate_gathered(self, bytearray frame, int version):
        """Return FALL_BACK, GOOD or GOOD_NO_RESPONSE for a Produce request that was not complete in the read buffer."""
        cdef bint has_fallen_back = self.has_fallen_back
        cdef Py_ssize_t header_bytes = len(self._header) if self._header is not None else 0
        cdef int verdict
        self.has_fallen_back = False
        if has_fallen_back:
            return _FALL_BACK
        if not self._knows_header(version) or not frame.startswith(self._header, _HEAD_BYTES):
            self._validate.fall_back(_BY_SENDER)
            return _FALL_BACK
        if len(frame) > _MOST_GATHERED_BYTES:
            self._validate.fall_back(_BY_SIZE)
            return _FALL_BACK
        try:
            verdict = self._validate.validate(memoryview(frame), _HEAD_BYTES + header_bytes, len(frame), version)
        except Exception as error:
            self._counts.failed(self._client.peer_info.peer, error)
            return _FALL_BACK
        if verdict != _FALL_BACK:
            self._count(verdict)
            self._counts.gathered[_PRODUCE] += 1
            self._reads_whole(_SIZE_BYTES + len(frame))
        return verdict


cdef class FastResponses(OrdinaryFrames):
    """Forwards responses."""

    cdef PathCounts _counts
    cdef InFlightQueue _queue
    cdef Connection _client
    cdef object _errors
    cdef object _outcomes
    cdef object _data
    cdef const uint8_t[::1] _view

    def __init__(self, PathCounts counts, InFlightQueue queue, read_buffer):
        super().__init__()
        self._counts = counts
        self._queue = queue
        self._data = read_buffer
        self._view = read_buffer

    def lead(self, Connection client, errors, outcomes):
        """Set the connection and the counters.

        `errors.responded(api_key, code)` counts one error of the broker, and `errors.count_codes(api_key, codes)` several.
        `outcomes.settle(in_flight, frame)` handles a Produce response that has an error.
        """
        self._client = client
        self._errors = errors
        self._outcomes = outcomes

    cpdef Py_ssize_t take(self, object data, Py_ssize_t position, Py_ssize_t end) except -1:
        cdef const uint8_t[::1] view
        if data is self._data:
            return self._take(&self._view[0], position, end)
        view = data
        return self._take(&view[0], position, end)

    cdef Py_ssize_t _take(self, const uint8_t *origin, Py_ssize_t position, Py_ssize_t end) except -1:
        cdef const uint8_t *frame
        cdef Py_ssize_t at = position
        cdef Py_ssize_t size
        cdef InFlightRequest in_flight
        cdef bint is_all_stored
        self.taken = 0
        while end - at >= _SIZE_BYTES + _CORRELATION_ID_BYTES:
            size = int32_at(origin + at)
            frame = origin + at + _SIZE_BYTES
            if size < _CORRELATION_ID_BYTES or size > end - at - _SIZE_BYTES:
                break
            in_flight = self._queue.awaited()
            if in_flight is None or in_flight.correlation_id != int32_at(frame):
                break
            is_all_stored = in_flight.sender is not None and _is_all_stored(frame, size, in_flight.version)
            if in_flight.finish is not None and (in_flight.produce_version == 0 or not is_all_stored):
                break
            self._queue.pop()
            if in_flight.stands_for:
                self._counts.clock.response_began(in_flight)
            if is_all_stored:
                _accept(in_flight)
            elif in_flight.sender is not None:
                self._outcomes.settle(in_flight, bytearray(frame[:size]))
            elif in_flight.code_at > 0:
                if size >= in_flight.code_at + 2 and int16_at(frame + in_flight.code_at) != 0:
                    self._errors.responded(in_flight.api_key, int16_at(frame + in_flight.code_at))
            elif in_flight.code_at == _WALKED and in_flight.finish is None:
                self._read_codes(in_flight.api_key, in_flight.version, frame, size)
            at += _SIZE_BYTES + size
            self.taken += 1
        if at > position:
            self._client.pass_on(<const char *>origin + position, at - position)
        # A paused client may be waiting for this response. A request that is ready waits only for its turn.
        self.settled = at - position < _MUCH_BYTES and not self._client._pause_reasons and not self._queue.is_ready()
        return at


    cdef int _read_codes(self, int key, int version, const uint8_t *frame, Py_ssize_t size) except -1:
        """Count the error codes of partitions."""
        cdef ResponseWalk walk = self._counts.walk
        cdef Py_ssize_t kind = key * _VERSIONS + version
        walk.flexible = _FLEXIBLE[kind]
        walk.data = frame
        walk.position = _CORRELATION_ID_BYTES
        walk.end = size
        walk.elements_left = _MAX_ELEMENTS
        walk.tags_left = _MAX_TAGGED_FIELDS
        try:
            if walk.flexible:
                walk.skip_tags()  # the tags of the header
            walk.run(<tuple>_CODES_PROGRAM[kind])
        except MalformedMessage:
            pass  # the response is forwarded as it is
        walk.data = NULL
        if walk.codes:
            self._errors.count_codes(key, walk.codes)
            walk.codes.clear()
        return 0


cdef int _accept(InFlightRequest in_flight) except -1:
    # Count the batches of a request as stored.
    cdef BatchTally tally = in_flight.sender
    tally.accept(in_flight.batches)
    if type(in_flight.topics) is list:
        for topic, batches in in_flight.topics:
            tally = topic
            tally.accept(batches)
    else:
        tally = in_flight.topics
        tally.accept(in_flight.batches)
    return 0


cdef int _leave_topics_unknown(object topics, Py_ssize_t batches) except -1:
    cdef BatchTally tally
    if type(topics) is list:
        for topic, own in topics:
            tally = topic
            tally.leave_unknown(own)
    else:
        tally = topics
        tally.leave_unknown(batches)
    return 0


cdef bint _is_all_stored(const uint8_t *frame, Py_ssize_t size, int version) noexcept:
    # Return whether every partition in a Produce response was stored. Such a response has no error and names no broker.
    if version >= _FLEXIBLE_SINCE:
        return _is_all_stored_flexible(frame, size, version)
    return _is_all_stored_inflexible(frame, size, version)


cdef bint _is_all_stored_inflexible(const uint8_t *frame, Py_ssize_t size, int version) noexcept:
    # The layout of versions before 9.
    cdef const uint8_t *at = frame + _CORRELATION_ID_BYTES
    cdef const uint8_t *end = frame + size
    cdef Py_ssize_t topics, partitions, name
    cdef Py_ssize_t entry = 14  # the index, the error code and the base offset
    if version >= _APPEND_TIME_SINCE:
        entry += 8
    if version >= _LOG_START_SINCE:
        entry += 8
    if version >= _RECORD_ERRORS_SINCE:
        entry += 6  # there are no record errors and no message
    if end - at < 4:
        return False
    topics = int32_at(at)
    at += 4
    while topics > 0:
        topics -= 1
        if end - at < 2:
            return False
        name = int16_at(at)
        if name < 0 or end - at < name + 6:
            return False
        at += 2 + name
        partitions = int32_at(at)
        at += 4
        while partitions > 0:
            partitions -= 1
            if end - at < entry or at[4] != 0 or at[5] != 0:
                return False
            if version >= _RECORD_ERRORS_SINCE and int32_at(at + entry - 6) != 0:
                return False
            if version >= _RECORD_ERRORS_SINCE and int16_at(at + entry - 2) != -1:
                return False
            at += entry
    return end - at == (4 if version >= _THROTTLE_SINCE else 0)


cdef bint _is_all_stored_flexible(const uint8_t *frame, Py_ssize_t size, int version) noexcept:
    # The layout of versions 9 to 13.
    cdef const uint8_t *at = frame + _CORRELATION_ID_BYTES
    cdef const uint8_t *end = frame + size
    cdef Py_ssize_t topics, partitions, name
    # One byte encodes a length or count up to 126, with one added.
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
            # The fields are index, error code 0, base offset, append time and log start, without record errors, message
            # and tags.
            if end - at < 33 or at[4] != 0 or at[5] != 0 or at[30] != 1 or at[31] != 0 or at[32] != 0:
                return False
            at += 33
        if at >= end or at[0] != 0:
            return False
        at += 1
    return end - at == 5 and at[4] == 0  # the throttle time and no tags
