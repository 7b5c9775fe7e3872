// The table of driver functions: every function of libcuda that dagrun calls, with the exact symbol of the 11.4 interface.
// Data only; opening is in open.go.

package driver

// A function is a row of the table.
type function uint8

const (
	cuInit function = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceCanAccessPeer
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxSetCurrent
	cuCtxGetCurrent
	cuCtxGetDevice
	cuCtxSynchronize
	cuCtxGetStreamPriorityRange
	cuCtxEnablePeerAccess
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuIpcGetMemHandle
	cuIpcOpenMemHandle
	cuIpcCloseMemHandle
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemcpyAsync
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemcpy2DAsync
	cuMemsetD2D8Async
	cuMemsetD2D16Async
	cuMemsetD2D32Async
	cuMemsetD8Async
	cuMemsetD16Async
	cuMemsetD32Async
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuStreamGetCtx
	cuStreamBeginCapture
	cuStreamEndCapture
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventRecordWithFlags
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuModuleGetFunctionCount
	cuModuleEnumerateFunctions
	cuFuncGetName
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuFuncLoad
	cuFuncGetParamInfo
	cuTexObjectCreate
	cuTexObjectDestroy
	cuLaunchKernel
	cuLaunchCooperativeKernel
	cuLaunchKernelEx
	cuLaunchHostFunc
	cuOccupancyMaxPotentialBlockSize
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuGraphCreate
	cuGraphDestroy
	cuGraphGetNodes
	cuGraphAddKernelNode
	cuGraphAddMemcpyNode
	cuGraphAddMemsetNode
	cuGraphAddEmptyNode
	cuGraphAddEventRecordNode
	cuGraphAddChildGraphNode
	cuGraphAddHostNode
	cuGraphAddDependencies
	cuGraphAddDependencies2
	cuGraphKernelNodeSetAttribute
	cuGraphInstantiateWithFlags
	cuGraphExecDestroy
	cuGraphExecUpdate
	cuGraphExecKernelNodeSetParams
	cuGraphExecMemcpyNodeSetParams
	cuGraphExecMemsetNodeSetParams
	cuGraphNodeSetEnabled
	cuGraphLaunch
	cuGraphUpload
	cuGraphConditionalHandleCreate
	cuGraphAddNode
	functionCount
)

// minimumDriver is the oldest driver that has every required function: CUDA 11.4.
const minimumDriver = 11040

// An entry describes a function. The symbol is what cuda.h's macros make of the name at ABI, without per-thread default
// streams (no _ptds, no _ptsz): the version of the parameters and structures below, even if a driver also has newer ones.
type entry struct {
	symbol   string
	abi      int    // version of the interface that the symbol stands for
	optional bool   // missing from drivers older than abi; callers check for it
	params   string // C parameter types
	record   uintptr
}

// table holds the functions in the order of their constants. record is the size of the structure that a function takes a pointer to, 0 if it
// takes none.
var table = [functionCount]entry{
	cuInit:                      {"cuInit", 2000, false, "unsigned", 0},
	cuDriverGetVersion:          {"cuDriverGetVersion", 2020, false, "int*", 0},
	cuGetErrorName:              {"cuGetErrorName", 6000, false, "CUresult, const char**", 0},
	cuGetErrorString:            {"cuGetErrorString", 6000, false, "CUresult, const char**", 0},
	cuDeviceGetCount:            {"cuDeviceGetCount", 2000, false, "int*", 0},
	cuDeviceGet:                 {"cuDeviceGet", 2000, false, "CUdevice*, int", 0},
	cuDeviceGetName:             {"cuDeviceGetName", 2000, false, "char*, int, CUdevice", 0},
	cuDeviceGetUuid:             {"cuDeviceGetUuid_v2", 11040, false, "CUuuid*, CUdevice", 16},
	cuDeviceTotalMem:            {"cuDeviceTotalMem_v2", 3020, false, "size_t*, CUdevice", 0},
	cuDeviceGetAttribute:        {"cuDeviceGetAttribute", 2000, false, "int*, CUdevice_attribute, CUdevice", 0},
	cuDeviceCanAccessPeer:       {"cuDeviceCanAccessPeer", 4000, false, "int*, CUdevice, CUdevice", 0},
	cuDevicePrimaryCtxRetain:    {"cuDevicePrimaryCtxRetain", 7000, false, "CUcontext*, CUdevice", 0},
	cuDevicePrimaryCtxRelease:   {"cuDevicePrimaryCtxRelease_v2", 11000, false, "CUdevice", 0},
	cuCtxPushCurrent:            {"cuCtxPushCurrent_v2", 4000, false, "CUcontext", 0},
	cuCtxPopCurrent:             {"cuCtxPopCurrent_v2", 4000, false, "CUcontext*", 0},
	cuCtxSetCurrent:             {"cuCtxSetCurrent", 4000, false, "CUcontext", 0},
	cuCtxGetCurrent:             {"cuCtxGetCurrent", 4000, false, "CUcontext*", 0},
	cuCtxGetDevice:              {"cuCtxGetDevice", 2000, false, "CUdevice*", 0},
	cuCtxSynchronize:            {"cuCtxSynchronize", 2000, false, "", 0},
	cuCtxGetStreamPriorityRange: {"cuCtxGetStreamPriorityRange", 5050, false, "int*, int*", 0},
	cuCtxEnablePeerAccess:       {"cuCtxEnablePeerAccess", 4000, false, "CUcontext, unsigned", 0},
	cuMemGetInfo:                {"cuMemGetInfo_v2", 3020, false, "size_t*, size_t*", 0},
	cuMemAlloc:                  {"cuMemAlloc_v2", 3020, false, "CUdeviceptr*, size_t", 0},
	cuMemFree:                   {"cuMemFree_v2", 3020, false, "CUdeviceptr", 0},
	cuIpcGetMemHandle:           {"cuIpcGetMemHandle", 4010, false, "CUipcMemHandle*, CUdeviceptr", 64},
	cuIpcOpenMemHandle:          {"cuIpcOpenMemHandle_v2", 11000, false, "CUdeviceptr*, CUipcMemHandle, unsigned", 0},
	cuIpcCloseMemHandle:         {"cuIpcCloseMemHandle", 4010, false, "CUdeviceptr", 0},
	cuMemHostAlloc:              {"cuMemHostAlloc", 2020, false, "void**, size_t, unsigned", 0},
	cuMemFreeHost:               {"cuMemFreeHost", 2000, false, "void*", 0},
	cuMemHostRegister:           {"cuMemHostRegister_v2", 6050, false, "void*, size_t, unsigned", 0},
	cuMemHostUnregister:         {"cuMemHostUnregister", 4000, false, "void*", 0},
	cuMemcpyAsync:               {"cuMemcpyAsync", 4000, false, "CUdeviceptr, CUdeviceptr, size_t, CUstream", 0},
	cuMemcpyHtoDAsync:           {"cuMemcpyHtoDAsync_v2", 3020, false, "CUdeviceptr, const void*, size_t, CUstream", 0},
	cuMemcpyDtoHAsync:           {"cuMemcpyDtoHAsync_v2", 3020, false, "void*, CUdeviceptr, size_t, CUstream", 0},
	cuMemcpyDtoDAsync:           {"cuMemcpyDtoDAsync_v2", 3020, false, "CUdeviceptr, CUdeviceptr, size_t, CUstream", 0},
	cuMemcpy2DAsync:             {"cuMemcpy2DAsync_v2", 3020, false, "const CUDA_MEMCPY2D_v2*, CUstream", 8 * copy2DWords},
	cuMemsetD2D8Async:           {"cuMemsetD2D8Async", 3020, false, "CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream", 0},
	cuMemsetD2D16Async:          {"cuMemsetD2D16Async", 3020, false, "CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream", 0},
	cuMemsetD2D32Async:          {"cuMemsetD2D32Async", 3020, false, "CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream", 0},
	cuMemsetD8Async:             {"cuMemsetD8Async", 3020, false, "CUdeviceptr, unsigned char, size_t, CUstream", 0},
	cuMemsetD16Async:            {"cuMemsetD16Async", 3020, false, "CUdeviceptr, unsigned short, size_t, CUstream", 0},
	cuMemsetD32Async:            {"cuMemsetD32Async", 3020, false, "CUdeviceptr, unsigned, size_t, CUstream", 0},
	cuStreamCreateWithPriority:  {"cuStreamCreateWithPriority", 5050, false, "CUstream*, unsigned, int", 0},
	cuStreamDestroy:             {"cuStreamDestroy_v2", 4000, false, "CUstream", 0},
	cuStreamSynchronize:         {"cuStreamSynchronize", 2000, false, "CUstream", 0},
	cuStreamQuery:               {"cuStreamQuery", 2000, false, "CUstream", 0},
	cuStreamWaitEvent:           {"cuStreamWaitEvent", 3020, false, "CUstream, CUevent, unsigned", 0},
	cuStreamGetCtx:              {"cuStreamGetCtx", 9020, false, "CUstream, CUcontext*", 0},
	cuStreamBeginCapture:        {"cuStreamBeginCapture_v2", 10010, false, "CUstream, CUstreamCaptureMode", 0},
	cuStreamEndCapture:          {"cuStreamEndCapture", 10000, false, "CUstream, CUgraph*", 0},
	cuEventCreate:               {"cuEventCreate", 2000, false, "CUevent*, unsigned", 0},
	cuEventDestroy:              {"cuEventDestroy_v2", 4000, false, "CUevent", 0},
	cuEventRecord:               {"cuEventRecord", 2000, false, "CUevent, CUstream", 0},
	cuEventRecordWithFlags:      {"cuEventRecordWithFlags", 11010, false, "CUevent, CUstream, unsigned", 0},
	cuEventQuery:                {"cuEventQuery", 2000, false, "CUevent", 0},
	cuEventSynchronize:          {"cuEventSynchronize", 2000, false, "CUevent", 0},
	cuEventElapsedTime:          {"cuEventElapsedTime", 2000, false, "float*, CUevent, CUevent", 0},
	cuModuleLoadDataEx:          {"cuModuleLoadDataEx", 2010, false, "CUmodule*, const void*, unsigned, CUjit_option*, void**", 0},
	cuModuleUnload:              {"cuModuleUnload", 2000, false, "CUmodule", 0},
	cuModuleGetFunction:         {"cuModuleGetFunction", 2000, false, "CUfunction*, CUmodule, const char*", 0},
	cuModuleGetGlobal:           {"cuModuleGetGlobal_v2", 3020, false, "CUdeviceptr*, size_t*, CUmodule, const char*", 0},
	cuModuleGetFunctionCount:    {"cuModuleGetFunctionCount", 12040, true, "unsigned*, CUmodule", 0},
	cuModuleEnumerateFunctions:  {"cuModuleEnumerateFunctions", 12040, true, "CUfunction*, unsigned, CUmodule", 0},
	cuFuncGetName:               {"cuFuncGetName", 12030, true, "const char**, CUfunction", 0},
	cuFuncGetAttribute:          {"cuFuncGetAttribute", 2020, false, "int*, CUfunction_attribute, CUfunction", 0},
	cuFuncSetAttribute:          {"cuFuncSetAttribute", 9000, false, "CUfunction, CUfunction_attribute, int", 0},
	cuFuncLoad:                  {"cuFuncLoad", 12040, true, "CUfunction", 0},
	cuFuncGetParamInfo:          {"cuFuncGetParamInfo", 12040, true, "CUfunction, size_t, size_t*, size_t*", 0},
	cuTexObjectCreate: {"cuTexObjectCreate", 5000, false,
		"CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*", 144},
	cuTexObjectDestroy: {"cuTexObjectDestroy", 5000, false, "CUtexObject", 0},
	cuLaunchKernel: {"cuLaunchKernel", 4000, false,
		"CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**", 0},
	cuLaunchCooperativeKernel: {"cuLaunchCooperativeKernel", 9000, false,
		"CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**", 0},
	cuLaunchKernelEx: {"cuLaunchKernelEx", 11060, true, "const CUlaunchConfig*, CUfunction, void**, void**", 56},
	cuOccupancyMaxPotentialBlockSize: {"cuOccupancyMaxPotentialBlockSize", 6050, false,
		"int*, int*, CUfunction, CUoccupancyB2DSize, size_t, int", 0},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, false, "int*, CUfunction, int, size_t", 0},
	cuLaunchHostFunc: {"cuLaunchHostFunc", 10000, false, "CUstream, CUhostFn, void*", 0},
	cuGraphCreate:    {"cuGraphCreate", 10000, false, "CUgraph*, unsigned", 0},
	cuGraphDestroy:   {"cuGraphDestroy", 10000, false, "CUgraph", 0},
	cuGraphGetNodes:  {"cuGraphGetNodes", 10000, false, "CUgraph, CUgraphNode*, size_t*", 0},
	cuGraphAddKernelNode: {"cuGraphAddKernelNode", 10000, false,
		"CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS_v1*", 56},
	cuGraphAddMemcpyNode: {"cuGraphAddMemcpyNode", 10000, false,
		"CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D_v2*, CUcontext", 200},
	cuGraphAddMemsetNode: {"cuGraphAddMemsetNode", 10000, false,
		"CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMSET_NODE_PARAMS_v1*, CUcontext", 40},
	cuGraphAddEmptyNode:       {"cuGraphAddEmptyNode", 10000, false, "CUgraphNode*, CUgraph, const CUgraphNode*, size_t", 0},
	cuGraphAddEventRecordNode: {"cuGraphAddEventRecordNode", 11010, false, "CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUevent", 0},
	cuGraphAddChildGraphNode:  {"cuGraphAddChildGraphNode", 10000, false, "CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph", 0},
	cuGraphAddHostNode:        {"cuGraphAddHostNode", 10000, false, "CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_HOST_NODE_PARAMS_v1*", 16},
	cuGraphAddDependencies:    {"cuGraphAddDependencies", 10000, false, "CUgraph, const CUgraphNode*, const CUgraphNode*, size_t", 0},
	cuGraphAddDependencies2: {"cuGraphAddDependencies_v2", 12030, true,
		"CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*, size_t", 8},
	cuGraphKernelNodeSetAttribute:  {"cuGraphKernelNodeSetAttribute", 11000, false, "CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue*", 64},
	cuGraphInstantiateWithFlags:    {"cuGraphInstantiateWithFlags", 11040, false, "CUgraphExec*, CUgraph, unsigned long long", 0},
	cuGraphExecDestroy:             {"cuGraphExecDestroy", 10000, false, "CUgraphExec", 0},
	cuGraphExecUpdate:              {"cuGraphExecUpdate", 10020, false, "CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*", 4},
	cuGraphExecKernelNodeSetParams: {"cuGraphExecKernelNodeSetParams", 10010, false, "CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*", 56},
	cuGraphExecMemcpyNodeSetParams: {"cuGraphExecMemcpyNodeSetParams", 10020, false, "CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D_v2*, CUcontext", 200},
	cuGraphExecMemsetNodeSetParams: {"cuGraphExecMemsetNodeSetParams", 10020, false, "CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS_v1*, CUcontext", 40},
	cuGraphNodeSetEnabled:          {"cuGraphNodeSetEnabled", 11060, true, "CUgraphExec, CUgraphNode, unsigned", 0},
	cuGraphLaunch:                  {"cuGraphLaunch", 10000, false, "CUgraphExec, CUstream", 0},
	cuGraphUpload:                  {"cuGraphUpload", 11010, false, "CUgraphExec, CUstream", 0},
	cuGraphConditionalHandleCreate: {"cuGraphConditionalHandleCreate", 12030, true, "CUgraphConditionalHandle*, CUgraph, CUcontext, unsigned, unsigned", 0},
	cuGraphAddNode: {"cuGraphAddNode_v2", 12030, true,
		"CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, CUgraphNodeParams*", 256},
}

// name returns the function's usual name: the symbol without its version.
func (f function) name() string {
	s := table[f].symbol
	if n := len(s) - 3; n > 0 && s[n] == '_' && s[n+1] == 'v' {
		return s[:n]
	}
	return s
}

// copy2DWords is how many words CUDA_MEMCPY2D_v2 has. Its members are words of eight bytes, the memory types with four bytes of padding.
const copy2DWords = 16
