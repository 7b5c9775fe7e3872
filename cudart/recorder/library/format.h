// The file that the recorder writes while a program runs: one for each process, mapped, so that what was written survives the process.
//
// internal/recording reads it, and packs the files of all processes into one recording. Numbers are little-endian. Nothing here is a pointer
// that a reader may follow: addresses and handles are names.
#ifndef DAGRUN_FORMAT_H
#define DAGRUN_FORMAT_H

#include <stdint.h>

#define FORMAT_MAGIC 0x314543455247414bull // "KAGRECE1"
#define FORMAT_VERSION 2
#define BLOCK_BYTES 65536 // the file is a row of blocks of this size; the first is the header
#define BLOCK_MAGIC 0x4b4f4c42u // "BLOK"

// The first block of the file.
struct file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t process;
    uint32_t parent;      // the process that forked or started this one
    uint32_t mode;        // MODE_*
    uint64_t start_unix;  // nanoseconds since 1970 at the start
    uint64_t start_clock; // the clock of call_time at the same moment, nanoseconds
    uint64_t reserved;    // bytes of the file that were given to threads, this block included; grows while the process runs
    uint64_t lost;        // records that were not written, because the disk was full or the limit was reached
    uint64_t ended;       // 1 when the process ended in an orderly way and everything was written
    uint64_t sequence;    // the last number that was given to a beginning or an end
};

enum { MODE_MEASURED = 1, MODE_CONTENTS = 2, MODE_HOST = 4 }; // bits

// A block belongs to one thread, which writes its records one after the other. used grows when a record is complete: bytes behind it are not
// to be read. A record that is larger than a block has a run of blocks of its own.
struct block_header {
    uint32_t magic;
    uint32_t thread; // index, see RECORD_THREAD
    uint32_t blocks; // blocks in this run
    uint32_t zero;
    uint64_t used;   // bytes of this run that are complete, this header included
};

// A record: this header, then `words` numbers of 8 bytes, then `tail` bytes, then zeros up to a multiple of 8.
struct record_header {
    uint32_t size; // all of it, a multiple of 8
    uint16_t kind;
    uint16_t words;
    uint32_t tail;
    uint32_t thread;
};

// Kinds of records. The words are listed; "tail" is what follows them.
//
// Every call of the driver begins with six words: begin and end (numbers that grow over all threads: a call that ends with 7 was over before
// one that begins with 8 began), time (nanoseconds, clock), api (callback number, the same in CUPTI and the Sanitizer API; the result is in the upper 32 bits),
// context, place (of RECORD_PLACE, 0 unknown). The words named below come after those. `node` is the graph node that a captured call made, 0 if the
// call was executed. A stream is the driver's handle: 0 or 1 is the legacy default stream, 2 the per-thread default stream of the calling thread.
// `sync` is 1 for functions whose name does not end in Async.
enum {
    RECORD_THREAD = 1,   // index, system id; tail: name
    RECORD_NOTE,         // code (NOTE_*), value; tail: text
    RECORD_PLACE,        // id; then for each frame, innermost first: kind (0 machine code, 1 Python) and image index or code id, and address or instruction offset: 2 words: (kind<<56 | index), offset
    RECORD_IMAGE,        // index, address where it is loaded, bytes; tail: path, 0, build id (raw bytes)
    RECORD_CODE,         // id, first line, version of Python (3*256+12); tail: file name, 0, function name, 0, line table (raw bytes)
    RECORD_MODULE,       // module (0 for a library), library (0 for a module), bytes, hash (of the bytes, 0 if not known; see hash.h), sequence from which the handle means this; tail: code as it was given to the loader, of a fatbin only PTX and what is for GPUs of the machine (absent if the hash occurred before, or if a note says that it is missing)
    RECORD_FUNCTION,     // handle, sequence, module, flags (FUNCTION_*), registers, shared bytes, parameters n, then for each offset and size, then the library, 0 if it is not known; tail: mangled name
    RECORD_GRAPH,        // sequence, graph, execution (0: not instantiated), nodes n, edges m; tail: n struct graph_node, m struct graph_edge, then bytes (parameters)
    RECORD_ACCESS,       // launch number, flags (ACCESS_*), lost (accesses that did not fit), runs n; tail: n struct access_run
    RECORD_TENSOR,       // sequence, action (TENSOR_*), address, bytes, stream, allocator's pool, place
    RECORD_TENSOR_TRACE, // the allocator's own trace, in its order: device; tail: lines "action address bytes stream"
    RECORD_PROCESS,      // tail: the command line, 0 between arguments; then two 0; then "key=value" 0 ... (driver, devices, torch, python)
    RECORD_CONTENTS,     // sequence (begin of the launch before which memory was so), address, bytes, hash, then of a planned graph: buffer (index); tail: bytes (absent as those of modules are)
    RECORD_BUFFER,       // address, bytes, flags (BUFFER_*), dimensions n, then each; tail: name, 0, type of an element as pipelines have it (this and the next three are of planned graphs)
    RECORD_NODE,         // node (index), priority (-1 low, 0, 1 high); tail: name
    RECORD_POINTER,      // node (index), byte (of what describes the node, from which on eight are an address), buffer (index), offset (of the address in the buffer), bytes (that the node may reach from there)
    RECORD_USE,          // node (index), buffer (index), offset, bytes in a row, rows, pitch, modes (RUN_*: how the node accesses these bytes)

    CALL_LAUNCH = 32,    // stream, node, function, launch number (of RECORD_ACCESS; 0 not measured), grid x, y, z, block x, y, z, shared bytes, flags (LAUNCH_*), cluster (x | y<<16 | z<<32), then event that the launch records, 0 if none, and what of it (EVENT_*); tail: parameter bytes, laid out as the function's parameters say
    CALL_COPY,           // stream, node, sync, destination, source, bytes in a row, rows, slices, destination pitch, source pitch, destination slice, source slice, destination kind, source kind (MEMORY_*; arrays name the handle), destination context, source context (0: the current one)
    CALL_SET,            // stream, node, sync, address, bytes in a row, rows, pitch, value, element bytes
    CALL_RECORD,         // stream, node, event, flags
    CALL_WAIT,           // stream, node, event, flags
    CALL_EVENT_SYNC,     // event
    CALL_EVENT_QUERY,    // event (the result says whether it was complete)
    CALL_STREAM_SYNC,    // stream
    CALL_STREAM_QUERY,   // stream
    CALL_CONTEXT_SYNC,   //
    CALL_EVENT_CREATE,   // event, flags
    CALL_EVENT_DESTROY,  // event
    CALL_STREAM_CREATE,  // stream, flags (1: non-blocking), priority
    CALL_STREAM_DESTROY, // stream
    CALL_ALLOC,          // address, bytes, kind (ALLOC_*), stream (in stream order only), pool (of these, also if the program did not name it; 0 unknown), flags, node
    CALL_FREE,           // address, kind (ALLOC_*), stream (in stream order only), node
    CALL_HOST_FUNCTION,  // stream, node, function, data
    CALL_MEMORY_WAIT,    // stream, node, address, value, bytes, flags
    CALL_MEMORY_WRITE,   // stream, node, address, value, bytes, flags
    CALL_CAPTURE_BEGIN,  // stream, mode
    CALL_CAPTURE_END,    // stream, graph
    CALL_INSTANTIATE,    // execution, graph (RECORD_GRAPH with the same sequence describes it)
    CALL_UPDATE,         // execution, graph or 0, node or 0 (one node was changed); tail: how a kernel node is now, as RECORD_GRAPH describes it
    CALL_GRAPH_LAUNCH,   // stream, node, execution, launch number of the first measured node (0: not measured)
    CALL_GRAPH_DESTROY,  // graph
    CALL_EXEC_DESTROY,   // execution
    CALL_CONTEXT,        // context (0 if only the device is known), action (0 made current, 1 created, 2 destroyed, 3 primary reset, 4 primary retained, 5 primary released), device
    CALL_POOL,           // pool, attribute, value (reuse: 1 follow event dependencies, 2 opportunistic, 3 internal dependencies; 0: the pool was created, 1, or destroyed, 0)
    CALL_TENSOR_MAP,     // address, element bytes, rank, then the dimensions, then the strides in bytes (rank-1); tail: the 128 bytes of the descriptor
    CALL_PREFETCH,       // stream, node, address, bytes
    CALL_UNLOAD,         // module
    CALL_PEER,           // context that may be accessed, enabled (1) or disabled (0)
    CALL_UNCOVERED,      // a call whose effect on memory or order the recorder does not know: only the common words; tail: its name
    CALL_NODE_ACCESS,    // a node of a graph launch was measured: execution, launch of the graph (begin number of its CALL_GRAPH_LAUNCH), node (of the executable graph), launch number, function, grid x, y, z, block x, y, z
    CALL_GREEN,          // green context stream or event call: stream, event, action (0 record, 1 wait), context
    CALL_HOST_ACCESS,    // address, bytes, access (RUN_READ or RUN_WRITE), page
                         // This is no call: the thread itself touched pinned or managed memory. Only the first read and the first write of a page (of memory above 512 pages, of
                         // a 512th part) after a call gave work to the device are noted, as one byte, since how many were touched is not known.
};

enum { NOTE_CUT = 1, NOTE_REFUSED, NOTE_UNMEASURED, NOTE_UNCOVERED, NOTE_ALLOCATOR, NOTE_TEXT, NOTE_GRAPH, NOTE_CONTENTS, NOTE_TABLE }; // table: of undocumented functions; graph: what the Python package tried with a graph, as JSON; the value is a sequence
enum { FUNCTION_OPAQUE = 1, FUNCTION_UNPATCHED = 2 }; // opaque: its code has global accesses that no patch sees
enum { LAUNCH_COOPERATIVE = 1, LAUNCH_PROGRAMMATIC = 2, LAUNCH_EVENT = 4 }; // programmatic: may begin before its predecessor has ended
enum { EVENT_BLOCKS = 1, EVENT_START = 2, EVENT_BEGUN = 4 }; // recorded when all blocks allow it (programmatic), also by beginning; when all blocks have begun
enum { ACCESS_LOST = 1, ACCESS_OPAQUE = 2, ACCESS_UNMEASURED = 4 };
enum { MEMORY_UNKNOWN = 0, MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 }; // as CUmemorytype
enum { ALLOC_DEVICE = 1, ALLOC_PINNED = 2, ALLOC_MANAGED = 3, ALLOC_ASYNC = 4, ALLOC_REGISTERED = 5, ALLOC_MAPPED = 6, ALLOC_ARRAY = 7, ALLOC_IMPORTED = 8 };
enum { TENSOR_ALLOC = 1, TENSOR_FREE_REQUESTED = 2, TENSOR_FREE_COMPLETED = 3 };
enum { RUN_READ = 1, RUN_WRITE = 2, RUN_ATOMIC = 4 };
enum { BUFFER_HOST = 1, BUFFER_GIVEN = 2, BUFFER_RESULT = 4 }; // host memory, otherwise the device's; a replay reads what it held before; a replay leaves something in it that is not only for itself

struct access_run {
    uint64_t address;
    uint32_t bytes;
    uint32_t modes; // RUN_*: every byte of the run was accessed in these ways
};

struct graph_node {
    uint64_t node;
    uint32_t type;       // CUgraphNodeType
    uint32_t parameters; // bytes of the tail that describe it, see below
    uint64_t offset;     // of these bytes, from the beginning of the bytes behind the edges
};
// What the bytes are, 8-byte words unless said: kernel: function, grid x y z, block x y z, shared, flags (LAUNCH_*), cluster, then the parameter bytes;
// copy: the words of CALL_COPY from `destination` on; memset: those of CALL_SET from `address` on; host: function, data; child graph: graph handle (its own RECORD_GRAPH comes before);
// event record and wait: event; allocation: address, bytes; free: address; conditional, if its making was seen: what it is (0 if, 1 while, 2 switch), bodies n, then the graph handle of
// each (their own RECORD_GRAPH come before); others: nothing.

struct graph_edge {
    uint32_t from, to; // indices of nodes
    uint32_t type;     // 0 full, 1 programmatic
    uint32_t ports;    // from_port | to_port << 8
};

#endif
