// What the recorder knows of NVIDIA's driver API: numbers of callbacks, parameters of calls, structures. Declared here, because building must
// need no toolkit. Callback numbers are the same in CUPTI and in the Sanitizer API.
#ifndef DAGRUN_DRIVER_H
#define DAGRUN_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t handle; // CUcontext, CUstream, ... as a number
typedef uint64_t address;

// The calls that are recorded.
#define CALLS(X) \
    X(cuCtxCreate_v2, 235) X(cuCtxCreate_v3, 645) X(cuCtxCreate_v4, 757) X(cuCtxDestroy_v2, 322) X(cuDevicePrimaryCtxReset_v2, 545) \
    X(cuDevicePrimaryCtxReset, 389) X(cuDevicePrimaryCtxRetain, 386) X(cuDevicePrimaryCtxRelease, 387) X(cuDevicePrimaryCtxRelease_v2, 544) X(cuCtxDestroy, 11) \
    X(cuCtxSynchronize, 17) X(cuCtxSynchronize_v2, 800) X(cuStreamCreate, 124) X(cuStreamCreateWithPriority, 367) X(cuStreamDestroy, 127) \
    X(cuStreamDestroy_v2, 326) X(cuStreamSynchronize, 126) X(cuStreamSynchronize_ptsz, 440) X(cuStreamQuery, 125) X(cuStreamQuery_ptsz, 439) \
    X(cuStreamWaitEvent, 295) X(cuStreamWaitEvent_ptsz, 436) X(cuGreenCtxStreamCreate, 758) X(cuEventCreate, 118) X(cuEventDestroy, 122) \
    X(cuEventDestroy_v2, 325) X(cuEventRecord, 119) X(cuEventRecord_ptsz, 441) X(cuEventRecordWithFlags, 587) X(cuEventRecordWithFlags_ptsz, 588) \
    X(cuEventSynchronize, 121) X(cuEventQuery, 120) X(cuCtxRecordEvent, 755) X(cuCtxWaitEvent, 756) X(cuGreenCtxRecordEvent, 749) \
    X(cuGreenCtxWaitEvent, 750) X(cuLaunchKernel, 307) X(cuLaunchKernel_ptsz, 442) X(cuLaunchKernelEx, 652) X(cuLaunchKernelEx_ptsz, 653) \
    X(cuLaunchCooperativeKernel, 477) X(cuLaunchCooperativeKernel_ptsz, 478) X(cuLaunchCooperativeKernelMultiDevice, 480) X(cuLaunchHostFunc, 527) \
    X(cuLaunchHostFunc_ptsz, 528) X(cuStreamAddCallback, 346) X(cuStreamAddCallback_ptsz, 437) X(cuMemcpyHtoD_v2, 276) X(cuMemcpyHtoD_v2_ptds, 397) \
    X(cuMemcpyHtoDAsync_v2, 277) X(cuMemcpyHtoDAsync_v2_ptsz, 421) X(cuMemcpyDtoH_v2, 278) X(cuMemcpyDtoH_v2_ptds, 398) X(cuMemcpyDtoHAsync_v2, 279) \
    X(cuMemcpyDtoHAsync_v2_ptsz, 422) X(cuMemcpyDtoD_v2, 280) X(cuMemcpyDtoD_v2_ptds, 399) X(cuMemcpyDtoDAsync_v2, 281) \
    X(cuMemcpyDtoDAsync_v2_ptsz, 423) X(cuMemcpy, 305) X(cuMemcpy_ptds, 408) X(cuMemcpyAsync, 306) X(cuMemcpyAsync_ptsz, 418) \
    X(cuMemcpyDtoA_v2, 285) X(cuMemcpyDtoA_v2_ptds, 400) X(cuMemcpyAtoD_v2, 284) X(cuMemcpyAtoD_v2_ptds, 401) X(cuMemcpyHtoA_v2, 292) \
    X(cuMemcpyHtoA_v2_ptds, 402) X(cuMemcpyAtoH_v2, 282) X(cuMemcpyAtoH_v2_ptds, 403) X(cuMemcpyAtoA_v2, 286) X(cuMemcpyAtoA_v2_ptds, 404) \
    X(cuMemcpyHtoAAsync_v2, 293) X(cuMemcpyHtoAAsync_v2_ptsz, 419) X(cuMemcpyAtoHAsync_v2, 283) X(cuMemcpyAtoHAsync_v2_ptsz, 420) \
    X(cuMemcpy2D_v2, 287) X(cuMemcpy2D_v2_ptds, 405) X(cuMemcpy2DUnaligned_v2, 288) X(cuMemcpy2DUnaligned_v2_ptds, 406) X(cuMemcpy2DAsync_v2, 289) \
    X(cuMemcpy2DAsync_v2_ptsz, 424) X(cuMemcpy3D_v2, 290) X(cuMemcpy3D_v2_ptds, 407) X(cuMemcpy3DAsync_v2, 291) X(cuMemcpy3DAsync_v2_ptsz, 425) \
    X(cuMemcpyPeer, 318) X(cuMemcpyPeer_ptds, 409) X(cuMemcpyPeerAsync, 319) X(cuMemcpyPeerAsync_ptsz, 426) X(cuMemcpy3DPeer, 320) \
    X(cuMemcpy3DPeer_ptds, 410) X(cuMemcpy3DPeerAsync, 321) X(cuMemcpy3DPeerAsync_ptsz, 427) X(cuMemcpyBatchAsync, 776) \
    X(cuMemcpyBatchAsync_ptsz, 777) X(cuMemcpyBatchAsync_v2, 796) X(cuMemcpyBatchAsync_v2_ptsz, 797) X(cuMemsetD8_v2, 249) \
    X(cuMemsetD8_v2_ptds, 411) X(cuMemsetD16_v2, 250) X(cuMemsetD16_v2_ptds, 412) X(cuMemsetD32_v2, 251) X(cuMemsetD32_v2_ptds, 413) \
    X(cuMemsetD2D8_v2, 252) X(cuMemsetD2D8_v2_ptds, 414) X(cuMemsetD2D16_v2, 253) X(cuMemsetD2D16_v2_ptds, 415) X(cuMemsetD2D32_v2, 254) \
    X(cuMemsetD2D32_v2_ptds, 416) X(cuMemsetD8Async, 216) X(cuMemsetD8Async_ptsz, 428) X(cuMemsetD16Async, 218) X(cuMemsetD16Async_ptsz, 429) \
    X(cuMemsetD32Async, 220) X(cuMemsetD32Async_ptsz, 430) X(cuMemsetD2D8Async, 222) X(cuMemsetD2D8Async_ptsz, 431) X(cuMemsetD2D16Async, 224) \
    X(cuMemsetD2D16Async_ptsz, 432) X(cuMemsetD2D32Async, 226) X(cuMemsetD2D32Async_ptsz, 433) X(cuMemAlloc_v2, 243) X(cuMemAllocPitch_v2, 244) \
    X(cuMemAllocManaged, 371) X(cuMemAllocHost_v2, 294) X(cuMemHostAlloc, 39) X(cuMemHostRegister, 301) X(cuMemHostRegister_v2, 379) \
    X(cuMemHostUnregister, 302) X(cuMemFree_v2, 245) X(cuMemFreeHost, 38) X(cuMemAllocAsync, 598) X(cuMemAllocAsync_ptsz, 599) \
    X(cuMemAllocFromPoolAsync, 611) X(cuMemAllocFromPoolAsync_ptsz, 612) X(cuMemFreeAsync, 600) X(cuMemFreeAsync_ptsz, 601) X(cuMemMap, 551) \
    X(cuMemUnmap, 552) X(cuMemPoolSetAttribute, 603) X(cuMemPoolCreate, 607) X(cuMemPoolDestroy, 608) X(cuArrayCreate_v2, 272) X(cuArray3DCreate_v2, 274) X(cuArrayDestroy, 89) \
    X(cuStreamBeginCapture, 495) X(cuStreamBeginCapture_ptsz, 496) X(cuStreamBeginCapture_v2, 539) X(cuStreamBeginCapture_v2_ptsz, 540) \
    X(cuStreamBeginCaptureToGraph, 720) X(cuStreamBeginCaptureToGraph_ptsz, 721) X(cuStreamEndCapture, 497) X(cuStreamEndCapture_ptsz, 498) \
    X(cuGraphInstantiate, 513) X(cuGraphInstantiate_v2, 578) X(cuGraphInstantiateWithFlags, 643) X(cuGraphInstantiateWithParams, 656) \
    X(cuGraphInstantiateWithParams_ptsz, 657) X(cuGraphLaunch, 514) X(cuGraphLaunch_ptsz, 515) X(cuGraphExecDestroy, 516) X(cuGraphDestroy, 517) \
    X(cuGraphExecUpdate, 561) X(cuGraphExecUpdate_v2, 696) X(cuGraphExecKernelNodeSetParams, 538) X(cuGraphExecKernelNodeSetParams_v2, 692) \
    X(cuGraphExecMemcpyNodeSetParams, 562) X(cuGraphExecMemsetNodeSetParams, 563) X(cuGraphExecHostNodeSetParams, 564) \
    X(cuGraphExecChildGraphNodeSetParams, 586) X(cuGraphExecEventRecordNodeSetEvent, 595) X(cuGraphExecEventWaitNodeSetEvent, 596) \
    X(cuGraphNodeSetEnabled, 650) X(cuGraphExecNodeSetParams, 714) X(cuModuleLoad, 18) X(cuModuleLoadData, 19) \
    X(cuModuleLoadDataEx, 20) X(cuModuleLoadFatBinary, 21) X(cuLibraryLoadData, 678) X(cuLibraryLoadFromFile, 679) X(cuKernelGetFunction, 683) X(cuModuleUnload, 22) X(cuLibraryUnload, 680) X(cuTensorMapEncodeTiled, 697) \
    X(cuTensorMapEncodeIm2col, 698) X(cuTensorMapReplaceAddress, 699) X(cuGraphAddNode, 712) X(cuGraphAddNode_v2, 723) X(cuGetExportTable, 135) X(cuMemPrefetchAsync, 467) X(cuMemPrefetchAsync_ptsz, 468) \
    X(cuMemPrefetchAsync_v2, 716) X(cuMemPrefetchAsync_v2_ptsz, 717) X(cuStreamWaitValue32, 458) X(cuStreamWaitValue32_ptsz, 459) \
    X(cuStreamWaitValue64, 473) X(cuStreamWaitValue64_ptsz, 474) X(cuStreamWriteValue32, 460) X(cuStreamWriteValue32_ptsz, 461) \
    X(cuStreamWriteValue64, 475) X(cuStreamWriteValue64_ptsz, 476) X(cuStreamWaitValue32_v2, 659) X(cuStreamWaitValue32_v2_ptsz, 660) \
    X(cuStreamWaitValue64_v2, 661) X(cuStreamWaitValue64_v2_ptsz, 662) X(cuStreamWriteValue32_v2, 663) X(cuStreamWriteValue32_v2_ptsz, 664) \
    X(cuStreamWriteValue64_v2, 665) X(cuStreamWriteValue64_v2_ptsz, 666) X(cuStreamBatchMemOp, 462) X(cuStreamBatchMemOp_ptsz, 463) \
    X(cuStreamBatchMemOp_v2, 667) X(cuStreamBatchMemOp_v2_ptsz, 668) X(cuCtxEnablePeerAccess, 313) X(cuCtxDisablePeerAccess, 314) \
    X(cuIpcOpenMemHandle, 329) X(cuIpcOpenMemHandle_v2, 567) X(cuIpcOpenEventHandle, 335) X(cuImportExternalMemory, 485) \
    X(cuImportExternalSemaphore, 489) X(cuSignalExternalSemaphoresAsync, 490) X(cuSignalExternalSemaphoresAsync_ptsz, 491) \
    X(cuWaitExternalSemaphoresAsync, 492) X(cuWaitExternalSemaphoresAsync_ptsz, 493) X(cuGraphicsMapResources, 133) \
    X(cuGraphicsMapResources_ptsz, 443) X(cuMemImportFromShareableHandle, 555) X(cuMemPoolImportPointer, 616) X(cuMulticastBindMem, 708) \
    X(cuMulticastBindAddr, 709) X(cuMemBatchDecompressAsync, 761) X(cuMemBatchDecompressAsync_ptsz, 762) X(cuMemcpy3DBatchAsync, 778) \
    X(cuMemcpy3DBatchAsync_ptsz, 779) X(cuMemcpy3DBatchAsync_v2, 798) X(cuMemcpy3DBatchAsync_v2_ptsz, 799) X(cuMemDiscardBatchAsync, 789) \
    X(cuMemDiscardBatchAsync_ptsz, 790) X(cuMemDiscardAndPrefetchBatchAsync, 791) X(cuMemDiscardAndPrefetchBatchAsync_ptsz, 792) \
    X(cuMemMapArrayAsync, 584) X(cuMemMapArrayAsync_ptsz, 585) X(cuLaunch, 115) X(cuLaunchGrid, 116) X(cuLaunchGridAsync, 117) X(cuMemcpyHtoD, 43) \
    X(cuMemcpyDtoH, 45) X(cuMemcpyDtoD, 47) X(cuMemcpyHtoDAsync, 60) X(cuMemcpyDtoHAsync, 62) X(cuMemcpyDtoDAsync, 64) X(cuMemcpy2D, 56) \
    X(cuMemcpy3D, 58) X(cuMemcpy2DAsync, 68) X(cuMemcpy3DAsync, 69) X(cuMemAlloc, 29) X(cuMemFree, 33) X(cuMemAllocPitch, 31)

enum {
#define NUMBER(name, number) API_##name = number,
    CALLS(NUMBER)
#undef NUMBER
    API_COUNT = 1024
};

struct copy_2d {
    size_t source_x, source_y;
    uint32_t source_kind, pad0;
    address source_host, source_device;
    handle source_array;
    size_t source_pitch;
    size_t destination_x, destination_y;
    uint32_t destination_kind, pad1;
    address destination_host, destination_device;
    handle destination_array;
    size_t destination_pitch;
    size_t width, height;
};

struct copy_3d { // CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER: `reserved` is the context of the latter
    size_t source_x, source_y, source_z, source_level;
    uint32_t source_kind, pad0;
    address source_host, source_device;
    handle source_array;
    handle source_reserved;
    size_t source_pitch, source_height;
    size_t destination_x, destination_y, destination_z, destination_level;
    uint32_t destination_kind, pad1;
    address destination_host, destination_device;
    handle destination_array;
    handle destination_reserved;
    size_t destination_pitch, destination_height;
    size_t width, height, depth;
};

struct memset_node {
    address destination;
    size_t pitch;
    uint32_t value, element;
    size_t width, height;
};

struct kernel_node { // CUDA_KERNEL_NODE_PARAMS_v2
    handle function;
    uint32_t grid[3], block[3], shared, pad;
    void **parameters, **extra;
    handle kernel, context;
};

struct host_node {
    handle function, data;
};

struct alloc_node { // CUDA_MEM_ALLOC_NODE_PARAMS_v1
    unsigned char pool[88];
    void *access;
    size_t access_count, bytes;
    address pointer;
};

struct node_parameters { // CUgraphNodeParams, of a conditional node
    uint32_t type, pad[3];
    uint64_t handle;
    uint32_t conditional, count;
    const handle *bodies;
};

struct launch_attribute {
    uint32_t id, pad;
    union {
        unsigned char bytes[64];
        uint32_t cluster[3];
        int cooperative;
        int programmatic;
        struct {
            handle event;
            int flags, trigger;
        } event;
    } value;
};
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_PROGRAMMATIC = 6, ATTRIBUTE_PROGRAMMATIC_EVENT = 7, ATTRIBUTE_COMPLETION_EVENT = 12 };

struct launch_config {
    uint32_t grid[3], block[3], shared, pad;
    handle stream;
    const struct launch_attribute *attributes;
    uint32_t count;
};

struct edge_data {
    uint8_t from_port, to_port, type, reserved[5];
};

enum { NODE_KERNEL, NODE_COPY, NODE_SET, NODE_HOST, NODE_GRAPH, NODE_EMPTY, NODE_WAIT, NODE_RECORD, NODE_SIGNAL, NODE_EXTERNAL_WAIT, NODE_ALLOC, NODE_FREE, NODE_MEMOP, NODE_CONDITIONAL };

// Parameters of calls, in the order of the functions' arguments. A member is as wide as in the driver's headers; what is the same for several functions
// has one name.
struct p_launch {
    handle function;
    uint32_t grid[3], block[3], shared;
    handle stream;
    void **parameters, **extra;
};
struct p_launch_ex {
    const struct launch_config *config;
    handle function;
    void **parameters, **extra;
};
struct p_copy { // destination, source, bytes, and for asynchronous functions the stream
    address destination, source;
    size_t bytes;
    handle stream;
};
struct p_copy_array { // one side is an array and an offset
    uint64_t a, b, c, d, e;
};
struct p_copy_peer {
    address destination;
    handle destination_context;
    address source;
    handle source_context;
    size_t bytes;
    handle stream;
};
struct p_copy_n {
    const void *copy;
    handle stream;
};
struct p_copy_batch {
    address *destinations, *sources;
    size_t *sizes;
    size_t count;
    void *attributes;
    size_t *attribute_indices;
    size_t attribute_count;
    union {
        struct {
            size_t *failed;
            handle stream;
        } v1;
        handle stream_v2;
    };
};
struct p_set8 {
    address destination;
    uint8_t value;
    size_t count;
    handle stream;
};
struct p_set16 {
    address destination;
    uint16_t value;
    size_t count;
    handle stream;
};
struct p_set32 {
    address destination;
    uint32_t value;
    size_t count;
    handle stream;
};
struct p_set2d { // the value is 1, 2 or 4 bytes and padded to 8 in all
    address destination;
    size_t pitch;
    uint32_t value, pad;
    size_t width, height;
    handle stream;
};
struct p_event_record {
    handle event, stream;
    uint32_t flags;
};
struct p_wait {
    handle stream, event;
    uint32_t flags;
};
struct p_one {
    handle it;
};
struct p_context_event {
    handle context, event;
};
struct p_stream_create {
    handle *stream;
    uint32_t flags;
    int priority;
};
struct p_green_stream_create {
    handle *stream;
    handle green;
    uint32_t flags;
    int priority;
};
struct p_event_create {
    handle *event;
    uint32_t flags;
};
struct p_alloc {
    address *pointer;
    size_t bytes;
    uint32_t flags;
};
struct p_alloc_pitch {
    address *pointer;
    size_t *pitch;
    size_t width, height;
    uint32_t element;
};
struct p_register {
    address pointer;
    size_t bytes;
    uint32_t flags;
};
struct p_alloc_async {
    address *pointer;
    size_t bytes;
    handle stream;
};
struct p_alloc_pool {
    address *pointer;
    size_t bytes;
    handle pool, stream;
};
struct p_free_async {
    address pointer;
    handle stream;
};
struct p_map {
    address pointer;
    size_t bytes, offset;
    handle it;
    uint64_t flags;
};
struct p_unmap {
    address pointer;
    size_t bytes;
};
struct p_pool_attribute {
    handle pool;
    int attribute, pad;
    void *value;
};
struct p_array {
    handle *array;
    const uint64_t *descriptor;
};
struct p_host_function {
    handle stream, function, data;
};
struct p_capture_end {
    handle stream;
    handle *graph;
};
struct p_instantiate {
    handle *execution;
    handle graph;
};
struct p_graph_launch {
    handle execution, stream;
};
struct p_two {
    handle first, second;
};
struct p_memory_value { // the value is 4 bytes in the 32-bit functions
    handle stream;
    address address;
    union {
        struct {
            uint32_t value, flags;
        } v32;
        struct {
            uint64_t value;
            uint32_t flags;
        } v64;
    };
};
struct memory_operation { // CUstreamBatchMemOpParams
    uint32_t operation, pad;
    address address;
    uint64_t value;
    uint32_t flags, pad1;
    uint64_t more[2];
};
struct p_memory_batch {
    handle stream;
    uint32_t count, pad;
    const struct memory_operation *operations;
    uint32_t flags;
};
struct p_prefetch {
    address pointer;
    size_t bytes;
    int device;
    handle stream;
};
struct p_prefetch2 {
    address pointer;
    size_t bytes;
    uint64_t location;
    uint32_t flags;
    handle stream;
};
struct p_tensor_map {
    void *map;
    int type;
    uint32_t rank;
    address address;
    const uint64_t *dimensions, *strides;
};
struct p_add_node {
    handle *node;
    handle graph;
    const handle *before;
    union {
        struct {
            size_t count;
            const struct node_parameters *parameters;
        } v1;
        struct {
            const struct edge_data *data;
            size_t count;
            const struct node_parameters *parameters;
        } v2;
    };
};
struct p_export_table {
    const void **table;
    const unsigned char *id; // 16 bytes
};
struct p_retain {
    handle *context;
    int device;
};
struct p_device {
    int device;
};
struct p_load { // of a module or a library: an image or the name of a file
    handle *it;
    const void *from;
};
struct p_context_create {
    handle *context;
};

// Functions of the driver that the recorder calls itself, found by dlsym in libcuda.so.1; any may be missing.
struct driver {
    int (*function_parameter)(handle function, size_t index, size_t *offset, size_t *bytes);
    int (*kernel_parameter)(handle kernel, size_t index, size_t *offset, size_t *bytes);
    int (*function_name)(const char **name, handle function);
    int (*kernel_name)(const char **name, handle kernel);
    int (*kernel_function)(handle *function, handle kernel);
    int (*device_pool)(handle *pool, int device);
    int (*node_alloc)(handle node, struct alloc_node *parameters);
    int (*function_module)(handle *module, handle function);
    int (*kernel_library)(handle *library, handle kernel);
    int (*context_device)(int *device);
    int (*device_count)(int *count);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*function_attribute)(int *value, int attribute, handle function);
    int (*capture_info)(handle stream, int *status, uint64_t *id, handle *graph, const handle **nodes, size_t *count);
    int (*capture_info3)(handle stream, int *status, uint64_t *id, handle *graph, const handle **nodes, const struct edge_data **edges, size_t *count);
    int (*stream_query)(handle stream);
    int (*context_wait)(void);
    int (*event_make)(handle *event, unsigned flags);
    int (*event_record)(handle event, handle stream);
    int (*event_query)(handle event);
    int (*stream_make)(handle *stream, unsigned flags);
    int (*stream_drop)(handle stream);
    int (*stream_wait)(handle stream);
    int (*copy_to_host)(void *to, address from, size_t bytes, handle stream);
    int (*exchange_mode)(int *mode);
    int (*event_drop)(handle event);
    int (*push)(handle context);
    int (*pop)(handle *context);
    int (*graph_nodes)(handle graph, handle *nodes, size_t *count);
    int (*graph_edges)(handle graph, handle *from, handle *to, size_t *count);
    int (*graph_edges2)(handle graph, handle *from, handle *to, struct edge_data *data, size_t *count);
    int (*node_type)(handle node, int *type);
    int (*node_kernel)(handle node, struct kernel_node *parameters);
    int (*node_copy)(handle node, struct copy_3d *parameters);
    int (*node_set)(handle node, struct memset_node *parameters);
    int (*node_host)(handle node, struct host_node *parameters);
    int (*node_graph)(handle node, handle *graph);
    int (*node_record)(handle node, handle *event);
    int (*node_wait)(handle node, handle *event);
    int (*node_free)(handle node, address *pointer);
    int (*node_attribute)(handle node, int attribute, void *value);
    int (*memory_info)(size_t *free, size_t *total);
    int (*version)(int *version);
};
extern struct driver driver;
void driver_start(void);

// calling is above zero while this thread is in a call that the recorder itself makes; such calls are not recorded.
extern __thread int calling;

#endif
