// What libraries for host and device name of the CUDA runtime: its functions are declared and never called.
#pragma once

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 15,
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
};
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
union cudaLaunchAttributeValue {
  struct { unsigned x, y, z; } clusterDim;
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaEventDefault 0
#define cudaEventDisableTiming 2
#define cudaMemAttachGlobal 1
#define cudaOccupancyDisableCachingOverride 1

__host__ __device__ const char *cudaGetErrorString(cudaError_t);
__host__ __device__ const char *cudaGetErrorName(cudaError_t);
#define __DAGRUN_CALLED(name) \
  template <class... A> __host__ __device__ cudaError_t name(A...);
__DAGRUN_CALLED(cudaDeviceGetAttribute)
__DAGRUN_CALLED(cudaDeviceSynchronize)
__DAGRUN_CALLED(cudaEventCreateWithFlags)
__DAGRUN_CALLED(cudaEventDestroy)
__DAGRUN_CALLED(cudaEventRecord)
__DAGRUN_CALLED(cudaFree)
__DAGRUN_CALLED(cudaFreeAsync)
__DAGRUN_CALLED(cudaFreeHost)
__DAGRUN_CALLED(cudaFuncGetAttributes)
__DAGRUN_CALLED(cudaFuncSetAttribute)
__DAGRUN_CALLED(cudaGetDevice)
__DAGRUN_CALLED(cudaGetDeviceCount)
__DAGRUN_CALLED(cudaGetLastError)
__DAGRUN_CALLED(cudaLaunchKernelEx)
__DAGRUN_CALLED(cudaLaunchKernelExC)
__DAGRUN_CALLED(cudaMalloc)
__DAGRUN_CALLED(cudaMallocAsync)
__DAGRUN_CALLED(cudaMallocHost)
__DAGRUN_CALLED(cudaMallocManaged)
__DAGRUN_CALLED(cudaMemcpy)
__DAGRUN_CALLED(cudaMemcpyAsync)
__DAGRUN_CALLED(cudaMemsetAsync)
__DAGRUN_CALLED(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
__DAGRUN_CALLED(cudaOccupancyMaxActiveClusters)
__DAGRUN_CALLED(cudaPeekAtLastError)
__DAGRUN_CALLED(cudaPointerGetAttributes)
__DAGRUN_CALLED(cudaSetDevice)
__DAGRUN_CALLED(cudaStreamCreateWithFlags)
__DAGRUN_CALLED(cudaStreamDestroy)
__DAGRUN_CALLED(cudaStreamGetCaptureInfo)
__DAGRUN_CALLED(cudaStreamSynchronize)
__DAGRUN_CALLED(cudaStreamWaitEvent)
#undef __DAGRUN_CALLED
