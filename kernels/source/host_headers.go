// Which headers are left out, because they are for host code alone.

package source

import (
	"slices"
	"strings"

	"github.com/dagrun/dagrun/kernels/source/clang"
)

// runtimeHeaders are NVIDIA's headers of functions that host code calls, and of what device code has without them. They are left out even
// where they are found: a toolkit's are not for compilers that have no host.
var runtimeHeaders = map[string]bool{}

// libraryHeaders are those of NVIDIA's libraries. They are left out too, but programs get the types of 16 bits from them.
var libraryHeaders = map[string]bool{}

// hostHeaders are headers for host code that programs write in quotes, or that are not found in angle brackets. A file of the user's that has
// such a name is read.
var hostHeaders = map[string]bool{}

func init() {
	for set, names := range map[*map[string]bool]string{
		&runtimeHeaders: `cuda_runtime.h cuda_runtime_api.h cuda.h cuda_profiler_api.h cudaProfiler.h device_launch_parameters.h driver_types.h builtin_types.h nvrtc.h
			nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvToolsExtSync.h cuda_gl_interop.h cudaGL.h cuda_egl_interop.h cudaEGL.h cuda_device_runtime_api.h cuda_occupancy.h cuda_texture_types.h
			texture_types.h surface_types.h texture_fetch_functions.h surface_functions.h channel_descriptor.h device_double_functions.h
			sm_20_atomic_functions.h sm_20_intrinsics.h sm_30_intrinsics.h sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h sm_35_intrinsics.h sm_61_intrinsics.h`,
		&libraryHeaders: `cublas.h cublas_v2.h cublas_api.h cublasLt.h cublasXt.h curand.h cusparse.h cusparse_v2.h cusparseLt.h cusolverDn.h cusolverSp.h cusolverRf.h cusolver_common.h cusolverMg.h
			library_types.h cudnn.h cudnn_frontend.h cutensor.h npp.h nppi.h nppcore.h nppdefs.h nvjpeg.h nccl.h nvml.h`,
		&hostHeaders: `helper_cuda.h helper_cuda_drvapi.h helper_functions.h helper_string.h helper_timer.h helper_image.h helper_cusolver.h
			helper_gl.h helper_cuda_gl.h helper_multiprocess.h multithreading.h exception.h nvrtc_helper.h paramgl.h param.h rendercheck_gl.h timer.h
			stdio.h stdarg.h stdlib.h string.h strings.h time.h unistd.h errno.h signal.h ctype.h memory.h malloc.h getopt.h fcntl.h
			wchar.h locale.h setjmp.h sched.h pthread.h semaphore.h dirent.h dlfcn.h libgen.h windows.h io.h direct.h process.h conio.h glob.h err.h fenv.h inttypes.h
			iostream fstream sstream iomanip string vector map omp.h mpi.h png.h jpeglib.h`,
	} {
		for _, name := range strings.Fields(names) {
			(*set)[name] = true
		}
	}
}

// deviceFolders and deviceHeaders are NVIDIA's for device code.
var (
	deviceFolders = []string{"cub/", "cuda/", "nv/", "cooperative_groups/", "cutlass/", "cute/"}
	deviceHeaders = []string{"mma.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h", "cuda_awbarrier.h", "cuda_awbarrier_primitives.h", "cuda_fp4.h",
		"cuda_fp6.h", "cuda_fp8.h", "nvshmemx.h", "nvshmem.h"}
)

// ofThrust are the parts of Thrust that device code uses.
var ofThrust = []string{"thrust/complex.h", "thrust/tuple.h", "thrust/pair.h", "thrust/functional.h"}

// forDevices reports whether a header is NVIDIA's for device code.
func forDevices(name string) bool {
	return slices.Contains(ofThrust, name) || slices.Contains(deviceHeaders, name) || strings.HasPrefix(name, "curand_") ||
		slices.ContainsFunc(deviceFolders, func(folder string) bool { return strings.HasPrefix(name, folder) })
}

// alwaysLeftOut reports whether an include is ignored whatever is found.
func alwaysLeftOut(name string) bool {
	return runtimeHeaders[name] || libraryHeaders[name] || strings.HasPrefix(name, "thrust/") && !slices.Contains(ofThrust, name)
}

// telling reports whether device code may lack a header that is not found: those of the host's own have no ending or are known.
func telling(name string) bool {
	return forDevices(name) || strings.Contains(name, ".") && !hostHeaders[name] && !strings.HasPrefix(name, "sys/") && clang.Header(name) == nil
}
