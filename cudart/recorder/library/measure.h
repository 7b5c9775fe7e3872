// Which bytes kernels touch, measured by NVIDIA's Sanitizer API.
#ifndef DAGRUN_MEASURE_H
#define DAGRUN_MEASURE_H

// measure_start subscribes to the Sanitizer API's callbacks, which then report calls too. It returns 0, or says on stderr why it cannot.
// sanitizer is the path of libsanitizer-public.so, patches the path of the compiled patch.cu.
int measure_start(const char *sanitizer, const char *patches);
// measure_end reads what is left, as far as the device has finished.
void measure_end(void);

#endif
