// Which headers are for host code alone.

package source

import (
	"slices"
	"strings"
)

// hostHeaders are headers for host code alone. Includes of them are left out. Those that device code needs too (cstdint, cfloat,
// cmath) are not here; compilers without them get them from dagrun.
var hostHeaders = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`
		cuda_runtime.h cuda_runtime_api.h cuda.h cuda_profiler_api.h cudaProfiler.h device_launch_parameters.h driver_types.h builtin_types.h nvrtc.h nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvToolsExtSync.h
		helper_cuda.h helper_cuda_drvapi.h helper_functions.h helper_string.h helper_timer.h helper_image.h helper_cusolver.h
		helper_gl.h helper_cuda_gl.h helper_multiprocess.h multithreading.h exception.h nvrtc_helper.h paramgl.h param.h rendercheck_gl.h timer.h
		stdio.h cstdio stdarg.h cstdarg stdlib.h cstdlib string.h cstring strings.h time.h ctime unistd.h errno.h cerrno signal.h csignal ctype.h cctype memory.h malloc.h getopt.h fcntl.h
		wchar.h locale.h clocale setjmp.h sched.h pthread.h semaphore.h dirent.h dlfcn.h libgen.h windows.h io.h direct.h process.h conio.h
		iostream ostream istream fstream sstream iomanip ios iosfwd streambuf string string_view vector list deque map set queue stack unordered_map unordered_set
		array memory thread mutex condition_variable future atomic chrono ratio random regex exception stdexcept system_error filesystem locale bitset valarray
		numeric functional optional variant any complex typeinfo typeindex new initializer_list iterator algorithm
		omp.h mpi.h cublas.h cublas_v2.h cublasLt.h cublasXt.h curand.h cusparse.h cusolverDn.h cusolverSp.h cusolverRf.h npp.h nppi.h nvjpeg.h nccl.h nvml.h
		cuda_gl_interop.h cudaGL.h cuda_egl_interop.h cudaEGL.h png.h jpeglib.h
		execution source_location codecvt cwchar cwctype cfenv fenv.h shared_mutex scoped_allocator memory_resource latch barrier semaphore stop_token syncstream format print charconv
	`) {
		hostHeaders[name] = true
	}
}

// hostFolders are folders of headers for host code alone. Of Thrust, parts are for devices too.
var hostFolders = []string{"sys/", "netinet/", "arpa/", "GL/", "GLFW/", "EGL/", "GLES2/", "GLES3/", "X11/", "vulkan/", "opencv2/", "boost/", "thrust/", "nvtx3/"}

func isHostHeader(name string) bool {
	switch name {
	case "thrust/complex.h", "thrust/tuple.h", "thrust/pair.h", "thrust/functional.h":
		return false
	}
	return hostHeaders[name] || slices.ContainsFunc(hostFolders, func(folder string) bool { return strings.HasPrefix(name, folder) })
}
